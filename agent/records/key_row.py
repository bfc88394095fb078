"""One row of the ledger: a keyed act, and what came of it. Sans-IO.

PROTOCOL.md section 3 (Request keys). A row says that an act was handed to Codex, and what
came of it; without one nothing was done.
"""

import hashlib
import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from agent.limits import OUTCOME_BYTES
from transport.protocol.base import MutationParams, Params, WireModel, thread_of

Key = tuple[str, str]
"""A device and its request key."""

UNNAMED_IS_UNDONE: Final = "thread/start"
"""Nothing of a new thread is stored before its first turn, and that is handed over only
once the row names the thread."""


class RowState(StrEnum):
    """`handed` → `done` or `unknown`; no row: nothing was done."""

    HANDED = "handed"
    DONE = "done"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRow:
    """One mutation. `digest`: SHA-256 of method and params; `outcome`: the answer as
    JSON; `last_turn`: the newest turn before it; `at`: `Ages.least`, ms."""

    device: str
    key: str
    digest: str
    method: str
    state: RowState
    thread: str | None
    last_turn: str | None
    turn: str | None
    outcome: str | None
    at: int


def new_row(device: str, method: str, params: MutationParams, *, at: int) -> KeyRow:
    """Return the row of an act of which nothing is known yet."""
    return KeyRow(
        device=device,
        key=params.request_key,
        digest=digest(method, params),
        method=method,
        state=RowState.HANDED,
        thread=thread_of(params),
        last_turn=None,
        turn=None,
        outcome=None,
        at=at,
    )


def done_row(row: KeyRow, result: WireModel, *, turn: str | None, at: int) -> KeyRow:
    """Return the row of an act that has this answer; `turn`: the one that it started."""
    outcome = result.model_dump_json(by_alias=True, exclude_none=True)
    if len(outcome) > OUTCOME_BYTES:
        outcome = _without_items(result)
    return replace(row, state=RowState.DONE, turn=turn, outcome=outcome, at=at)


def digest(method: str, params: Params) -> str:
    """Return what makes two calls the same: method and params, but for the key, for how
    long it may wait, and for what is to be the newest turn: a repeat may name a later one.
    """
    values = params.wire()
    for name in ("requestKey", "waitMs", "expectedLastTurnId"):
        values.pop(name, None)
    canonical = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{method}\0{canonical}".encode()).hexdigest()


def _without_items(result: WireModel) -> str:
    values = result.model_dump(
        by_alias=True, exclude_none=True, exclude={"turn": {"items"}}
    )
    return json.dumps(values)
