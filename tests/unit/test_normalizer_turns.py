"""The event order of PROTOCOL.md section 6, whatever Codex says: turns."""

import pytest

from tests.support import codex_says as says
from tests.support.codex_says import THREAD
from tests.support.told import Codex, closed
from transport.protocol.events import ThreadChanged
from transport.protocol.items import AgentMessage
from transport.protocol.threads import ThreadStatus
from transport.protocol.turns import TurnStatus


def test_a_message_is_told_from_its_beginning_to_its_end() -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.message())
    codex.says("item/agentMessage/delta", **says.delta("msg_1", "hel"))
    codex.says("item/agentMessage/delta", **says.delta("msg_1", "lo"))
    codex.item("completed", says.message(text="hello"))
    codex.ends()
    assert codex.told == [
        "turn/started",
        "thread/changed",
        "begin msg_1",
        "delta msg_1 hel",
        "delta msg_1 lo",
        "end msg_1 completed",
        "turn/completed",
        "thread/changed",
    ]


def test_idle_is_not_told_before_the_turn_has_ended() -> None:
    codex = Codex()
    codex.status("active")
    codex.begins()
    codex.status("idle")
    assert codex.normalizer.status(THREAD) is ThreadStatus.RUNNING
    assert codex.busy()
    codex.ends()
    assert codex.told[-2:] == ["turn/completed", "thread/changed"]
    assert codex.of(ThreadChanged)[-1].thread.status is ThreadStatus.IDLE
    assert codex.normalizer.status(THREAD) is ThreadStatus.IDLE
    assert not codex.busy()


def test_a_failed_thread_is_told_after_its_turn() -> None:
    codex = Codex()
    codex.begins()
    codex.status("systemError")
    codex.ends("failed", error={"message": "no", "codexErrorInfo": "badRequest"})
    assert codex.of(ThreadChanged)[-1].thread.status is ThreadStatus.FAILED
    ended = codex.normalizer.ended_turn("t1")
    assert ended is not None
    assert ended.error is not None
    assert ended.error.code == "badRequest"


@pytest.mark.parametrize("status", ["interrupted", "failed"])
def test_a_turn_that_did_not_complete_ends_its_items_first(status: str) -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.message())
    codex.says("item/agentMessage/delta", **says.delta("msg_1", "half"))
    codex.item("started", says.command())
    codex.ends(status)
    assert codex.told[-4:-1] == [
        "end msg_1 interrupted",
        "end call_1 interrupted",
        "turn/completed",
    ]
    assert closed(codex)[0].text == "half"


def test_an_approval_that_waits_shows_on_the_thread() -> None:
    codex = Codex()
    codex.begins()
    codex.status("active", "waitingOnApproval")
    assert codex.normalizer.status(THREAD) is ThreadStatus.WAITING_ON_APPROVAL
    codex.status("active")
    assert codex.normalizer.status(THREAD) is ThreadStatus.RUNNING


def test_an_item_tells_its_turn_first_where_codex_has_not() -> None:
    codex = Codex(adopted=False)
    codex.item("started", says.message())
    codex.begins()
    assert codex.told == ["turn/started", "begin msg_1"]


def test_a_turn_whose_end_codex_swallowed_is_ended_when_the_next_begins() -> None:
    codex = Codex()
    codex.begins("t1")
    codex.item("started", says.message())
    codex.begins("t2")
    ended = codex.normalizer.ended_turn("t1")
    assert ended is not None
    assert (ended.status, ended.inferred) == (TurnStatus.INTERRUPTED, True)
    assert codex.told[3:] == [
        "end msg_1 interrupted",
        "turn/completed",
        "turn/started",
    ]
    assert codex.normalizer.running_turn(THREAD) == "t2"


def test_a_turn_is_ended_once() -> None:
    codex = Codex()
    codex.begins()
    codex.ends()
    codex.ends()
    assert codex.told.count("turn/completed") == 1


def test_a_phantom_turn_id_is_unknown() -> None:
    codex = Codex()
    codex.begins()
    assert codex.normalizer.knows_turn("t0")
    assert codex.normalizer.knows_turn("t1")
    assert not codex.normalizer.knows_turn("phantom")
    assert codex.normalizer.last_turn(THREAD) == "t1"


def test_a_review_s_second_turn_id_is_the_first_s_turn() -> None:
    codex = Codex()
    codex.item("started", says.message("m0"), turn="review")
    codex.begins("inner", rootTurnId="review")
    codex.item("started", says.message("m1"), turn="review")
    codex.ends(turn="review")
    assert codex.told.count("turn/started") == 1
    assert codex.normalizer.ended_turn("inner") is not None
    assert not codex.busy()


def test_a_review_that_begins_before_its_items_is_one_turn_too() -> None:
    codex = Codex()
    codex.begins("inner", rootTurnId="review")
    codex.item("started", says.message("m1"), turn="review")
    codex.ends(turn="review")
    assert codex.told.count("turn/started") == codex.told.count("turn/completed") == 1
    assert not codex.busy()


def test_a_running_turn_is_read_with_its_items_so_far() -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.user())
    codex.item("completed", says.user())
    codex.item("started", says.message())
    codex.says("item/agentMessage/delta", **says.delta("msg_1", "so far"))
    turn = codex.normalizer.live_turn("t1")
    assert turn is not None
    assert turn.items is not None
    assert [item.id for item in turn.items] == ["u1", "msg_1"]
    assert isinstance(turn.items[1], AgentMessage)
    assert turn.items[1].text == "so far"
    codex.ends()
    assert codex.normalizer.live_turn("t1") is None


def test_a_long_turn_keeps_its_newest_items_and_says_that_there_are_more() -> None:
    codex = Codex()
    codex.begins()
    for number in range(250):
        codex.item("completed", says.message(f"m{number}", text="x"))
    turn = codex.normalizer.live_turn("t1")
    assert turn is not None
    assert turn.items is not None
    assert len(turn.items) == 200
    assert turn.items[-1].id == "m249"
    assert turn.more_items is True


def test_usage_is_told_for_a_running_turn_alone() -> None:
    codex = Codex()
    counts = {
        "totalTokens": 15,
        "inputTokens": 10,
        "cachedInputTokens": 1,
        "outputTokens": 4,
        "reasoningOutputTokens": 0,
    }
    last = {**counts, "totalTokens": 11}
    usage = {"total": counts, "last": last, "modelContextWindow": 258400}
    said = {"threadId": THREAD, "tokenUsage": usage}
    codex.says("thread/tokenUsage/updated", turnId="t0", **said)  # as after a resume
    codex.begins()
    codex.says("thread/tokenUsage/updated", turnId="t1", **said)
    codex.ends()
    assert codex.told.count("usage/changed") == 1
    ended = codex.normalizer.ended_turn("t1")
    assert ended is not None
    assert ended.usage is not None
    assert (ended.usage.input, ended.usage.context_window) == (10, 258400)
    assert (ended.usage.total, ended.usage.context_used) == (15, 11)
