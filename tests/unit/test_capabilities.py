"""What codex offers, told from its own list of methods; what its config decides alone."""

from typing import Any

import pytest

from adapter.calls.capabilities import FEATURES, capabilities, offered_methods
from adapter.calls.local_rules import decided_alone
from adapter.calls.owner_commands import models_from, sandbox_fault
from adapter.errors import AnswerShapeError, CodexRefusedError
from agent.mutations.refusals import failed_before
from transport.errors import UnavailableFeature
from transport.protocol.capabilities import CapabilityStatus

REFUSAL = (
    "Invalid request: unknown variant `threadgate/probe`, expected one of "
    "`initialize`, `thread/read`, `thread/search`, `thread/turns/list`"
)


def status_of(name: str, *, version: str = "0.171.0", refusal: str = REFUSAL) -> str:
    rows = capabilities(offered_methods(refusal), version)
    (row,) = [row for row in rows if row.feature == name]
    return str(row.status)


def test_the_refused_name_is_not_taken_for_an_offered_one() -> None:
    assert offered_methods(REFUSAL) == {
        "initialize",
        "thread/read",
        "thread/search",
        "thread/turns/list",
    }
    assert offered_methods("no such method") == frozenset()


def test_a_feature_is_there_when_all_that_it_needs_is_there() -> None:
    assert status_of("thread/read") == "supported"
    assert status_of("thread/fork") == "unavailable"


def test_what_codex_calls_experimental_is_so_until_the_version_that_made_it_stable() -> (
    None
):
    assert status_of("thread/search") == "experimental"
    assert status_of("turn/list", version="0.147.0") == "experimental"
    assert status_of("turn/list", version="0.163.0") == "supported"


def test_a_codex_that_names_nothing_is_not_said_to_lack_everything() -> None:
    assert status_of("thread/read", refusal="what?") == "other"


def test_every_row_says_how_it_was_found_out() -> None:
    rows = capabilities(offered_methods(REFUSAL), "0.171.0")
    assert len(rows) == len(FEATURES) + 1
    assert all("0.171.0" in row.evidence for row in rows)
    assert len({row.feature for row in rows}) == len(rows)


def test_thread_locks_are_told_by_version() -> None:
    assert status_of("threadLocks", version="0.147.0") == "supported"
    assert status_of("threadLocks", version="0.146.9") == "unavailable"


CONFIGS: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({}, ()),
    ({"approval_policy": "on-request", "hooks": None, "mcp_servers": {}}, ()),
    ({"approval_policy": "never"}, ("approval_policy is never",)),
    ({"approval_policy": {"granular": {}}}, ("approval_policy is granular",)),
    (
        {"sandbox_mode": "danger-full-access"},
        ("sandbox_mode is danger-full-access",),
    ),
    ({"approvals_reviewer": "user"}, ()),
    (
        {"approvals_reviewer": "auto_review"},
        ("approvals_reviewer is auto_review",),
    ),
    ({"hooks": {"PreToolUse": [], "Stop": [{"hooks": []}]}}, ()),
    (
        {"hooks": {"PermissionRequest": [{"hooks": []}]}},
        ("hooks on PermissionRequest",),
    ),
    ({"mcp_servers": {"a": {"default_tools_approval_mode": "prompt"}}}, ()),
    (
        {"mcp_servers": {"a": {"tools": {"x": {"approval_mode": "approve"}}}}},
        ("1 MCP server whose tools run unasked",),
    ),
]


@pytest.mark.parametrize(("config", "told"), CONFIGS)
def test_what_decides_without_a_person_is_named(
    config: dict[str, Any], told: tuple[str, ...]
) -> None:
    assert decided_alone({"config": config}) == told


def test_a_config_of_another_shape_is_an_error_of_ours() -> None:
    with pytest.raises(AnswerShapeError):
        decided_alone({"config": {"hooks": [1]}})


def test_models_are_told_with_their_efforts_and_hidden_ones_are_left_out() -> None:
    shown = {
        "id": "x",
        "model": "x-1",
        "displayName": "X",
        "supportedReasoningEfforts": [{"reasoningEffort": "low", "description": ""}],
        "defaultReasoningEffort": "low",
        "isDefault": True,
    }
    answer = {"data": [shown, {**shown, "hidden": True}], "nextCursor": "c"}
    (model,), cursor = models_from(answer)
    assert cursor == "c"
    assert model.wire() == {
        "id": "x-1",
        "name": "X",
        "efforts": ["low"],
        "defaultEffort": "low",
        "isDefault": True,
    }


def test_a_sandbox_that_fails_says_why_in_its_first_line() -> None:
    assert sandbox_fault({"exitCode": 0, "stdout": "", "stderr": "warning"}) is None
    said = {"exitCode": 1, "stderr": "\nbwrap: no namespaces\nmore"}
    assert sandbox_fault(said) == "bwrap: no namespaces"
    assert sandbox_fault({"exitCode": 1}) == "it ended with an error"


def test_a_method_that_this_codex_lacks_is_an_unavailable_feature() -> None:
    refused = CodexRefusedError("thread/x", -32600, "unknown variant `thread/x`")
    refusal = failed_before(refused, thread_id="t", at_ms=0)
    assert isinstance(refusal, UnavailableFeature)
    assert refusal.data == {"feature": "thread/x"}
    assert str(CapabilityStatus("unheard-of")) == "other"
