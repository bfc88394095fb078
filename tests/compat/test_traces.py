"""Every recorded run of a real codex, 0.145 to 0.171, through the adapter's cores.

What PROTOCOL.md section 6 promises must hold for each of them.
"""

from functools import cache
from typing import Any, Final

import jsonschema_rs
import pytest

from adapter.events.invariants import Broken, Invariants
from adapter.events.notifications import NOTIFICATIONS, Ignored
from adapter.runtime.events import Emitted, ItemClosed, ItemDelta, ItemOpened
from adapter.shapes.shapes import wire_id
from tests.support.replay import TRACES, Replay, read_trace, said, trace_names
from transport.protocol.events import (
    ApprovalRequested,
    ItemCompleted,
    Notice,
    ThreadStarted,
    TurnCompleted,
    TurnStarted,
    UsageChanged,
)
from transport.protocol.items import AgentMessage, Command, ItemStatus, Plan, Subagent
from transport.protocol.schema import protocol_schema
from transport.protocol.turns import TurnStatus

EVERY: Final = pytest.mark.parametrize("name", trace_names())
SKIPPED: Final = {
    "a change of a thread that is not loaded here",
    "a turn that began twice",  # a review's second id
    "the usage of a turn that does not run",  # Codex repeats it after a resume
}


@cache
def played(name: str) -> Replay:
    return Replay(lines=read_trace(name)).run()


@cache
def validator(name: str) -> Any:
    return jsonschema_rs.validator_for({**protocol_schema(), "$ref": f"#/$defs/{name}"})


def test_there_are_traces() -> None:
    assert len(trace_names()) >= 88


@EVERY
def test_nothing_is_dropped_without_a_reason(name: str) -> None:
    normalizer = played(name).intake.normalizer
    assert not normalizer.misfits
    assert set(normalizer.skipped) <= SKIPPED
    for method in normalizer.ignored:
        assert isinstance(NOTIFICATIONS[method], Ignored)


@EVERY
def test_every_item_that_codex_began_or_ended_is_told_in_its_order(name: str) -> None:
    replay = played(name)
    began = [wire_id(p["item"]["id"]) for p in said(replay.lines, "item/started")]
    ended = [wire_id(p["item"]["id"]) for p in said(replay.lines, "item/completed")]
    opened = [e.item.id for e in replay.events if isinstance(e, ItemOpened)]
    closed = [e.item for e in replay.events if isinstance(e, ItemClosed)]
    assert opened == began
    own = [item.id for item in closed if item.provenance == "codex:item/completed"]
    assert own == ended


@EVERY
def test_no_promise_about_the_order_of_events_is_broken(name: str) -> None:
    rules, broken = Invariants(), list[Broken]()
    for event in played(name).events:
        broken += rules.see(event)
    assert broken + rules.end() == []
    assert not played(name).intake.normalizer.busy


@EVERY
def test_no_piece_of_a_text_is_empty(name: str) -> None:
    events = played(name).events
    assert all(event.text for event in events if isinstance(event, ItemDelta))


@EVERY
def test_all_that_is_told_fits_the_published_schema(name: str) -> None:
    for event in played(name).events:
        if isinstance(event, Emitted):
            shape = validator(type(event.data).__name__)
            shape.validate(event.data.wire())
        elif isinstance(event, ItemOpened | ItemClosed):
            validator("ItemCompleted").validate(
                ItemCompleted(ref=1, item=event.item).wire()
            )


@EVERY
def test_completed_texts_are_codex_s_own(name: str) -> None:
    replay = played(name)
    told = {e.item.id: e.item for e in replay.events if isinstance(e, ItemClosed)}
    for params in said(replay.lines, "item/completed"):
        raw = params["item"]
        item = told[wire_id(raw["id"])]
        if raw["type"] == "agentMessage":
            assert isinstance(item, AgentMessage)
            assert item.text == raw["text"]
        elif raw["type"] == "plan":
            assert isinstance(item, Plan)
            assert item.text == raw["text"]
        elif raw["type"] == "commandExecution":
            assert isinstance(item, Command)
            assert item.output == (raw["aggregatedOutput"] or "")
            assert item.exit_code == raw["exitCode"]


