"""Permissions, questions, forms, pages and tools: what is shown, and what Codex is told."""

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
from transport.codec import pack
from transport.errors import InvalidParams
from transport.protocol.approvals import ApprovalKind, ChoiceEffect, ElicitationMode

OTHER_CHARS = "rm \u202e -rf"


def told(
    question: Question, choice: str, filled: Filled = NOTHING_FILLED
) -> dict[str, Any]:
    return dict(question.choices[choice].reply(filled))


# permissions


def test_a_yes_to_permissions_grants_exactly_what_was_asked() -> None:
    raw = says.permissions_approval()
    question = about_permissions(raw)
    assert question.kind is ApprovalKind.PERMISSIONS
    assert question.detail.permissions is not None
    rows = [(str(row.access), row.path) for row in question.detail.permissions]
    assert rows == [("network", None), ("write", "/data")]
    assert question.detail.cwd == "/home/user/project"
    assert question.detail.reason == "need write"
    assert question.item_id is None  # Codex names an item that it never tells of
    granted = raw["permissions"]
    assert told(question, "allow") == {"permissions": granted, "scope": "turn"}
    session = told(question, "allowForSession")
    assert session == {"permissions": granted, "scope": "session"}
    assert told(question, "deny") == {"permissions": {}, "scope": "turn"}
    effects = [choice.effect for choice in question.listed()]
    assert effects == [
        ChoiceEffect.ALLOW,
        ChoiceEffect.ALLOW_FOR_SESSION,
        ChoiceEffect.DENY,
    ]


@pytest.mark.parametrize(
    "permissions",
    [
        {},
        {"network": {"enabled": False}},
        {"microphone": True},
        {"network": {"enabled": True, "hosts": ["*"]}},
        {"fileSystem": {"execute": ["/bin"]}},
        {"fileSystem": {"read": [f"/p{number}" for number in range(100)]}},
        {"fileSystem": {"read": ["/" + "x" * 5000]}},
        {
            "fileSystem": {
                "entries": [
                    {
                        "path": {"type": "glob_pattern", "pattern": "**"},
                        "access": "read",
                    }
                ]
            }
        },
        {
            "fileSystem": {
                "entries": [{"path": {"type": "path", "path": "/"}, "access": "own"}]
            }
        },
    ],
)
def test_permissions_that_cannot_be_shown_as_what_they_are_can_only_be_refused(
    permissions: dict[str, Any],
) -> None:
    question = about_permissions(says.permissions_approval(permissions=permissions))
    assert list(question.choices) == ["deny"]


def test_a_permission_that_takes_something_away_is_granted_with_the_rest() -> None:
    entries = [
        {"path": {"type": "path", "path": "/data"}, "access": "write"},
        {"path": {"type": "path", "path": "/data/keys"}, "access": "deny"},
    ]
    asked = {"fileSystem": {"entries": entries}}
    question = about_permissions(says.permissions_approval(permissions=asked))
    assert question.detail.permissions is not None
    assert [row.text for row in question.detail.permissions] == [
        "write /data",
        "deny /data/keys",
    ]
    assert told(question, "allow")["permissions"] == asked


# questions


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


# forms and pages of MCP servers


def test_a_form_is_shown_as_a_schema_and_answered_by_an_object() -> None:
    question = about_server(says.elicitation())
    assert question.kind is ApprovalKind.ELICITATION
    detail = question.detail
    assert (detail.server, detail.mode) == ("lab", ElicitationMode.FORM)
    assert detail.message == "What colour?"
    assert detail.form is not None
    assert list(detail.form["properties"]) == ["colour", "ok"]
    assert list(question.choices) == ["answer", "deny", "cancel"]
    filled = Filled(content={"colour": "red", "ok": True})
    accepted = {"action": "accept", "content": {"colour": "red", "ok": True}}
    assert told(question, "answer", filled) == accepted
    assert told(question, "deny") == {"action": "decline", "content": None}
    assert told(question, "cancel") == {"action": "cancel", "content": None}


@pytest.mark.parametrize(
    "content",
    [None, {}, {"ok": True}, {"colour": "green"}, {"colour": "red", "more": "x"}],
)
def test_content_that_does_not_fit_the_form_is_refused(
    content: dict[str, Any] | None,
) -> None:
    question = about_server(says.elicitation())
    with pytest.raises(InvalidParams) as refusal:
        told(question, "answer", Filled(content=content))
    assert refusal.value.data["field"] == "content"


def test_a_form_without_fields_is_agreed_to() -> None:
    empty: dict[str, Any] = {"type": "object", "properties": {}}
    question = about_server(says.elicitation(requestedSchema=empty))
    assert list(question.choices) == ["allow", "deny", "cancel"]
    assert told(question, "allow") == {"action": "accept", "content": {}}


