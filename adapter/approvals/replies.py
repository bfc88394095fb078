"""Answers to server requests that nobody has to be asked about. Sans-IO.

PROTOCOL.md section 5: what cannot be answered from afar is refused at once, and a person
is told that it was.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapter.approvals.server_requests import (
    INVALID,
    NOT_SUPPORTED,
    Fails,
    Refuses,
)
from adapter.events.notices import event_of, notice
from adapter.runtime.events import RuntimeEvent
from adapter.shapes.shapes import maybe_id
from transport.protocol.events import NoticeLevel

RequestId = int | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What to write back to the app-server. `request_id` keeps its JSON type (0 is one)."""

    request_id: RequestId
    result: Mapping[str, Any] | None = None
    error: tuple[int, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a server request led to: events, and the reply where none is waited for.

    `other`: the reply to an earlier request, where this one has put an end to it.
    """

    events: list[RuntimeEvent]
    reply: Reply | None = None
    other: Reply | None = None

    @property
    def replies(self) -> list[Reply]:
        """What is written back, in order."""
        return [one for one in (self.other, self.reply) if one is not None]


def answer_at_once(
    request_id: RequestId,
    row: Refuses | Fails | None,
    method: str,
    params: Mapping[str, Any],
    at: int,
    root: str,
) -> Asked:
    """Answer a request that nobody is asked about, and say so in a notice."""
    if isinstance(row, Refuses):
        reply = Reply(request_id=request_id, result=row.result(at))
        what = row.what
    else:
        error = (NOT_SUPPORTED, f"this client does not answer {method[:128]}")
        reply = Reply(request_id=request_id, error=error)
        what = row.what if row else f"something new ({method[:128]})"
    events = [] if what is None else [refusal_told(what, params, at, root=root)]
    return Asked(events=events, reply=reply)


def error_for_id(request_id: RequestId) -> Reply:
    """Refuse a request whose id names two, in the one way that fits every kind."""
    return Reply(request_id=request_id, error=(INVALID, "this id is in use"))


def refusal_told(
    what: str, params: Mapping[str, Any], at: int, *, root: str | None
) -> RuntimeEvent:
    """Return the notice that something was refused without asking anybody."""
    raw = params.get("threadId") or params.get("conversationId")
    thread_id = maybe_id(raw) if isinstance(raw, str) else None
    words = (
        f"Codex asked for {what}. That cannot be answered from here and was refused."
    )
    said = notice(NoticeLevel.WARNING, "requestRefused", words, thread_id)
    return event_of(said, root=root if root != thread_id else None, at=at)