@EVERY
def test_every_item_has_a_kind_of_its_own(name: str) -> None:
    """A new type shows here first: in a trace of the codex that brought it."""
    kinds = [e.item.kind for e in played(name).events if isinstance(e, ItemClosed)]
    assert "other" not in kinds


@EVERY
def test_no_text_of_a_person_or_an_item_holds_rust_frames(name: str) -> None:
    for event in played(name).events:
        if isinstance(event, ItemClosed):
            assert "Stack backtrace" not in str(event.item.wire())
        elif isinstance(event, Emitted):
            assert "Stack backtrace" not in str(event.data.wire())


@EVERY
def test_what_the_last_call_used_fits_the_context_window(name: str) -> None:
    for event in played(name).events:
        if isinstance(event, Emitted) and isinstance(event.data, UsageChanged):
            usage = event.data.usage
            assert usage.context_used is not None
            assert 0 <= usage.context_used <= (usage.context_window or 0)


@EVERY
def test_no_turn_waits_for_us(name: str) -> None:
    """Each server request is asked to a person, or answered at once by its own id."""
    replay = played(name)
    requests = [
        line["msg"]["id"]
        for line in replay.lines
        if line["dir"] == "in" and "method" in line["msg"] and "id" in line["msg"]
    ]
    asked = [
        event
        for event in replay.events
        if isinstance(event, Emitted) and isinstance(event.data, ApprovalRequested)
    ]
    at_once = len(requests) - len(asked)
    assert at_once >= 0
    assert {reply.request_id for reply in replay.replies} <= set(requests)
    assert len(replay.replies) >= at_once


def test_a_sub_agent_s_events_come_under_its_own_thread_with_its_root() -> None:
    events = played("subagent-v1").events
    roots = {event.thread_id: event.root_thread_id for event in events}
    children = {thread: root for thread, root in roots.items() if root is not None}
    assert len(children) == 1
    assert set(children.values()) <= set(roots)


def test_a_sub_agent_s_thread_is_told_where_codex_tells_none() -> None:
    lines = read_trace("subagent-v1")
    root = next(said(lines, "turn/started"))["threadId"]
    replay = Replay(lines=lines)
    started = next(said(read_trace("kill9-before"), "thread/started"))["thread"]
    replay.intake.normalizer.adopt({**started, "id": root}, [])
    told = [
        event.data.thread
        for event in replay.run().events
        if isinstance(event, Emitted) and isinstance(event.data, ThreadStarted)
    ]
    assert [(one.root_id, one.source) for one in told] == [(root, "subAgent")]
    assert told[0].preview.startswith("child task")


def test_a_newer_sub_agent_is_followed_from_its_start_over_each_of_its_tasks() -> None:
    replay = played("subagent-v2")
    acts = [
        event.item
        for event in replay.events
        if isinstance(event, ItemClosed) and isinstance(event.item, Subagent)
    ]
    assert [(one.action, one.state) for one in acts] == [
        ("spawn", "running"),
        ("done", "completed"),
        ("wait", "unknown"),
        ("message", "running"),
        ("done", "completed"),
        ("wait", "unknown"),
    ]
    child = acts[0].thread_id
    threads = {
        event.thread_id: event.root_thread_id
        for event in replay.events
        if event.thread_id is not None
    }
    assert [thread for thread, root in threads.items() if root is not None] == [child]
    ends = [
        event.data.turn.status
        for event in replay.events
        if isinstance(event, Emitted)
        and isinstance(event.data, TurnCompleted)
        and event.thread_id == child
    ]
    assert ends == [TurnStatus.COMPLETED, TurnStatus.COMPLETED]


