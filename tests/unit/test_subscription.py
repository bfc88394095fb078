"""What a client shows and what it skips. PROTOCOL.md sections 1 and 2."""

from typing import Any

import pytest

from transport.errors import RemoteProtocolError
from transport.protocol.events import DeltaChannel, ItemCompleted, ItemStarted, Notice
from transport.protocol.session import ResumeFrom, SubscribeResult
from transport.subscription import (
    ClientEvent,
    DeltaSeen,
    EventSeen,
    Resumed,
    Subscription,
)

ITEM = {"id": "i1", "turnId": "t1", "status": "inProgress", "kind": "agentMessage"}


def item(text: str) -> dict[str, Any]:
    return {**ITEM, "text": text}


def notice(seq: int, **more: Any) -> dict[str, Any]:
    data = {"level": "info", "code": "c", "message": "m"}
    return {"seq": seq, "event": "notice", "at": 7, "data": data, **more}


def started(seq: int, ref: int, text: str = "") -> dict[str, Any]:
    data = {"ref": ref, "item": item(text)}
    return {
        "seq": seq,
        "event": "item/started",
        "at": 7,
        "threadId": "th",
        "data": data,
    }


def completed(seq: int, ref: int) -> dict[str, Any]:
    return {**started(seq, ref, "whole"), "event": "item/completed"}


def delta(seq: int, ref: int, text: str = "x") -> dict[str, Any]:
    return {"d": [seq, ref, 0, 0, text]}


def answer(
    verdict: str, head: int, *opened: tuple[int, int], epoch: str = "e1"
) -> SubscribeResult:
    rows = [{"ref": ref, "seq": seq, "item": item("so far")} for ref, seq in opened]
    return SubscribeResult.model_validate(
        {"epoch": epoch, "head": head, "verdict": verdict, "open": rows}
    )


def subscribed(head: int = 100, *opened: tuple[int, int]) -> Subscription:
    subscription = Subscription("all", deltas=True)
    subscription.params()
    subscription.answered(answer("new", head, *opened))
    return subscription


def seen(subscription: Subscription, *frames: dict[str, Any]) -> list[ClientEvent]:
    return [event for frame in frames for event in subscription.events(frame)]


def seqs(events: list[ClientEvent]) -> list[int]:
    return [event.seq for event in events if not isinstance(event, Resumed)]


def cursor(subscription: Subscription) -> int:
    resume = subscription.params().resume
    assert resume is not None
    return resume.seq


def test_the_first_request_asks_for_no_resume() -> None:
    assert Subscription("all", deltas=True).params().resume is None


def test_an_event_is_shown_with_all_that_it_says() -> None:
    frame = notice(101, threadId="th", rootThreadId="root")
    (event,) = seen(subscribed(), frame)
    assert isinstance(event, EventSeen)
    assert isinstance(event.data, Notice)
    assert (event.seq, event.at) == (101, 7)
    assert (event.thread_id, event.root_thread_id) == ("th", "root")


def test_the_next_request_goes_on_from_the_last_event() -> None:
    subscription = subscribed()
    seen(subscription, notice(101), started(105, 1), delta(110, 1))
    assert subscription.params().resume == ResumeFrom(epoch="e1", seq=110)


def test_what_comes_again_is_skipped() -> None:
    subscription = subscribed()
    frames = [notice(101), started(102, 1), delta(103, 1), delta(104, 1)]
    assert seqs(seen(subscription, *frames)) == [101, 102, 103, 104]
    assert seen(subscription, *frames) == []


def test_nothing_is_taken_between_a_request_and_its_answer() -> None:
    subscription = subscribed()
    seen(subscription, notice(101))
    subscription.params()
    assert seen(subscription, notice(102)) == []
    subscription.answered(answer("ok", 102))
    assert seqs(seen(subscription, notice(102))) == [102]


def test_deltas_of_an_item_that_nobody_introduced_are_skipped() -> None:
    subscription = subscribed()
    assert seen(subscription, delta(101, 9)) == []
    assert cursor(subscription) == 101


def test_deltas_that_an_open_item_holds_already_are_skipped() -> None:
    subscription = subscribed(100, (31, 120))
    frames = [delta(118, 31), delta(120, 31), delta(121, 31, "new")]
    (event,) = seen(subscription, *frames)
    assert event == DeltaSeen(
        seq=121, ref=31, channel=DeltaChannel.TEXT, part=0, text="new"
    )


