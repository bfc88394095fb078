"""One request to Codex, and how long its answer may take. Sans-IO."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from adapter.calls.jsonrpc import Json
from adapter.limits import FILES_S, LIST_S, OTHER_S, PROBE_S, READ_S, RESUME_S

DEADLINES: Final[Mapping[str, float]] = {
    "command/exec": READ_S,
    "config/read": READ_S,
    "fuzzyFileSearch": FILES_S,
    "model/list": READ_S,
    "review/start": OTHER_S,
    "thread/archive": OTHER_S,
    "thread/backgroundTerminals/clean": OTHER_S,
    "thread/backgroundTerminals/list": READ_S,
    "thread/backgroundTerminals/terminate": OTHER_S,
    "thread/compact/start": OTHER_S,
    "thread/delete": OTHER_S,
    "thread/fork": OTHER_S,
    "thread/goal/clear": OTHER_S,
    "thread/goal/get": READ_S,
    "thread/goal/set": OTHER_S,
    "thread/items/list": READ_S,
    "thread/items/read": READ_S,
    "thread/list": LIST_S,
    "thread/loaded/list": PROBE_S,
    "thread/name/set": OTHER_S,
    "thread/queue/list": READ_S,
    "thread/read": READ_S,
    "thread/resume": RESUME_S,
    "thread/revert": RESUME_S,  # Codex loads the thread anew for it
    "thread/search": LIST_S,
    "thread/searchOccurrences": LIST_S,
    "thread/settings/update": OTHER_S,
    "thread/start": OTHER_S,
    "thread/turns/list": READ_S,
    "thread/unarchive": OTHER_S,
    "turn/interrupt": OTHER_S,
    "turn/start": OTHER_S,
    "turn/steer": OTHER_S,
}
"""Every method that we call but initialize, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One request to Codex."""

    method: str
    params: Json
    timeout_s: float


def command(method: str, params: object, *, timeout_s: float | None = None) -> Command:
    """Return a request; without a deadline of its own it has that of its method."""
    return Command(
        method=method,
        params=cast("Json", params),
        timeout_s=DEADLINES[method] if timeout_s is None else timeout_s,
    )
