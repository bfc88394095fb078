"""The event order of PROTOCOL.md section 6, whatever Codex says."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.errors import AnswerShapeError
from adapter.events.normalize import Normalizer
from adapter.events.notifications import NOTIFICATIONS
from adapter.events.tree import Tree
from adapter.limits import KNOWN_THREADS
from adapter.runtime.events import (
    Emitted,
    ItemClosed,
    ItemDelta,
    ItemOpened,
    RuntimeEvent,
)
from tests.support import codex_says as says
from tests.support.codex_says import AT, CHILD, THREAD, Raw
from transport.protocol.events import DeltaChannel, Notice, ThreadChanged, ThreadStarted
from transport.protocol.items import AgentMessage, Command, ItemStatus, Plan, Reasoning
from transport.protocol.threads import ThreadStatus
from transport.protocol.turns import TurnStatus


class Codex:
    """A normalizer that is told things; `told` is all that came out, in short words."""

    def __init__(self, *, adopted: bool = True, **thread: Any) -> None:
        self.normalizer = Normalizer()
        self.events: list[RuntimeEvent] = []
        if adopted:
            past = says.turn("t0", "completed")
            described = says.thread(preview="earlier", **thread)
            self.normalizer.adopt(described, [past])

    def says(self, method: str, **params: Any) -> list[RuntimeEvent]:
        events = self.normalizer.notification(method, params, AT)
        self.events += events
        return events

    def item(self, word: str, item: Raw, turn: str = "t1", on: str = THREAD) -> None:
        self.says(f"item/{word}", **says.in_turn(item, turn, on))

    def begins(self, turn: str = "t1", on: str = THREAD, **changes: Any) -> None:
        self.says("turn/started", threadId=on, turn=says.turn(turn, **changes))

    def ends(
        self, status: str = "completed", turn: str = "t1", on: str = THREAD, **more: Any
    ) -> None:
        raw = says.turn(turn, status, **more)
        self.says("turn/completed", threadId=on, turn=raw)

    def status(self, kind: str, *flags: str, on: str = THREAD) -> None:
        raw = {"type": kind, "activeFlags": list(flags)}
        self.says("thread/status/changed", threadId=on, status=raw)

    def busy(self) -> bool:
        return self.normalizer.busy

    @property
    def told(self) -> list[str]:
        return [word(event) for event in self.events]

    def of(self, kind: type[Any]) -> list[Any]:
        return [
            event.data
            for event in self.events
            if isinstance(event, Emitted) and isinstance(event.data, kind)
        ]


def word(event: RuntimeEvent) -> str:
    match event:
        case ItemOpened():
            return f"begin {event.item.id}"
        case ItemClosed():
            return f"end {event.item.id} {event.item.status}"
        case ItemDelta():
            return f"delta {event.item_id} {event.text}"
        case Emitted(data=Notice() as said):
            return f"notice {said.code}"
        case Emitted():
            return event.data.event


def closed(codex: Codex) -> list[Any]:
    return [event.item for event in codex.events if isinstance(event, ItemClosed)]


# Turns


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


# Items


def test_a_command_goes_on_when_its_turn_has_completed() -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.command(processId="7"))
    codex.ends()
    assert codex.busy()
    codex.begins("t2")
    codex.says("item/commandExecution/outputDelta", **says.delta("call_1", "tick"))
    codex.item("completed", says.command(status="completed", exitCode=0))
    last = closed(codex)[-1]
    assert (last.turn_id, last.background) == ("t1", True)
    codex.ends(turn="t2")
    assert not codex.busy()


def test_a_half_message_of_a_completed_turn_is_ended() -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.message())
    codex.ends()
    assert "end msg_1 interrupted" in codex.told
    assert not codex.busy()


def test_a_command_of_an_interrupted_turn_keeps_the_writer_until_it_ends() -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.command(processId="7"))
    codex.ends("interrupted")
    assert "notice stillRunning" in codex.told
    assert codex.busy()
    before = len(codex.events)
    codex.says("item/commandExecution/outputDelta", **says.delta("call_1", "late"))
    codex.item("completed", says.command(status="completed"))
    assert codex.events[before:] == []
    assert not codex.busy()


def test_a_command_that_was_approved_and_printed_something_runs_on_too() -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.command())  # it waited: no process yet
    codex.says("item/commandExecution/outputDelta", **says.delta("call_1", "tick"))
    codex.ends("interrupted")
    assert codex.busy()


def test_a_command_that_never_ran_does_not_keep_the_writer() -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.command())
    codex.ends("interrupted")
    assert "notice stillRunning" not in codex.told
    assert not codex.busy()


def test_an_item_that_ends_without_a_beginning_is_begun_first() -> None:
    codex = Codex()
    codex.begins()
    codex.item("completed", says.message(text="whole"))
    assert codex.told[-2:] == ["begin msg_1", "end msg_1 completed"]


def test_an_item_ends_once() -> None:
    codex = Codex()
    codex.begins()
    codex.item("completed", says.message(text="whole"))
    codex.item("completed", says.message(text="whole"))
    assert codex.told.count("end msg_1 completed") == 1


def test_an_item_of_an_unknown_turn_beside_a_running_one_is_in_the_background() -> None:
    codex = Codex()
    codex.begins()
    codex.item("completed", says.command(status="completed"), turn="long-ago")
    assert codex.told.count("turn/started") == 1
    assert closed(codex)[-1].background is True


def test_an_end_of_unknown_shape_still_ends_the_item() -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.message())
    codex.says("item/agentMessage/delta", **says.delta("msg_1", "so far"))
    codex.item("completed", {**says.message(), "text": None})
    last = closed(codex)[-1]
    assert (last.status, last.text) == (ItemStatus.OTHER, "so far")


def test_reasoning_keeps_its_parts_apart() -> None:
    codex = Codex()
    codex.begins()
    raw: Raw = {"type": "reasoning", "id": "rs", "summary": [], "content": []}
    codex.item("started", raw)
    for part, words in ((0, "first"), (1, "second")):
        said = says.delta("rs", words, summaryIndex=part)
        codex.says("item/reasoning/summaryTextDelta", **said)
    codex.says("item/reasoning/textDelta", **says.delta("rs", "raw", contentIndex=0))
    deltas = [event for event in codex.events if isinstance(event, ItemDelta)]
    assert [(d.channel, d.part) for d in deltas] == [
        (DeltaChannel.SUMMARY, 0),
        (DeltaChannel.SUMMARY, 1),
        (DeltaChannel.REASONING, 0),
    ]
    item = codex.normalizer.item(THREAD, "rs")
    assert isinstance(item, Reasoning)
    assert (item.summary, item.text) == (["first\n\nsecond"], "raw")


def test_a_flood_of_output_is_held_as_head_and_tail_with_its_true_size() -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.command())
    for number in range(1000):
        line = f"{number:>9}\n" * 100
        codex.says("item/commandExecution/outputDelta", **says.delta("call_1", line))
    item = codex.normalizer.item(THREAD, "call_1")
    assert isinstance(item, Command)
    assert item.output_bytes == 1_000_000
    assert len(item.output.encode()) <= 64 * 1024
    assert item.output.startswith("        0\n")
    assert item.output.endswith("      999\n")
    assert item.truncated == ["output"]
    assert item.sizes == {"output": 1_000_000}


def test_a_huge_delta_is_told_in_parts_of_whole_characters() -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.message())
    text = "ä" * 100_000
    codex.says("item/agentMessage/delta", **says.delta("msg_1", text))
    deltas = [event.text for event in codex.events if isinstance(event, ItemDelta)]
    assert "".join(deltas) == text
    assert max(len(part.encode()) for part in deltas) <= 32 * 1024


def test_a_provider_s_strange_item_id_becomes_a_legal_one_everywhere() -> None:
    codex = Codex()
    codex.begins()
    strange = "message with spaces"
    codex.item("started", says.message(strange))
    codex.says("item/agentMessage/delta", **says.delta(strange, "x"))
    codex.item("completed", says.message(strange, text="x"))
    ids = {e.item.id for e in codex.events if isinstance(e, ItemOpened | ItemClosed)}
    ids |= {e.item_id for e in codex.events if isinstance(e, ItemDelta)}
    assert len(ids) == 1
    assert " " not in ids.pop()


def test_a_text_that_utf_8_cannot_hold_is_told_all_the_same() -> None:
    codex = Codex()
    codex.begins()
    codex.item("completed", says.message(text="a\ud800b"))
    assert closed(codex)[-1].text == "a?b"


def test_a_legacy_thread_s_live_ids_are_not_its_history_s() -> None:
    codex = Codex(historyMode="legacy")
    codex.begins()
    codex.item("completed", says.message(text="x"))
    assert closed(codex)[-1].stable_id is False


# Threads


def test_a_new_thread_is_told_with_its_first_turn() -> None:
    codex = Codex(adopted=False)
    codex.normalizer.adopt(says.thread(), [])
    codex.says("thread/started", thread=says.thread())
    codex.status("active")
    assert codex.told == []
    codex.begins()
    codex.item("started", says.user("fix the tests"))
    codex.item("completed", says.user("fix the tests"))
    assert codex.told[:2] == ["thread/started", "turn/started"]
    assert codex.of(ThreadChanged)[-1].thread.preview == "fix the tests"


def test_a_new_thread_keeps_the_settings_that_its_answer_told() -> None:
    codex = Codex(adopted=False)
    answer = {
        "thread": says.thread(),
        "cwd": "/work/app",
        "model": "gpt-5",
        "modelProvider": "mock",
        "approvalPolicy": "on-request",
        "sandbox": {"type": "readOnly"},
    }
    codex.normalizer.adopt(says.thread(), [])
    codex.normalizer.settle(answer)
    codex.says("thread/started", thread=says.thread())  # it may come behind the answer
    thread = codex.normalizer.thread(str(says.thread()["id"]))
    assert thread is not None
    assert thread.settings is not None
    assert thread.settings.model == "gpt-5"


def test_a_thread_that_is_told_of_late_stays_as_it_was_told_since() -> None:
    codex = Codex(adopted=False)
    codex.normalizer.adopt(says.thread(), [])
    settings = {"approvalPolicy": "never", "sandboxPolicy": {"type": "readOnly"}}
    moved = {**settings, "cwd": "/work/other"}
    codex.says("thread/settings/updated", threadId=THREAD, threadSettings=moved)
    codex.says("thread/name/updated", threadId=THREAD, threadName="Tests")
    codex.status("active", "waitingOnApproval")
    codex.says("thread/started", thread=says.thread())
    thread = codex.normalizer.thread(THREAD)
    assert thread is not None
    assert (thread.cwd, thread.title) == ("/work/other", "Tests")
    assert thread.status is ThreadStatus.WAITING_ON_APPROVAL
    codex.begins()
    assert codex.told[-2:] == ["thread/started", "turn/started"]


def test_a_resumed_thread_is_not_told_as_new() -> None:
    codex = Codex()
    codex.begins()
    assert codex.of(ThreadStarted) == []


def test_events_before_the_answer_to_a_resume_are_not_lost() -> None:
    codex = Codex(adopted=False)
    codex.status("active")
    codex.begins("t1")
    codex.normalizer.adopt(
        says.thread(), [says.turn("t1"), says.turn("t0", "completed")]
    )
    assert codex.normalizer.running_turn(THREAD) == "t1"
    codex.ends()
    assert codex.told.count("turn/completed") == 1


def test_a_turn_that_ended_before_the_answer_to_a_resume_is_the_newest() -> None:
    codex = Codex(adopted=False)
    codex.begins("t1")
    codex.ends(turn="t1")
    codex.normalizer.adopt(says.thread(), [says.turn("t0", "completed")])
    assert codex.normalizer.last_turn(THREAD) == "t1"
    assert codex.normalizer.knows_turn("t0")


def test_a_turn_that_the_answer_lists_as_running_is_told_by_its_first_event() -> None:
    codex = Codex(adopted=False)
    running = says.thread(status={"type": "active", "activeFlags": []})
    codex.normalizer.adopt(running, [says.turn("t1")])
    assert codex.busy()
    codex.item("started", says.message())
    assert codex.told[:2] == ["turn/started", "begin msg_1"]
    codex.ends()
    assert not codex.busy()


def test_a_stored_turn_in_progress_of_an_idle_thread_does_not_keep_the_writer() -> None:
    codex = Codex(adopted=False)
    codex.normalizer.adopt(says.thread(), [says.turn("t1")])
    assert not codex.busy()
    assert codex.normalizer.last_turn(THREAD) == "t1"


def test_a_new_title_changes_the_thread() -> None:
    codex = Codex()
    codex.says("thread/name/updated", threadId=THREAD, threadName="Tests")
    assert codex.of(ThreadChanged)[-1].thread.title == "Tests"


def test_what_is_told_of_an_unloaded_thread_is_counted() -> None:
    codex = Codex(adopted=False)
    codex.says("thread/name/updated", threadId=THREAD, threadName="Tests")
    assert codex.events == []
    assert sum(codex.normalizer.skipped.values()) == 1


def test_another_thread_in_a_writer_is_a_sub_agent_of_its_root() -> None:
    codex = Codex()
    codex.begins()
    codex.status("idle", on=CHILD)
    codex.begins("c1", on=CHILD, rootTurnId="t1")
    codex.item("completed", says.message("m", text="hi"), turn="c1", on=CHILD)
    codex.ends(turn="c1", on=CHILD)
    mine = [event for event in codex.events if event.thread_id == CHILD]
    assert [word(event) for event in mine][:2] == ["thread/started", "turn/started"]
    assert {event.root_thread_id for event in mine} == {THREAD}
    thread = codex.of(ThreadStarted)[0].thread
    assert (thread.root_id, thread.parent_id) == (THREAD, THREAD)
    assert codex.normalizer.root_of(CHILD) == THREAD
    assert codex.normalizer.tree(THREAD) == {THREAD, CHILD}
    assert codex.normalizer.root_of(THREAD) is None


def test_a_sub_agent_s_thread_is_called_as_its_parent_calls_it() -> None:
    codex = Codex()
    codex.begins()
    spawned: Raw = {"type": "subAgentActivity", "id": "a1", "kind": "started"}
    spawned |= {"agentThreadId": CHILD, "agentPath": "/root/bee"}
    codex.item("completed", spawned)
    codex.begins("c1", on=CHILD, rootTurnId="t1")
    assert codex.of(ThreadStarted)[0].thread.title == "/root/bee"


def test_a_running_sub_agent_keeps_the_writer() -> None:
    codex = Codex()
    codex.begins()
    codex.begins("c1", on=CHILD, rootTurnId="t1")
    codex.ends()
    assert codex.busy()
    codex.ends(turn="c1", on=CHILD)
    assert not codex.busy()


def test_a_grandchild_s_root_is_the_thread_that_was_loaded() -> None:
    codex = Codex()
    codex.begins()
    watch = {"type": "subAgentActivity", "id": "a", "kind": "started", "agentPath": "x"}
    codex.item("started", {**watch, "agentThreadId": CHILD})
    codex.item("started", {**watch, "agentThreadId": "grand"}, turn="c1", on=CHILD)
    assert codex.normalizer.root_of("grand") == THREAD
    assert codex.normalizer.tree(CHILD) == {CHILD, "grand"}


def test_an_active_goal_keeps_the_writer_and_a_cleared_one_does_not() -> None:
    codex = Codex()
    goal = {"objective": "x", "status": "active", "threadId": THREAD}
    codex.says("thread/goal/updated", threadId=THREAD, goal=goal)
    assert codex.busy()
    codex.says("thread/goal/updated", threadId=THREAD, goal={**goal, "tokensUsed": 9})
    codex.says("thread/goal/cleared", threadId=THREAD)
    codex.says("thread/goal/cleared", threadId=THREAD)
    assert not codex.busy()
    told = [event.data for event in codex.events if isinstance(event, Emitted)]
    assert [data.wire() for data in told] == [
        {"goal": {"objective": "x", "status": "active"}},
        {},
    ]


def test_an_archived_thread_ends_what_ran_in_it_and_is_gone() -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.command())
    codex.says("thread/archived", threadId=THREAD)
    assert codex.told[-3:] == [
        "end call_1 interrupted",
        "turn/completed",
        "thread/removed",
    ]
    assert not codex.busy()


def test_settings_are_shown_as_codex_last_told_them() -> None:
    codex = Codex()
    settings: Raw = {
        "model": "gpt-5.5",
        "effort": "high",
        "approvalPolicy": {"granular": {"rules": True}},
        "sandboxPolicy": {"type": "workspaceWrite", "networkAccess": False},
        "collaborationMode": {"mode": "plan", "settings": {}},
    }
    codex.says("thread/settings/updated", threadId=THREAD, threadSettings=settings)
    shown = codex.of(ThreadChanged)[-1].thread.settings
    assert shown is not None
    assert shown.wire() == {
        "model": "gpt-5.5",
        "effort": "high",
        "mode": "plan",
        "sandbox": "workspace-write",
        "approvalPolicy": "granular",
    }


def test_a_death_ends_everything_and_is_said() -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.command(processId="7"))
    codex.ends()
    codex.begins("t2")
    codex.item("started", says.message(), turn="t2")
    codex.events = codex.normalizer.died(AT, "codex ended with -9")
    assert codex.told == [
        "end call_1 interrupted",
        "end msg_1 interrupted",
        "turn/completed",
        "notice runtimeDied",
    ]
    assert not codex.busy()
    assert codex.normalizer.ended(AT) == []


# Notices, and what does not fit


def test_a_warning_that_comes_with_every_turn_is_said_once() -> None:
    codex = Codex()
    for _ in range(3):
        codex.says("warning", threadId=THREAD, message="no metadata")
    assert codex.told == ["notice codexWarning"]
    assert codex.events[0].thread_id == THREAD


def test_each_retry_is_said_and_a_final_error_is_its_turn_s() -> None:
    codex = Codex()
    error = {"message": "Reconnecting... 1/2", "codexErrorInfo": None}
    said = {"error": error, "threadId": THREAD, "turnId": "t1"}
    codex.says("error", **said, willRetry=True)
    codex.says("error", **said, willRetry=True)
    codex.says("error", **said, willRetry=False)
    assert codex.told == ["notice modelRetry", "notice modelRetry"]


def test_a_retry_ends_what_the_lost_call_had_begun_to_say_and_nothing_else() -> None:
    codex = Codex()
    codex.begins()
    codex.item("started", says.command(processId="7"))
    codex.item("started", says.message())
    codex.says("item/agentMessage/delta", **says.delta("msg_1", "half a"))
    error = {"message": "Reconnecting... 1/2", "additionalDetails": "stream closed"}
    said = {"error": error, "threadId": THREAD, "turnId": "t1"}
    codex.says("error", **said, willRetry=True)
    assert codex.told[-2:] == ["end msg_1 interrupted", "notice modelRetry"]
    assert closed(codex)[-1].text == "half a"
    assert codex.of(Notice)[0].message == "Reconnecting... 1/2: stream closed"
    codex.item("started", says.message())  # a provider may use its id again
    codex.item("completed", says.message(text="whole"))
    assert closed(codex)[-1].text == "whole"
    codex.item("completed", says.command(status="completed", exitCode=0))
    assert closed(codex)[-1].exit_code == 0


def test_a_plan_grows_by_its_deltas() -> None:
    codex = Codex()
    codex.begins()
    plan: Raw = {"type": "plan", "id": "p1", "text": ""}
    codex.item("started", plan)
    codex.says("item/plan/delta", **says.delta("p1", "# Plan\n"))
    codex.says("item/plan/delta", **says.delta("p1", "- a"))
    now = codex.normalizer.item(THREAD, "p1")
    assert isinstance(now, Plan)
    assert now.text == "# Plan\n- a"
    codex.ends("interrupted")
    assert closed(codex)[-1].text == "# Plan\n- a"


@pytest.mark.parametrize(
    ("event", "status", "entries", "told"),
    [
        ("permissionRequest", "completed", [], ["decidedLocally"]),
        ("permissionRequest", "blocked", [{"text": "not today"}], ["hookStopped"]),
        ("preToolUse", "completed", [], []),
        ("preToolUse", "failed", [], ["hookStopped"]),
    ],
)
def test_what_a_hook_decides_in_place_of_the_person_is_told(
    event: str, status: str, entries: list[Raw], told: list[str]
) -> None:
    codex = Codex()
    run = {"eventName": event, "status": status, "entries": entries}
    codex.says("hook/completed", threadId=THREAD, turnId="t1", run=run)
    assert [said.code for said in codex.of(Notice)] == told
    assert all(event.thread_id == THREAD for event in codex.events)


def test_a_notification_of_a_newer_codex_is_a_notice_once_and_counted() -> None:
    codex = Codex()
    codex.says("thread/dreamt/of", threadId=THREAD)
    codex.says("thread/dreamt/of", threadId=THREAD)
    assert codex.told == ["notice unknownMessage"]
    assert codex.normalizer.misfits == {"thread/dreamt/of": 2}


def test_a_shape_that_does_not_fit_is_a_notice_and_changes_nothing() -> None:
    codex = Codex()
    codex.says("turn/started", threadId=THREAD, turn={"id": 7})
    assert codex.told == ["notice unknownMessage"]
    assert not codex.busy()


def test_what_is_ignored_is_counted() -> None:
    codex = Codex()
    codex.says("skills/changed")
    assert codex.normalizer.ignored == {"skills/changed": 1}


def test_an_answer_that_does_not_fit_is_an_error_of_its_own() -> None:
    with pytest.raises(AnswerShapeError):
        Normalizer().adopt({"id": "x"}, [])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "threadId",
                    "turnId",
                    "itemId",
                    "turn",
                    "thread",
                    "item",
                    "id",
                    "type",
                    "status",
                    "items",
                    "delta",
                    "plan",
                ]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=12,
)


@given(st.lists(st.tuples(st.sampled_from(sorted(NOTIFICATIONS)), JSON), max_size=8))
def test_nothing_that_codex_could_say_raises(said: list[tuple[str, Any]]) -> None:
    codex = Codex()
    codex.begins()
    for method, params in said:
        codex.normalizer.notification(method, params, AT)
    codex.normalizer.died(AT, "enough")
    assert not codex.busy()


def test_a_reader_that_hears_of_thousands_of_threads_forgets_the_older_ones() -> None:
    tree = Tree()
    for number in range(3 * KNOWN_THREADS):
        tree.node(f"t{number}")
        assert len(tree.nodes) <= KNOWN_THREADS
    newest = f"t{3 * KNOWN_THREADS - 1}"
    assert newest in tree.nodes
    tree.drop(newest)
    assert newest not in tree.nodes
