"""What all questions of MCP servers have in common. Sans-IO. PROTOCOL.md section 5.

An elicitation and a tool that wants leave are the same request of Codex, and take the same
answers.
"""

from collections.abc import Mapping
from typing import Final, cast

from adapter.approvals import choices
from adapter.approvals.choices import Result, Way, fixed
from adapter.approvals.forms import Form, read_form
from adapter.approvals.legible import unknown_lines
from adapter.approvals.questions import Question, Raw, place_lines
from adapter.shapes.shapes import MISFITS, maybe_id, wire_id
from transport.protocol.approvals import ApprovalDetail, ApprovalKind, ChoiceEffect

DECLINED: Final[Result] = {"action": "decline", "content": None}

ACCEPTED: Final[Result] = {"action": "accept", "content": {}}
NO: Final[Mapping[str, Way]] = {
    choices.DENY: fixed("Decline; the turn goes on", ChoiceEffect.DENY, DECLINED),
    choices.CANCEL: fixed(
        "Dismiss it unanswered; the turn goes on",
        ChoiceEffect.CANCEL,
        {"action": "cancel", "content": None},
    ),
}
_SHOWN: Final = frozenset(
    {
        "_meta",
        "elicitationId",
        "environmentId",
        "message",
        "mode",
        "requestedSchema",
        "serverName",
        "threadId",
        "turnId",
        "url",
    }
)


def asked_by(
    kind: ApprovalKind,
    raw: Raw,
    *,
    title: str,
    detail: ApprovalDetail,
    choices: Mapping[str, Way],
) -> Question:
    """Return a question of a server, from the thread that it came up in."""
    return Question(
        kind=kind,
        thread_id=wire_id(raw["threadId"]),
        turn_id=maybe_id(raw.get("turnId")),
        title=title,
        detail=detail,
        choices=choices,
    )


def extra_lines(raw: Raw) -> list[str]:
    """Say what is in the request beside what a person is shown."""
    meta = raw.get("_meta")
    rest = {} if meta is None else {"_meta": meta}
    return [*place_lines(raw), *unknown_lines(raw, _SHOWN), *unknown_lines(rest, ())]


def form_of(raw: object) -> Form | None:
    """Return the form of a schema; `None` where it is none that we understand."""
    try:
        return read_form(raw)
    except MISFITS:
        return None


def object_of(raw: object) -> Raw:
    """Return an object; anything else is an empty one."""
    return cast("Raw", raw) if isinstance(raw, Mapping) else {}