def test_an_items_start_does_not_undo_its_open_state() -> None:
    subscription = Subscription("all", deltas=True)
    subscription.params()
    subscription.answered(answer("ok", 130, (31, 120)))
    frames = [started(110, 31), delta(115, 31), delta(125, 31), completed(126, 31)]
    assert seqs(seen(subscription, *frames)) == [125, 126]


def test_an_item_that_was_completed_takes_no_more_deltas() -> None:
    frames = [started(101, 1), completed(102, 1), delta(103, 1)]
    first, second = seen(subscribed(), *frames)
    assert isinstance(first, EventSeen)
    assert isinstance(second, EventSeen)
    assert isinstance(first.data, ItemStarted)
    assert isinstance(second.data, ItemCompleted)


def test_deltas_come_in_batches_too() -> None:
    subscription = subscribed(100, (1, 100), (2, 100))
    batch = {"ds": [[101, 1, 0, 0, "a"], [102, 2, 3, 0, "b"], [103, 9, 0, 0, "c"]]}
    events = seen(subscription, batch)
    assert seqs(events) == [101, 102]
    assert isinstance(events[1], DeltaSeen)
    assert events[1].channel is DeltaChannel.OUTPUT


def test_ok_goes_on_from_the_cursor_and_gap_from_the_head() -> None:
    for verdict, first in (("ok", 102), ("gap", 151)):
        subscription = subscribed()
        seen(subscription, notice(101))
        subscription.params()
        subscription.answered(answer(verdict, 150))
        events = seen(subscription, *(notice(seq) for seq in range(101, 153)))
        assert seqs(events)[0] == first


def test_a_gap_in_the_session_says_where_to_go_on() -> None:
    subscription = subscribed(100, (1, 100))
    opened = [{"ref": 5, "seq": 190, "item": item("so far")}]
    gap = {"event": "gap", "data": {"epoch": "e2", "head": 200, "open": opened}}
    (event,) = seen(subscription, gap)
    assert isinstance(event, Resumed)
    assert (event.verdict, event.epoch, event.head) == ("gap", "e2", 200)
    assert [one.ref for one in event.open] == [5]
    assert seqs(seen(subscription, delta(201, 1), delta(202, 5))) == [202]
    assert subscription.params().resume == ResumeFrom(epoch="e2", seq=202)


def test_a_pong_moves_the_cursor_over_what_was_filtered_out() -> None:
    subscription = subscribed()
    subscription.caught_up(140)
    subscription.caught_up(130)
    assert cursor(subscription) == 140


def test_a_pong_moves_nothing_while_events_are_dropped() -> None:
    subscription = subscribed()
    seen(subscription, notice(101))
    subscription.pause()
    assert seen(subscription, notice(102)) == []
    subscription.caught_up(140)
    assert cursor(subscription) == 101


@pytest.mark.parametrize(
    "frame",
    [
        {"seq": 101, "event": "comet/seen", "at": 7, "data": {"x": 1}},
        {"event": "session/whatever", "data": {}},
        {"d": [101, 1, 99, 0, "a channel of a newer Agent"]},
        {"news": "of a newer Agent"},
    ],
)
def test_what_a_newer_agent_tells_is_ignored(frame: dict[str, Any]) -> None:
    assert seen(subscribed(100, (1, 100)), frame) == []


def test_an_enum_value_of_a_newer_agent_reads_as_other() -> None:
    frame = notice(101)
    frame["data"]["level"] = "shouted"
    (event,) = seen(subscribed(), frame)
    assert isinstance(event, EventSeen)
    assert isinstance(event.data, Notice)
    assert event.data.level == "other"


@pytest.mark.parametrize(
    "frame",
    [
        {"d": [1, 2, 3]},
        {"d": "text"},
        {"d": [101, 1, 0, 0, b"bytes"]},
        {"ds": 5},
        {"ds": [5]},
        {"seq": 101, "event": "notice", "at": 7, "data": {"level": "info"}},
        {"seq": 101, "event": "notice", "at": 7},
        {"seq": 101, "event": "notice", "data": notice(1)["data"]},
        {"event": "gap", "data": {}},
    ],
)
def test_a_frame_that_is_none_of_the_protocols_is_refused_and_told_as_a_gap(
    frame: dict[str, Any],
) -> None:
    subscription = subscribed()
    with pytest.raises(RemoteProtocolError):
        seen(subscription, frame)
    subscription.params()
    assert subscription.answered(answer("ok", 150)).verdict == "gap"
    assert seqs(seen(subscription, notice(150), notice(151))) == [151]
    subscription.params()
    assert subscription.answered(answer("ok", 151)).verdict == "ok"
