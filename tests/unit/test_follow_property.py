"""However others and our own writers take turns, history is told as it is in the end."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from adapter.runtime.events import Emitted, ItemClosed, RuntimeEvent
from agent.following.follow import Told
from tests.support.fake_threads import AT
from tests.support.looks import NOBODY, THERE, event, item, running, shown, turn
from transport.protocol.events import (
    TurnCompleted,
    TurnReplaced,
    TurnStarted,
)
from transport.protocol.turns import Turn, TurnStatus


class Switching(RuleBasedStateMachine):
    """Two programs take turns in one thread; we look whenever we like.

    `history` is the truth, oldest first; `told` is all that clients were told.
    """

    def __init__(self) -> None:
        super().__init__()
        self.record = Told("thr")
        self.history: list[Turn] = []
        self.events: list[RuntimeEvent] = []
        self.open_turn: Turn | None = None
        self.ours = False
        self.before: set[str] = set()  # items that were there at the base
        self.count = 0

    def _id(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count:03}"

    def _look(self, *, certain: bool = False) -> None:
        others = THERE if self.open_turn is not None and not self.ours else NOBODY
        now = shown(*self.history[-50:], others=others)
        self.events += self.record.advance(now, at=AT, certain=certain)

    @initialize(turns=st.integers(0, 3))
    def base(self, turns: int) -> None:
        for _ in range(turns):
            turn_id = self._id("t")
            self.history.append(turn(turn_id, item(self._id("i"), turn_id)))
        self.before = {one.id for row in self.history for one in row.items or ()}
        self._look()
        assert not self.events

    @rule()
    def we_look(self) -> None:
        if not self.ours:
            self._look()

    @precondition(lambda self: self.open_turn is None)
    @rule()
    def the_other_begins(self) -> None:
        self.open_turn = running(self._id("t"))
        self.history.append(self.open_turn)

    @precondition(lambda self: self.open_turn is None)
    @rule()
    def we_begin(self) -> None:
        self._look(certain=True)  # the hand-over
        self.ours = True
        self.open_turn = running(self._id("t"))
        self.history.append(self.open_turn)
        live = self.open_turn.model_copy(
            update={"status": TurnStatus.IN_PROGRESS, "items": None}
        )
        self._live(event(TurnStarted(turn=live)))

    def _live(self, one: RuntimeEvent) -> None:
        self.record.note(one)
        self.events.append(one)

    @precondition(lambda self: self.open_turn is not None)
    @rule()
    def an_item_ends(self) -> None:
        assert self.open_turn is not None
        one = item(self._id("i"), self.open_turn.id)
        self._update(items=[*(self.open_turn.items or ()), one])
        if self.ours:
            live = one.model_copy(update={"provenance": "codex:item/completed"})
            self._live(ItemClosed(at=AT, thread_id="thr", item=live))

    @precondition(lambda self: self.open_turn is not None)
    @rule(
        status=st.sampled_from(
            [TurnStatus.COMPLETED, TurnStatus.FAILED, TurnStatus.INTERRUPTED]
        )
    )
    def the_turn_ends(self, status: TurnStatus) -> None:
        assert self.open_turn is not None
        self._update(status=status, completed_at=AT + 1_000)
        if self.ours:
            ended = self.open_turn.model_copy(update={"items": None})
            self._live(event(TurnCompleted(turn=ended)))
        self.open_turn, self.ours = None, False

    def _update(self, **update: object) -> None:
        assert self.open_turn is not None
        self.open_turn = self.history[-1] = self.open_turn.model_copy(update=update)

    def teardown(self) -> None:
        if self.open_turn is not None:
            self.the_turn_ends(TurnStatus.COMPLETED)
        self._look()
        done = [e.item.id for e in self.events if isinstance(e, ItemClosed)]
        stored = [one.id for row in self.history for one in row.items or ()]
        assert done == [one for one in stored if one not in self.before]
        self._check_turns()

    def _check_turns(self) -> None:
        ends: dict[str, TurnStatus] = {}
        runs: list[str] = []
        for one in self.events:
            match one:
                case Emitted(data=TurnStarted(turn=began)):
                    assert began.id not in runs
                    assert began.id not in ends
                    runs.append(began.id)
                case ItemClosed(item=ended):
                    assert ended.turn_id in runs
                case Emitted(data=TurnCompleted(turn=over)):
                    runs.remove(over.id)
                    ends[over.id] = over.status
                case Emitted(data=TurnReplaced()):
                    raise AssertionError("nothing was told wrongly")
                case _:
                    pass
        assert not runs
        known = {row.id: row.status for row in self.history}
        assert ends.items() <= known.items()


TestSwitching = Switching.TestCase
TestSwitching.settings = settings(
    max_examples=80, stateful_step_count=40, deadline=None
)
