"""What holds for permissions, questions, forms, pages and tools alike."""

from typing import Any

import pytest

from adapter.approvals.act_questions import about_permissions
from adapter.approvals.choices import print_of
from adapter.approvals.questions import Question
from adapter.approvals.server_questions import about_server
from adapter.approvals.shown import show
from adapter.approvals.user_questions import about_input
from adapter.limits import APPROVAL_BYTES
from adapter.runtime.acts import NOTHING_FILLED, Filled
from adapter.shapes.shapes import MISFITS
from tests.support import codex_says as says
from tests.support.replies import told
from transport.codec import pack
from transport.errors import InvalidParams
from transport.protocol.approvals import ChoiceEffect

OTHER_CHARS = "rm \u202e -rf"
QUESTIONS = {
    "permissions": about_permissions(says.permissions_approval()),
    "question": about_input(says.input_request()),
    "form": about_server(says.elicitation()),
    "page": about_server(says.page_request()),
    "tool": about_server(says.tool_approval()),
}


@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_a_choice_takes_only_what_it_asks_for(name: str) -> None:
    for choice, way in QUESTIONS[name].choices.items():
        if way.effect is ChoiceEffect.ANSWER:
            continue
        for filled in (Filled(answers={}), Filled(content={"a": "b"})):
            with pytest.raises(InvalidParams):
                told(QUESTIONS[name], choice, filled)


@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_the_digest_of_each_kind_binds_what_is_shown(name: str) -> None:
    question = QUESTIONS[name]
    first, _ = show("apr_1", question, says.THREAD, says.AT, says.AT + 1)
    changes: list[dict[str, Any]] = [
        {"permissions": []},
        {"questions": []},
        {"message": "other"},
        {"url": "https://other.example.org"},
        {"arguments": "{}"},
        {"form": {}},
        {"allows": ["more"]},
    ]
    for changed in changes:
        detail = question.detail.model_copy(update=changed)
        other = Question(
            kind=question.kind,
            thread_id=question.thread_id,
            turn_id=question.turn_id,
            title=question.title,
            detail=detail,
            choices=question.choices,
        )
        second, _ = show("apr_1", other, says.THREAD, says.AT, says.AT + 1)
        assert second.digest != first.digest


def test_large_questions_fit_and_lose_their_yes() -> None:
    options = [
        {"label": "l" * 1000 + str(n), "description": "d" * 1000} for n in range(32)
    ]
    asked = [
        says.question(str(number), question="x" * 60_000, options=options)
        for number in range(8)
    ]
    question = about_input(says.input_request(*asked))
    assert "answer" in question.choices
    approval, cut = show("apr_1", question, says.THREAD, says.AT, says.AT + 1)
    assert len(pack(approval.wire())) <= APPROVAL_BYTES
    assert list(cut.choices) == ["deny"]
    choices = {"type": "string", "enum": [f"{n}" + "c" * 1000 for n in range(64)]}
    fields = {f"f{number}": choices for number in range(64)}
    raw = says.elicitation(requestedSchema={"type": "object", "properties": fields})
    approval, cut = show("apr_1", about_server(raw), says.THREAD, says.AT, says.AT + 1)
    assert len(pack(approval.wire())) <= APPROVAL_BYTES
    assert list(cut.choices) == ["deny", "cancel"]


def test_invisible_characters_are_pointed_out_in_each_kind() -> None:
    hidden = [
        about_permissions(
            says.permissions_approval(
                permissions={"fileSystem": {"write": [f"/{OTHER_CHARS}"]}}
            )
        ),
        about_input(says.input_request(says.question(question=OTHER_CHARS))),
        about_server(says.elicitation(message=OTHER_CHARS)),
        about_server(says.page_request("https://x.example.org/\u202e")),
        about_server(says.tool_approval(tool_params={"cmd": OTHER_CHARS})),
    ]
    for question in hidden:
        assert any("U+202E" in line for line in question.detail.allows)


@pytest.mark.parametrize(
    ("build", "raw"),
    [
        (about_permissions, says.permissions_approval(permissions="all")),
        (about_permissions, says.permissions_approval(cwd=None)),
        (about_input, says.input_request(questions="?")),
        (about_input, says.input_request(says.question(options="Red"))),
        (about_input, says.input_request(says.question(question=None))),
        (about_server, says.elicitation(mode=None)),
        (about_server, says.elicitation(serverName=7)),
        (about_server, {**says.page_request(), "url": None}),
        (about_server, {**says.tool_approval(), "message": None}),
    ],
)
def test_what_cannot_be_read_is_a_misfit(build: Any, raw: dict[str, Any]) -> None:
    with pytest.raises(MISFITS):
        build(raw)


def test_what_was_filled_in_tells_answers_apart_and_is_not_kept() -> None:
    one = print_of("answer", Filled(answers={"q": ["secret"]}))
    assert one == print_of("answer", Filled(answers={"q": ("secret",)}))
    assert one != print_of("answer", Filled(answers={"q": ["other"]}))
    assert one != print_of("answer", Filled(content={"q": ["secret"]}))
    assert one != print_of("deny", NOTHING_FILLED)
    assert "secret" not in one
