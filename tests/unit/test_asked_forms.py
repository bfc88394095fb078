"""Forms and pages of MCP servers: what is shown, and what Codex is told."""

from typing import Any

import pytest

from adapter.approvals.server_questions import about_server
from adapter.runtime.acts import Filled
from tests.support import codex_says as says
from tests.support.replies import told
from transport.errors import InvalidParams
from transport.protocol.approvals import ApprovalKind, ElicitationMode


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