@pytest.mark.parametrize(
    "field",
    [
        {"type": "object", "properties": {}},
        {"type": "string", "pattern": "a+"},
        {"type": "string", "format": "password"},
        {"type": "string", "title": "Your password"},
        {"type": "string", "title": "API key of the shop"},
    ],
)
def test_a_form_with_unknown_parts_or_secrets_can_only_be_refused(
    field: dict[str, Any],
) -> None:
    schema = {"type": "object", "properties": {"field": field}}
    question = about_server(says.elicitation(requestedSchema=schema))
    assert list(question.choices) == ["deny", "cancel"]
    assert len(question.detail.allows) == 1


@pytest.mark.parametrize(
    "mode", ["openai/form", "openaiForm", "openai/userVerification"]
)
def test_other_ways_to_ask_can_only_be_refused(mode: str) -> None:
    raw = says.elicitation(mode=mode, title="Are you there?", description="Prove it.")
    question = about_server(raw)
    assert question.detail.mode is ElicitationMode.OTHER
    assert list(question.choices) == ["deny", "cancel"]
    assert "Prove it." in str(question.detail.message)


def test_a_page_is_shown_whole_with_its_host() -> None:
    question = about_server(says.page_request())
    assert question.detail.mode is ElicitationMode.URL
    assert question.detail.url == "https://pay.example.org/order?n=7"
    assert question.detail.allows == ["the page is at pay.example.org"]
    assert list(question.choices) == ["allow", "deny", "cancel"]
    assert told(question, "allow")["action"] == "accept"


def test_a_page_that_only_looks_like_another_says_where_it_is() -> None:
    url = "https://bank.example.org@203.0.113.9:8443/login"
    question = about_server(says.page_request(url))
    assert question.detail.allows == ["the page is at 203.0.113.9:8443"]


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https:///nowhere",
        "https://[::1",
        "pay.example.org",
        "https://x.example.org/" + "a" * 5000,
    ],
)
def test_what_is_no_web_page_that_can_be_shown_can_only_be_refused(url: str) -> None:
    question = about_server(says.page_request(url))
    assert list(question.choices) == ["deny", "cancel"]


def test_a_question_of_a_server_outside_a_turn_has_no_turn() -> None:
    assert about_server(says.elicitation(turnId=None)).turn_id is None


# tools of MCP servers


def test_a_tool_is_shown_with_its_arguments_and_never_allowed_for_ever() -> None:
    question = about_server(says.tool_approval())
    assert question.kind is ApprovalKind.TOOL_CALL
    detail = question.detail
    assert (detail.server, detail.tool) == ("lab", "danger")
    assert detail.arguments == '{"path": "/x"}'
    assert "its server says that it may destroy something" in detail.allows
    assert list(question.choices) == ["allow", "allowForSession", "deny"]
    assert told(question, "allow") == {"action": "accept", "content": {}}
    assert told(question, "allowForSession") == {
        "action": "accept",
        "content": {},
        "_meta": {"persist": "session"},
    }
    said = str([told(question, choice) for choice in question.choices])
    assert "always" not in said


@pytest.mark.parametrize("persist", [None, [], ["always"], "always"])
def test_remembering_a_tool_is_offered_only_where_codex_offers_it(persist: Any) -> None:
    question = about_server(says.tool_approval(persist=persist))
    assert list(question.choices) == ["allow", "deny"]
    question = about_server(says.tool_approval(persist="session"))
    assert "allowForSession" in question.choices


def test_an_old_codex_names_the_tool_only_in_its_message() -> None:
    question = about_server(says.tool_approval(tool_name=None))
    assert question.detail.tool == "danger"
    assert "allow" in question.choices
    raw = {**says.tool_approval(tool_name=None), "message": "May it?"}
    assert list(about_server(raw).choices) == ["deny"]


@pytest.mark.parametrize(
    "meta",
    [
        {"codex_approval_kind": "something_new"},
        {"tool_params": {"text": "x" * 70_000}},
        {"surprise": "x" * 5_000},
    ],
)
def test_a_tool_that_cannot_be_shown_whole_can_only_be_refused(
    meta: dict[str, Any],
) -> None:
    assert list(about_server(says.tool_approval(**meta)).choices) == ["deny"]


def test_a_tool_s_leave_with_a_form_in_it_can_only_be_refused() -> None:
    form = says.elicitation()["requestedSchema"]
    raw = {**says.tool_approval(), "requestedSchema": form}
    assert list(about_server(raw).choices) == ["deny"]


# all of them


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
