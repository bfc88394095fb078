"""Which turns of a thread were told, in their order. Sans-IO.

PROTOCOL.md section 3 (Modes). One record for both sources, a writer of ours and history:
`follow` compares with it and writes into it.
"""

from collections.abc import Iterator, Sequence

from agent.following.history_view import ToldTurn, began_after
from agent.limits import DOUBTS, FULL_TURNS, TURNS_TOLD
from transport.protocol.turns import Turn


class ToldTurns:
    """Oldest first. `is_based`: it is known from which turn on all were told."""

    def __init__(self) -> None:
        self._turns: dict[str, ToldTurn] = {}
        self._missing = 0
        self.is_based = False

    def __len__(self) -> int:
        return len(self._turns)

    def __iter__(self) -> Iterator[str]:
        return iter([*self._turns])

    def get(self, turn_id: str) -> ToldTurn | None:
        """Return what was told of a turn."""
        return self._turns.get(turn_id)

    @property
    def is_running(self) -> bool:
        """Whether a turn has begun whose end was not told."""
        return any(turn.ended is None for turn in self._turns.values())

    def all_before(self, turn_id: str | None) -> bool:
        """Whether this newest turn is the last one told, and its end was told."""
        last = next(reversed(self._turns), None)
        return last == turn_id and not self.is_running

    # what is told

    def begin(self, turn_id: str) -> ToldTurn:
        """A turn is told from now on."""
        told = self._turns[turn_id] = ToldTurn()
        return told

    def live(self, turn_id: str) -> ToldTurn:
        """Return a turn that a writer of ours tells."""
        self.is_based = True
        told = self._turns.get(turn_id)
        if told is None:
            told = self.begin(turn_id)
            self.forget_old()  # a goal's loop starts turns for hours, and nobody looks
        told.live = True
        return told

    def drop_behind(self, turn_id: str) -> None:
        """Turns were taken back at our wish: what came behind this one is gone."""
        if turn_id not in self._turns:
            self._turns.clear()  # all that was told came later
            self.is_based = False
            return
        told = list(self._turns)
        for gone in told[told.index(turn_id) + 1 :]:
            del self._turns[gone]

    def forget_old(self) -> None:
        """Older turns keep their name only: history is not compared so far back."""
        for turn_id in list(self._turns)[:-FULL_TURNS]:
            self._turns[turn_id].items = None
        for turn_id in list(self._turns)[:-TURNS_TOLD]:
            del self._turns[turn_id]

    def clear(self) -> None:
        """Forget all of them."""
        self._turns.clear()

    # what history shows, oldest first

    def lacks(self, turns: Sequence[Turn], *, since: int | None) -> bool:
        """Whether a page of the newest turns does not reach back to what was told."""
        if self.is_based:
            return bool(self._turns) and not any(one.id in self._turns for one in turns)
        return since is not None and all(began_after(one, since) for one in turns)

    def fresh(self, turns: Sequence[Turn]) -> Sequence[Turn] | None:
        """Return the turns from the first told one on; older ones were before the base.

        `None` where the told ones and these do not meet.
        """
        for index, turn in enumerate(turns):
            if turn.id in self._turns:
                return turns[index:]
        return None if self._turns else turns

    def taken_back(self, turns: Sequence[Turn]) -> str | None:
        """Forget turns that history itself had shown, and shows no more: a revert.

        Returns, once, the turn that was left. Believed at the second look.
        """
        shown = {turn.id for turn in turns}
        told = list(self._turns)
        behind = next((i for i, one in enumerate(told) if one in shown), len(told))
        gone = [
            one
            for one in told[behind:]
            if one not in shown and not self._turns[one].live
        ]
        self._missing = self._missing + 1 if gone else 0
        if self._missing <= DOUBTS:
            return None
        self._missing = 0
        for turn_id in gone:
            del self._turns[turn_id]
        return next(
            one for one in reversed(told[: told.index(gone[0])]) if one in shown
        )
