"""What Codex says is told up to a bound, and it is said that there was more."""

from typing import Any

import pytest

from adapter.approvals.legible import lines_fit, shown_lines
from adapter.approvals.questions import Question, reason_of
from adapter.approvals.server_questions import about_server
from adapter.approvals.user_questions import about_input
from adapter.calls.goals import goal_from
from adapter.calls.owner_commands import sandbox_fault
from adapter.events.normalize import Normalizer
from adapter.events.notices import notice
from adapter.limits import (
    ACTIONS,
    AGENTS,
    ALLOWS,
    ATTACHMENTS,
    CHANGES,
    CITATIONS,
    DELTA_BYTES,
    FORM_CHOICES,
    FORM_FIELDS,
    FORM_NAME_CHARS,
    LABEL_BYTES,
    NOTICE_CHARS,
    OPTIONS,
    PATH_BYTES,
    PLAN_STEPS,
    PREVIEW_CHARS,
    QUESTIONS,
    REASON_BYTES,
    SANDBOX_WORDS,
    SUMMARY_PARTS,
)
from adapter.runtime.events import Emitted, ItemDelta
from adapter.shapes.failures import turn_error
from adapter.shapes.item_frame import Frame
from adapter.shapes.items import item_from
from adapter.shapes.threads import thread_from
from tests.support import codex_says as says
from tests.support.codex_says import AT, THREAD, Raw
from transport.protocol.approvals import ChoiceEffect
from transport.protocol.events import NoticeLevel, TurnPlan

FRAME = Frame(turn_id="t1", provenance="codex:item/completed", completed_at=9)


def of_files(count: int) -> Raw:
    one = {"path": "/a", "kind": {"type": "add"}, "diff": "+"}
    return says.change(status="completed", changes=[one] * count)


def of_actions(count: int) -> Raw:
    return says.command(commandActions=[{"type": "unknown", "command": "x"}] * count)


def of_pictures(count: int) -> Raw:
    return says.user(content=[{"type": "localImage", "path": "/a.png"}] * count)


def of_citations(count: int) -> Raw:
    entry = {"path": "n.md", "note": "x", "lineStart": 1, "lineEnd": 2}
    cited = {"entries": [entry] * count, "threadIds": []}
    return says.message(text="so", memoryCitation=cited)


def of_agents(count: int) -> Raw:
    return {
        "type": "collabAgentToolCall",
        "id": "a",
        "tool": "wait",
        "status": "completed",
        "senderThreadId": THREAD,
        "receiverThreadIds": [f"th{number}" for number in range(count)],
        "prompt": None,
        "agentsStates": {},
    }


@pytest.mark.parametrize(
    ("raw", "name", "bound"),
    [
        (of_files, "changes", CHANGES),
        (of_actions, "actions", ACTIONS),
        (of_pictures, "attachments", ATTACHMENTS),
        (of_citations, "citations", CITATIONS),
        (of_agents, "agents", AGENTS),
    ],
)
def test_a_list_in_an_item_is_told_up_to_its_bound_and_no_further(
    raw: Any, name: str, bound: int
) -> None:
    whole = item_from(raw(bound), FRAME)
    assert len(getattr(whole, name)) == bound
    assert whole.truncated is None
    more = item_from(raw(bound + 1), FRAME)
    assert len(getattr(more, name)) == bound
    assert more.truncated == [name]


def test_a_reasoning_of_many_parts_is_told_as_one() -> None:
    def summary(count: int) -> Any:
        raw = {"type": "reasoning", "id": "r", "summary": ["x"] * count, "content": []}
        return item_from(raw, FRAME).wire()["summary"]

    assert len(summary(SUMMARY_PARTS)) == SUMMARY_PARTS
    assert summary(SUMMARY_PARTS + 1) == ["\n\n".join("x" * (SUMMARY_PARTS + 1))]


def test_a_plan_of_many_steps_is_told_as_far_as_it_is_read() -> None:
    step = {"step": "x" * 9_999, "status": "pending"}
    params = {
        "threadId": THREAD,
        "turnId": "t1",
        "explanation": "y" * 2 * REASON_BYTES,
        "plan": [step] * (PLAN_STEPS + 1),
    }
    events = Normalizer().notification("turn/plan/updated", params, AT)
    (plan,) = [
        one.data
        for one in events
        if isinstance(one, Emitted) and isinstance(one.data, TurnPlan)
    ]
    assert len(plan.steps) == PLAN_STEPS
    assert len(plan.steps[0].text) <= 1_024
    assert len(plan.explanation or "") <= REASON_BYTES


