"""What in the owner's Codex configuration decides without asking a person. Sans-IO.

PROTOCOL.md section 4 (`gateway/status`, approvalsDecidedLocally). Read from the answer to
Codex's `config/read`; its rules files are Codex's and are not read. A shape that we do
not know decides nothing here: this is a warning, and no fence.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from adapter.shapes.shapes import Shape, mapping, sequence

_HOOKS: Final = ("PermissionRequest", "PreToolUse")
_REVIEWERS: Final = ("auto_review", "guardian_subagent")


def decided_alone(answer: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what decides approvals by itself, as words for the owner; mostly nothing.

    Raises: AnswerShapeError.
    """
    with Shape("config/read"):
        return tuple(_found(mapping(answer["config"])))


def _found(config: Mapping[str, Any]) -> Iterator[str]:
    policy = config.get("approval_policy")
    if policy == "never" or isinstance(policy, Mapping):
        word = policy if isinstance(policy, str) else "granular"
        yield f"approval_policy is {word}"
    if config.get("sandbox_mode") == "danger-full-access":
        yield "sandbox_mode is danger-full-access"
    if (reviewer := config.get("approvals_reviewer")) in _REVIEWERS:
        yield f"approvals_reviewer is {reviewer}"
    hooks = mapping(config.get("hooks") or {})
    for name in _HOOKS:
        if sequence(hooks.get(name)):
            yield f"hooks on {name}"
    yield from _servers(mapping(config.get("mcp_servers") or {}))


def _servers(servers: Mapping[str, Any]) -> Iterator[str]:
    """Tools of MCP servers that may run unasked: how many servers, not which."""
    free = 0
    for server in servers.values():
        fields = mapping(server)
        tools = mapping(fields.get("tools") or {}).values()
        modes = [fields.get("default_tools_approval_mode")]
        modes += [mapping(tool).get("approval_mode") for tool in tools]
        free += "approve" in modes
    if free:
        yield f"{free} MCP server{'s' if free > 1 else ''} whose tools run unasked"
