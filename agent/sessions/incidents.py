"""What is written down once a minute, however often it happens. Sans-IO. SECURITY.md.

A stranger at the door, or a device that connects again and again or keeps asking for what
it may not have, must not be able to fill the audit log: the oldest entries would go.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from agent.edge_limits import INCIDENT_S, INCIDENTS, STRANGERS

Note = Callable[..., None]
OTHERS: Final = "others"


class Incidents:
    """Tells the first of a kind at once, then at most one a minute with their number.

    `note` writes one entry; `now` gives seconds of a monotonic clock.
    """

    def __init__(self, note: Note, now: Callable[[], float]) -> None:
        self._note: Final = note
        self._now: Final = now
        self._kinds: OrderedDict[tuple[str, ...], tuple[float, int]] = OrderedDict()
        self._named: OrderedDict[str, float] = OrderedDict()  # source → since

    def knocked(self, event: str, source: str) -> None:
        """Take in one of a stranger, who may have any number of addresses: `STRANGERS`
        are named in a minute, all others are one kind."""
        now = self._now()
        while self._named and now - next(iter(self._named.values())) >= INCIDENT_S:
            self._named.popitem(last=False)
        if source not in self._named and len(self._named) >= STRANGERS:
            source = OTHERS
        else:
            self._named.setdefault(source, now)
        self.happened(event, source=source)

    def happened(self, event: str, **fields: str) -> None:
        """Take in one; entries of the same fields count as one kind."""
        kind = (event, *fields.values())
        now = self._now()
        told_at, untold = self._kinds.pop(kind, (float("-inf"), 0))
        untold += 1
        if now - told_at >= INCIDENT_S:
            self._note(event, **fields, count=untold)
            told_at, untold = now, 0
        self._kinds[kind] = (told_at, untold)
        while len(self._kinds) > INCIDENTS:
            self._kinds.popitem(last=False)
