"""Permissions: what is shown, and what Codex is told."""

from typing import Any

import pytest

from adapter.approvals.act_questions import about_permissions
from tests.support import codex_says as says
from tests.support.replies import told
from transport.protocol.approvals import ApprovalKind, ChoiceEffect


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
