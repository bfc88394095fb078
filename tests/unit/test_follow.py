"""What history shows beyond what was told, whoever told it, and at whatever moment."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from adapter.runtime.events import Emitted, ItemClosed, RuntimeEvent
from agent.following.follow import Told
from agent.following.history_view import Snapshot
from agent.reading.standing import Others
from tests.support.fake_threads import AT, make_thread
from transport.protocol.events import (
    Notice,
    ThreadChanged,
    ThreadReverted,
    ThreadStarted,
    TurnCompleted,
    TurnReplaced,
    TurnStarted,
)
from transport.protocol.gateway import Writer, WriterKind
from transport.protocol.items import AgentMessage, Item, ItemStatus
from transport.protocol.threads import ThreadMode, ThreadStatus
from transport.protocol.turns import Turn, TurnStatus

HOLDER = Writer(kind=WriterKind.DESKTOP, name="Codex desktop", pid=7, since=1)
THERE = Others(holder=HOLDER)
NOBODY = Others()


def item(
    item_id: str,
    turn_id: str,
    *,
    status: ItemStatus = ItemStatus.COMPLETED,
    stable: bool | None = None,
    seen: str = "codex:history",
) -> Item:
    return AgentMessage(
        id=item_id,
        turn_id=turn_id,
        status=status,
        text=f"text of {item_id}",
        stable_id=stable,
        provenance=seen,
    )


def turn(
    turn_id: str,
    *items: Item,
    status: TurnStatus = TurnStatus.COMPLETED,
    at: int = AT,
) -> Turn:
    ended = status is not TurnStatus.INTERRUPTED
    return Turn(
        id=turn_id,
        thread_id="thr",
        status=status,
        started_at=at,
        completed_at=at + 1_000 if ended else None,
        items=list(items),
    )


def running(turn_id: str, *items: Item, at: int = AT) -> Turn:
    """How history tells a turn that runs elsewhere, or was cut short."""
    return turn(turn_id, *items, status=TurnStatus.INTERRUPTED, at=at)


def shown(*turns: Turn, others: Others = NOBODY) -> Snapshot:
    """A snapshot; turns are given oldest first."""
    return Snapshot(thread=make_thread("thr"), turns=turns[::-1], others=others)


def words(events: Sequence[RuntimeEvent]) -> list[str]:
    """Return the events, a word each, without those of the thread itself."""
    found: list[str] = []
    for event in events:
        match event:
            case ItemClosed(item=one):
                found.append(f"item {one.id}")
            case Emitted(data=TurnStarted(turn=one)):
                found.append(f"began {one.id} {one.status}")
            case Emitted(data=TurnCompleted(turn=one)):
                found.append(f"ended {one.id} {one.status}")
            case Emitted(data=TurnReplaced(turn=one)):
                found.append(f"replaced {one.id} {one.status}")
            case Emitted(data=Notice(code=code)):
                found.append(code)
            case _:
                pass
    return found


def test_the_first_look_tells_nothing_and_the_next_what_came() -> None:
    told = Told("thr")
    assert told.advance(shown(turn("t1", item("a", "t1"))), at=AT) == []
    now = shown(
        turn("t1", item("a", "t1")), running("t2", item("b", "t2")), others=THERE
    )
    events = told.advance(now, at=AT)
    assert words(events) == ["began t2 inProgress", "item b", "followedTurn"]
    assert told.advance(now, at=AT) == []
    now = shown(
        turn("t1", item("a", "t1")), turn("t2", item("b", "t2"), item("c", "t2"))
    )
    assert words(told.advance(now, at=AT)) == ["item c", "ended t2 completed"]


def test_a_thread_that_came_into_being_is_told_whole() -> None:
    told = Told("thr")
    events = told.advance(shown(turn("t1", item("a", "t1"))), at=AT, since=0)
    assert isinstance(events[0], Emitted)
    assert isinstance(events[0].data, ThreadStarted)
    assert words(events) == ["began t1 inProgress", "item a", "ended t1 completed"]


def test_of_a_thread_that_moved_only_what_began_since_is_told() -> None:
    told = Told("thr")
    now = shown(turn("t1", item("a", "t1")), turn("t2", item("b", "t2"), at=AT + 5_000))
    events = told.advance(now, at=AT, since=AT)
    assert words(events) == ["began t2 inProgress", "item b", "ended t2 completed"]


def test_one_look_at_which_nobody_is_there_does_not_end_a_foreign_turn() -> None:
    told = Told("thr")
    told.advance(shown(), at=AT)
    told.advance(shown(running("t1"), others=THERE), at=AT)
    assert words(told.advance(shown(running("t1")), at=AT)) == []
    assert told.turns.is_running
    assert words(told.advance(shown(running("t1"), others=THERE), at=AT)) == []
    assert words(told.advance(shown(running("t1")), at=AT)) == []
    events = told.advance(shown(running("t1")), at=AT)
    assert words(events) == ["ended t1 interrupted"]
    assert not told.turns.is_running


def test_a_turn_that_was_cut_short_does_not_run_again_when_somebody_comes() -> None:
    told = Told("thr")
    told.advance(shown(running("t1")), at=AT)
    events = told.advance(shown(running("t1"), others=THERE), at=AT)
    assert words(events) == []
    thread = next(
        e.data.thread
        for e in events
        if isinstance(e, Emitted) and isinstance(e.data, ThreadChanged)
    )
    assert thread.status is ThreadStatus.IDLE
    assert thread.mode is ThreadMode.FOLLOW


def test_beside_a_writer_without_locks_a_turn_may_run_and_may_not() -> None:
    told = Told("thr")
    told.advance(shown(), at=AT)
    events = told.advance(shown(running("t1"), others=Others(lockless=True)), at=AT)
    assert words(events) == ["began t1 unknown", "followedTurn"]


def test_what_turns_out_otherwise_is_replaced() -> None:
    told = Told("thr")
    told.advance(shown(running("t1")), at=AT)
    events = told.advance(shown(turn("t1")), at=AT)
    assert words(events) == ["replaced t1 completed"]


def test_turns_that_another_program_takes_back_are_named_by_what_is_left() -> None:
    told = Told("thr")
    told.advance(shown(turn("t1"), turn("t2"), turn("t3")), at=AT)
    now = shown(turn("t1"), turn("t4", at=AT + 1))
    assert reverted(told.advance(now, at=AT)) == []  # a first look may be wrong
    assert reverted(told.advance(now, at=AT)) == ["t1"]
    assert reverted(told.advance(now, at=AT)) == []


def test_turns_that_we_take_back_are_neither_missed_nor_told_again() -> None:
    told = Told("thr")
    for turn_id in ("t1", "t2", "t3"):
        live_turn(told, turn_id, [f"i-{turn_id}"])
    gone = ThreadReverted(thread_id="thr", last_turn_id="t1")
    told.note(Emitted(at=AT, thread_id="thr", data=gone))
    assert told.turns.all_before("t1")
    now = shown(turn("t1", item("i-t1", "t1")), turn("t4", at=AT + 1))
    events = told.advance(now, at=AT)
    assert words(events) == ["began t4 inProgress", "ended t4 completed"]
    assert reverted(told.advance(now, at=AT)) == []


def test_where_all_that_was_told_is_taken_back_history_is_the_base_again() -> None:
    told = Told("thr")
    live_turn(told, "t9", ["i"])
    gone = ThreadReverted(thread_id="thr", last_turn_id="t1")
    told.note(Emitted(at=AT, thread_id="thr", data=gone))
    assert told.advance(shown(turn("t0"), turn("t1")), at=AT) == []


def reverted(events: Sequence[RuntimeEvent]) -> list[str]:
    return [
        event.data.last_turn_id
        for event in events
        if isinstance(event, Emitted) and isinstance(event.data, ThreadReverted)
    ]


def test_a_live_turn_of_a_legacy_thread_is_replaced_by_history_s_once() -> None:
    told = Told("thr")
    live_turn(told, "t1", ["live-1", "live-2"], stable=False)
    now = shown(turn("t1", item("item-1", "t1", stable=False)))
    events = told.advance(now, at=AT)
    assert words(events) == ["replaced t1 completed"]
    replaced = next(e.data for e in events if isinstance(e, Emitted))
    assert isinstance(replaced, TurnReplaced)
    assert [one.id for one in replaced.turn.items or ()] == ["item-1"]
    assert words(told.advance(now, at=AT)) == []


def test_more_than_was_read_is_said_and_not_told_one_by_one() -> None:
    told = Told("thr")
    told.advance(shown(turn("t1")), at=AT)
    now = shown(turn("t8"), turn("t9"))
    assert told.turns.lacks(now.turns, since=None)
    assert words(told.advance(now, at=AT)) == ["historyGap"]
    assert words(told.advance(now, at=AT)) == []


def test_turns_that_were_taken_back_are_said_at_the_second_look() -> None:
    told = Told("thr")
    told.advance(shown(turn("t1"), turn("t2")), at=AT)
    assert words(told.advance(shown(turn("t1")), at=AT)) == []
    assert words(told.advance(shown(turn("t1")), at=AT)) == ["threadReverted"]
    assert words(told.advance(shown(turn("t1")), at=AT)) == []


def test_an_older_turn_than_the_base_is_no_news() -> None:
    told = Told("thr")
    told.advance(shown(turn("t2")), at=AT)
    assert words(told.advance(shown(turn("t1"), turn("t2")), at=AT)) == []


def live_turn(
    told: Told, turn_id: str, items: Sequence[str], *, stable: bool | None = None
) -> list[RuntimeEvent]:
    """Play a whole turn of a writer of ours."""
    began = turn(turn_id).model_copy(
        update={"status": TurnStatus.IN_PROGRESS, "items": None, "completed_at": None}
    )
    events: list[RuntimeEvent] = [event(TurnStarted(turn=began))]
    events += [
        ItemClosed(
            at=AT,
            thread_id="thr",
            item=item(one, turn_id, stable=stable, seen="codex:item/completed"),
        )
        for one in items
    ]
    ended = turn(turn_id).model_copy(update={"items": None})
    events.append(event(TurnCompleted(turn=ended)))
    for one in events:
        told.note(one)
    return events


def event(data: TurnStarted | TurnCompleted) -> Emitted:
    return Emitted(at=AT, thread_id="thr", data=data)


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
    max_examples=150, stateful_step_count=40, deadline=None
)


@given(st.lists(st.integers(0, 5), max_size=8), st.data())
def test_any_number_of_looks_tells_each_item_of_a_growing_turn_once(
    sizes: list[int], data: st.DataObject
) -> None:
    told, stored = Told("thr"), list[Item]()
    told.advance(shown(), at=AT)
    heard: list[str] = []
    for size in sizes:
        stored += [item(f"i{len(stored) + n}", "t1") for n in range(size)]
        others = data.draw(st.sampled_from([THERE, Others(lockless=True)]))
        now = shown(running("t1", *stored), others=others)
        heard += [
            e.item.id for e in told.advance(now, at=AT) if isinstance(e, ItemClosed)
        ]
    assert heard == [one.id for one in stored]