def test_a_delta_of_any_length_comes_in_pieces_and_none_is_lost() -> None:
    normalizer = Normalizer()
    begun = says.in_turn(says.message())
    normalizer.notification("item/started", begun, AT)
    raw = says.delta("msg_1", "x" * (DELTA_BYTES + 1))
    events = normalizer.notification("item/agentMessage/delta", raw, AT)
    pieces = [one.text for one in events if isinstance(one, ItemDelta)]
    assert [len(one) for one in pieces] == [DELTA_BYTES, 1]


def test_titles_previews_and_paths_of_a_thread_are_short() -> None:
    long = "x" * 2 * PATH_BYTES
    thread = thread_from(says.thread(name=long, preview=long, cwd=f"/{long}"))
    assert len(thread.title or "") == len(thread.preview) == PREVIEW_CHARS
    assert len(thread.cwd) == PATH_BYTES


def test_why_something_failed_is_short() -> None:
    long = "x" * 2 * NOTICE_CHARS
    failed = turn_error({"message": long, "codexErrorInfo": "badRequest"})
    assert failed is not None
    assert len(failed.message) == NOTICE_CHARS
    assert len(notice(NoticeLevel.INFO, "c", long).message) == NOTICE_CHARS
    fault = sandbox_fault({"exitCode": 1, "stderr": long, "stdout": ""})
    assert fault is not None
    assert len(fault) == SANDBOX_WORDS


def test_a_reason_and_an_objective_are_short() -> None:
    long = "x" * 2 * REASON_BYTES
    assert len(reason_of({"reason": long}) or "") <= REASON_BYTES
    goal = goal_from({"goal": {"objective": long, "status": "active"}})
    assert goal is not None
    assert len(goal.objective) <= REASON_BYTES


def test_what_a_yes_lets_through_is_all_shown_or_there_is_no_yes() -> None:
    assert lines_fit(["x"] * ALLOWS)
    assert not lines_fit(["x"] * (ALLOWS + 1))
    assert lines_fit(["x" * PATH_BYTES])
    assert not lines_fit(["x" * (PATH_BYTES + 1)])
    shown = shown_lines(["x" * 9_999] * 99)
    assert len(shown) == ALLOWS
    assert max(map(len, shown)) <= PATH_BYTES


def has_yes(question: Question) -> bool:
    no = {ChoiceEffect.DENY, ChoiceEffect.CANCEL}
    return any(one.effect not in no for one in question.listed())


def options(count: int, label: int = 1) -> Raw:
    every = [
        {"label": f"{number}{'x' * (label - len(str(number)))}", "description": ""}
        for number in range(count)
    ]
    return says.question(options=every)


@pytest.mark.parametrize(
    ("most", "more"),
    [
        (
            [says.question(f"q{n}") for n in range(QUESTIONS)],
            [says.question(f"q{n}") for n in range(QUESTIONS + 1)],
        ),
        ([options(OPTIONS)], [options(OPTIONS + 1)]),
        ([options(1, LABEL_BYTES)], [options(1, LABEL_BYTES + 1)]),
    ],
    ids=["questions", "options", "label"],
)
def test_questions_that_are_too_many_to_be_shown_can_only_be_refused(
    most: list[Raw], more: list[Raw]
) -> None:
    assert has_yes(about_input(says.input_request(*most)))
    question = about_input(says.input_request(*more))
    assert not has_yes(question)
    asked = question.detail.questions or []
    assert len(asked) <= QUESTIONS
    assert all(len(one.options) <= OPTIONS for one in asked)
    assert all(len(o.label) <= LABEL_BYTES for one in asked for o in one.options)


def form(fields: dict[str, Raw]) -> Raw:
    return {"type": "object", "properties": fields, "required": []}


BOOLEAN: Raw = {"type": "boolean"}


@pytest.mark.parametrize(
    ("most", "more"),
    [
        (
            {f"f{n}": BOOLEAN for n in range(FORM_FIELDS)},
            {f"f{n}": BOOLEAN for n in range(FORM_FIELDS + 1)},
        ),
        (
            {"f": {"type": "string", "enum": [f"c{n}" for n in range(FORM_CHOICES)]}},
            {
                "f": {
                    "type": "string",
                    "enum": [f"c{n}" for n in range(FORM_CHOICES + 1)],
                }
            },
        ),
        ({"f" * FORM_NAME_CHARS: BOOLEAN}, {"f" * (FORM_NAME_CHARS + 1): BOOLEAN}),
        (
            {"f": {**BOOLEAN, "title": "t" * LABEL_BYTES}},
            {"f": {**BOOLEAN, "title": "t" * (LABEL_BYTES + 1)}},
        ),
    ],
    ids=["fields", "choices", "name", "title"],
)
def test_a_form_that_is_too_large_to_be_filled_in_can_only_be_refused(
    most: dict[str, Raw], more: dict[str, Raw]
) -> None:
    assert has_yes(about_server(says.elicitation(requestedSchema=form(most))))
    assert not has_yes(about_server(says.elicitation(requestedSchema=form(more))))
