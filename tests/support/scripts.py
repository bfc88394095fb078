"""Turns that are written into the message itself: what the scripted model shall do."""

import json
from typing import Any, Final

from clients.cli.scripted_answers import MARK

Action = dict[str, Any]

DONE: Final[list[Action]] = [{"msg": "done"}]


def script(*steps: list[Action]) -> str:
    """Return a message; each step is what the model answers to one request."""
    return MARK + json.dumps(steps)


def call(name: str, namespace: str | None = None, **args: Any) -> list[Action]:
    """Return a step that calls a tool."""
    action: Action = {"call": name, "args": args}
    return [action if namespace is None else {**action, "namespace": namespace}]


def command(cmd: str) -> Action:
    """Return a command that asks for leave to run outside the sandbox."""
    args = {
        "cmd": cmd,
        "sandbox_permissions": "require_escalated",
        "justification": "the test wants it",
    }
    return {"call": "exec_command", "args": args}
