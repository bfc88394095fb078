"""Questions of the model: what is shown, and what Codex is told."""

from typing import Any

import pytest

from adapter.approvals.user_questions import about_input
from adapter.runtime.acts import Filled
from tests.support import codex_says as says
from tests.support.replies import told
from transport.errors import InvalidParams
from transport.protocol.approvals import ApprovalKind


def test_a_question_is_shown_with_its_options_and_answered_by_its_id() -> None:
    question = about_input(says.input_request(says.question(), says.question("q2")))
    assert question.kind is ApprovalKind.QUESTION
    assert question.title == "2 questions"
    assert question.detail.questions is not None
    first = question.detail.questions[0]
    assert (first.id, first.header, first.text) == ("q1", "Colour", "Which colour?")
    assert [option.label for option in first.options] == ["Red", "Blue"]
    assert first.other
    assert not first.secret
    filled = Filled(answers={"q1": ["Red"], "q2": ["neither, thanks"]})
    assert told(question, "answer", filled) == {
        "answers": {
            "q1": {"answers": ["Red"]},
            "q2": {"answers": ["neither, thanks"]},
        }
    }
    assert told(question, "deny") == {"answers": {}}


def test_one_of_several_questions_may_be_left_open() -> None:
    question = about_input(says.input_request(says.question(), says.question("q2")))
    said = told(question, "answer", Filled(answers={"q2": ["Blue"]}))
    assert said == {"answers": {"q2": {"answers": ["Blue"]}}}


@pytest.mark.parametrize(
    "answers",
    [None, {}, {"q1": []}, {"q1": [" "]}, {"q9": ["Red"]}, {"q1": ["Green"]}],
)
def test_answers_that_do_not_fit_their_question_are_refused(
    answers: dict[str, list[str]] | None,
) -> None:
    question = about_input(says.input_request(says.question(isOther=False)))
    with pytest.raises(InvalidParams) as refusal:
        told(question, "answer", Filled(answers=answers))
    assert refusal.value.data["field"] == "answers"


def test_a_question_without_options_takes_any_text_and_a_secret_is_marked() -> None:
    free = says.question(options=None, isOther=False, isSecret=True)
    question = about_input(says.input_request(free))
    assert question.detail.questions is not None
    assert question.detail.questions[0].other
    assert question.detail.questions[0].secret
    assert told(question, "answer", Filled(answers={"q1": ["hunter2"]}))


def test_an_id_that_the_protocol_does_not_allow_is_answered_under_its_own() -> None:
    question = about_input(says.input_request(says.question("mit Leerzeichen")))
    assert question.detail.questions is not None
    wire = question.detail.questions[0].id
    assert wire.startswith("id_")
    said = told(question, "answer", Filled(answers={wire: ["Red"]}))
    assert list(said["answers"]) == ["mit Leerzeichen"]


@pytest.mark.parametrize(
    "questions",
    [
        [says.question(str(number)) for number in range(9)],
        [says.question(), says.question()],
        [says.question(question="x" * 70_000)],
        [says.question(header="x" * 2_000)],
        [
            says.question(
                options=[{"label": str(n), "description": ""} for n in range(40)]
            )
        ],
        [says.question(extra="x" * 5_000)],
    ],
)
def test_questions_that_cannot_be_shown_whole_can_only_be_refused(
    questions: list[dict[str, Any]],
) -> None:
    question = about_input(says.input_request(*questions))
    assert list(question.choices) == ["deny"]


def test_a_request_without_a_question_can_only_be_refused() -> None:
    raw: dict[str, Any] = {**says.input_request(), "questions": []}
    assert list(about_input(raw).choices) == ["deny"]


def test_where_codex_waits_only_so_long_it_is_said() -> None:
    assert about_input(says.input_request(autoResolutionMs=5000)).lasts_ms == 5000
    assert about_input(says.input_request()).lasts_ms is None
