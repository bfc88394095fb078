"""What history shows beyond what was told, whoever told it, and at whatever moment."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from adapter.runtime.events import Emitted, ItemClosed, RuntimeEvent
from agent.following.follow import Told
from agent.reading.standing import Others
from tests.support.fake_threads import AT
from tests.support.looks import THERE, item, live_turn, running, shown, turn
from transport.protocol.events import (
    Notice,
    ThreadChanged,
    ThreadReverted,
    ThreadStarted,
    TurnCompleted,
    TurnReplaced,
    TurnStarted,
)
from transport.protocol.items import Item
from transport.protocol.threads import ThreadMode, ThreadStatus


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
