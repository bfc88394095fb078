"""Requests about Codex itself, not about a thread. Sans-IO.

`check_sandbox` is the one command that a reader ever runs: a program that does nothing,
in the narrowest sandbox, to see whether a sandbox can start here at all.
"""

from collections.abc import Mapping
from typing import Any, Final

from adapter.calls.capabilities import PROBE
from adapter.calls.commands import Command, command
from adapter.limits import PROBE_S, SANDBOX_WORDS
from adapter.shapes.shapes import (
    Shape,
    mapping,
    maybe_text,
    sequence,
    text,
    whole,
)
from generated.codex import CommandExecParams, ConfigReadParams, ModelListParams
from transport.protocol.capabilities import ModelInfo

SANDBOX_MS: Final = 5_000  # it takes 100 ms


def read_config() -> Command:
    """The owner's effective configuration."""
    params: ConfigReadParams = {"includeLayers": False}
    return command("config/read", params)


def list_models(cursor: str | None) -> Command:
    """One page of the models."""
    params: ModelListParams = {} if cursor is None else {"cursor": cursor}
    return command("model/list", params)


def list_methods() -> Command:
    """A question that is refused, with the names of all methods."""
    return command(PROBE, {}, timeout_s=PROBE_S)


def check_sandbox() -> Command:
    """Run `true` in a sandbox that can only read."""
    params: CommandExecParams = {
        "command": ["true"],
        "cwd": "/",
        "sandboxPolicy": {"type": "readOnly"},
        "timeoutMs": SANDBOX_MS,
    }
    return command("command/exec", params)


def models_from(answer: Mapping[str, Any]) -> tuple[list[ModelInfo], str | None]:
    """Return a page of models and the cursor of the next. Raises: AnswerShapeError."""
    with Shape("model/list"):
        rows = [mapping(row) for row in sequence(answer["data"])]
        models = [_model(row) for row in rows if row.get("hidden") is not True]
        return models, maybe_text(answer.get("nextCursor"))


def _model(row: Mapping[str, Any]) -> ModelInfo:
    efforts = [mapping(one) for one in sequence(row.get("supportedReasoningEfforts"))]
    return ModelInfo(
        id=text(row.get("model") or row["id"]),
        name=text(row.get("displayName") or row["id"]),
        efforts=[text(one["reasoningEffort"]) for one in efforts],
        default_effort=maybe_text(row.get("defaultReasoningEffort")),
        is_default=row.get("isDefault") is True,
    )


def sandbox_fault(answer: Mapping[str, Any]) -> str | None:
    """Return why the sandbox did not run `true`; `None` where it did."""
    with Shape("command/exec"):
        if whole(answer["exitCode"]) == 0:
            return None
        said = text(answer.get("stderr") or "").strip().splitlines()
    return (said[0] if said else "it ended with an error")[:SANDBOX_WORDS]
