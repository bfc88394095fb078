"""Tools of MCP servers: what is shown, and what Codex is told."""

from typing import Any

import pytest

from adapter.approvals.server_questions import about_server
from tests.support import codex_says as says
from tests.support.replies import told
from transport.protocol.approvals import ApprovalKind


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
