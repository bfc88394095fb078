"""Whether the turn that we started has ended, whatever was missed. Sans-IO."""

from collections.abc import Iterable
from typing import Final

from transport.protocol.events import TurnCompleted
from transport.protocol.turns import Turn, TurnStatus
from transport.subscription import ClientEvent, EventSeen

KEPT: Final = 256  # ended turns remembered before we know which one is ours


class TurnWatch:
    """Sees events, may be told of history, and knows `ended` once it is the turn's end.

    The turn's id comes with the answer to the call that started it, which the turn's
    first events (in a short turn its last one too) may overtake.
    """

    def __init__(self) -> None:
        self._turn_id: str | None = None
        self._ended: dict[str, Turn] = {}

    def expect(self, turn_id: str) -> None:
        """This is the turn."""
        self._turn_id = turn_id

    def feed(self, event: ClientEvent) -> None:
        """Take in what happened."""
        if isinstance(event, EventSeen) and isinstance(event.data, TurnCompleted):
            self._note(event.data.turn)

    def reread(self, turns: Iterable[Turn]) -> bool:
        """Take in the newest turns of history; return whether ours is among them.

        After a gap its end may have been missed. Where the Agent died with it, history
        only infers that it was interrupted: that is its end too.
        """
        found = [turn for turn in turns if turn.id == self._turn_id]
        for turn in found:
            if turn.status is not TurnStatus.IN_PROGRESS:
                self._note(turn)
        return bool(found)

    @property
    def ended(self) -> Turn | None:
        """The turn at its end."""
        return None if self._turn_id is None else self._ended.get(self._turn_id)

    def _note(self, turn: Turn) -> None:
        if self._turn_id is not None and turn.id != self._turn_id:
            return
        self._ended[turn.id] = turn
        while len(self._ended) > KEPT:
            del self._ended[next(iter(self._ended))]