def test_a_review_s_two_turn_ids_are_one_turn() -> None:
    started = [
        event.data.turn.id
        for event in played("review").events
        if isinstance(event, Emitted) and isinstance(event.data, TurnStarted)
    ]
    ended = [p["turn"]["id"] for p in said(read_trace("review"), "turn/completed")]
    assert started == ended


def test_a_background_command_outlives_its_turn_and_says_so() -> None:
    last = [
        event.item
        for event in played("background-terminal").events
        if isinstance(event, ItemClosed)
    ][-1]
    assert isinstance(last, Command)
    assert last.background is True
    assert last.status is ItemStatus.FAILED


def test_a_half_message_that_a_retry_abandons_ends_before_the_next_begins() -> None:
    ends = [
        (event.item.status, event.item.text)
        for event in played("fail-retry-partial-then-ok").events
        if isinstance(event, ItemClosed) and isinstance(event.item, AgentMessage)
    ]
    assert ends == [
        (ItemStatus.INTERRUPTED, "one two three "),
        (ItemStatus.COMPLETED, "recovered fully"),
    ]


def test_a_completed_text_is_kept_when_the_model_is_asked_again() -> None:
    items = [
        event.item
        for event in played("fail-retry-complete-then-disconnect-then-ok").events
        if isinstance(event, ItemClosed)
    ]
    assert all(item.status is ItemStatus.COMPLETED for item in items)


def test_a_plan_grows_on_its_own_channel() -> None:
    events = played("turn-plan-mode").events
    deltas = [e for e in events if isinstance(e, ItemDelta) and e.channel == 5]
    ends = [
        e.item for e in events if isinstance(e, ItemClosed) and isinstance(e.item, Plan)
    ]
    assert "".join(delta.text for delta in deltas) == "# Plan\n- step a\n- step b\n"
    assert [item.text for item in ends] == ["# Plan\n- step a\n- step b\n"]


@pytest.mark.parametrize(
    ("name", "code", "status"),
    [
        ("fail-noretry-400", "other", None),
        ("fail-noretry-401", "httpConnectionFailed", 401),
        ("fail-noretry-404", "modelNotFound", None),
        ("fail-noretry-429", "responseTooManyFailedAttempts", 429),
        ("fail-noretry-429-usage", "usageLimitExceeded", None),
        ("fail-noretry-500", "internalServerError", None),
        ("fail-noretry-503-overloaded", "serverOverloaded", None),
        ("fail-noretry-failed-ctx", "contextWindowExceeded", None),
        ("fail-noretry-failed-quota", "usageLimitExceeded", None),
        ("fail-noretry-failed-rate", "rateLimitExceeded", None),
    ],
)
def test_a_turn_that_failed_has_codex_s_code_and_the_provider_s_status(
    name: str, code: str, status: int | None
) -> None:
    ended = [
        event.data.turn
        for event in played(name).events
        if isinstance(event, Emitted) and isinstance(event.data, TurnCompleted)
    ]
    errors = [turn.error for turn in ended if turn.status is TurnStatus.FAILED]
    assert [(e.code, e.http_status) for e in errors if e] == [(code, status)]


def test_what_codex_decided_by_itself_is_told_with_what_it_was_about() -> None:
    notices = [
        event.data.message
        for event in played("auto-approval-review").events
        if isinstance(event, Emitted)
        and isinstance(event.data, Notice)
        and event.data.code == "decidedLocally"
    ]
    assert len(notices) == 1
    assert "denied: /bin/bash -lc 'touch /home/user/outside9'" in notices[0]


def test_traces_name_nothing_of_the_machine_they_come_from() -> None:
    for path in TRACES.glob("*.jsonl"):
        text = path.read_text()
        assert "/root/" not in text.replace("/root/bee", "")  # an agent's own path
        assert "eyJ" not in text
