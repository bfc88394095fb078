"""The event order of PROTOCOL.md section 6, whatever Codex says: notices, and what does not fit."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.errors import AnswerShapeError
from adapter.events.normalize import Normalizer
from adapter.events.notifications import NOTIFICATIONS
from tests.support import codex_says as says
from tests.support.codex_says import AT, THREAD, Raw
from tests.support.told import Codex, closed
from transport.protocol.events import Notice
from transport.protocol.items import Plan


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
