"""Requests about a turn of a loaded thread. Sans-IO. PROTOCOL.md section 4."""

from collections.abc import Mapping, Sequence
from typing import Any

from adapter.calls.commands import Command, command
from adapter.calls.inputs import user_inputs
from adapter.runtime.acts import InputPart
from adapter.runtime.threads import NO_WISHES, Wishes
from generated.codex import (
    CollaborationMode,
    TurnInterruptParams,
    TurnStartParams,
    TurnSteerParams,
)


def start_turn(
    thread_id: str,
    parts: Sequence[InputPart],
    client_key: str,
    *,
    wishes: Wishes = NO_WISHES,
    collaboration: CollaborationMode | None = None,
    output_schema: Mapping[str, Any] | None = None,
) -> Command:
    """Start a turn; the key comes back in its userMessage."""
    params: TurnStartParams = {
        "threadId": thread_id,
        "input": user_inputs(parts),
        "clientUserMessageId": client_key,
    }
    if wishes.model is not None:
        params["model"] = wishes.model
    if wishes.effort is not None:
        params["effort"] = wishes.effort
    if wishes.cwd is not None:
        params["cwd"] = wishes.cwd
    if collaboration is not None:
        params["collaborationMode"] = collaboration
    if output_schema is not None:
        params["outputSchema"] = dict(output_schema)
    return command("turn/start", params)


def steer(
    thread_id: str, turn_id: str, parts: Sequence[InputPart], client_key: str
) -> Command:
    """Put more words into exactly this turn."""
    params: TurnSteerParams = {
        "threadId": thread_id,
        "expectedTurnId": turn_id,
        "input": user_inputs(parts),
        "clientUserMessageId": client_key,
    }
    return command("turn/steer", params)


def interrupt(thread_id: str, turn_id: str) -> Command:
    """Stop exactly this turn.

    Raises: ValueError: with an empty id Codex would stop whatever runs.
    """
    if not turn_id:
        raise ValueError("an interrupt names its turn")
    params: TurnInterruptParams = {"threadId": thread_id, "turnId": turn_id}
    return command("turn/interrupt", params)
