"""The journal's shell: what is appended rings for the sessions that wait. Trio shell.

PROTOCOL.md section 6 (Delivery). There is no queue: a waiting session is an event in a
set, and one that is busy sending is not even that.
"""

import trio

from adapter.runtime.events import Emit, ItemDelta, RuntimeEvent
from agent.events.batches import Batches
from agent.events.journal import Journal


class Feed:
    """Owns the journal; its `emit` is what runtimes and the gate call."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.batches = Batches(journal)
        self._waiting: set[trio.Event] = set()
        self._waiting_for_whole: set[trio.Event] = set()
        self._ears: list[Emit] = []

    def listen(self, ear: Emit) -> None:
        """Tell this one, too, of everything but deltas."""
        self._ears.append(ear)

    def emit(self, event: RuntimeEvent) -> None:
        """Append, and wake who waits. Never blocks, whatever the clients do."""
        self.journal.append(event)
        _ring(self._waiting)
        if not isinstance(event, ItemDelta):
            _ring(self._waiting_for_whole)
            for ear in self._ears:
                ear(event)

    async def wait(self, bell: trio.Event, *, whole: bool = False) -> None:
        """Return when something is appended, or when the caller's own `bell` is set.

        `whole`: deltas do not count.
        """
        waiting = self._waiting_for_whole if whole else self._waiting
        waiting.add(bell)
        try:
            await bell.wait()
        finally:
            waiting.discard(bell)


def _ring(waiting: set[trio.Event]) -> None:
    for bell in waiting:
        bell.set()
    waiting.clear()
