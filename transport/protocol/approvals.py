"""Approvals: what Codex asks before it acts, behind opaque ids. Sans-IO. PROTOCOL.md 5."""

from typing import Annotated

from pydantic import Field

from transport.protocol.base import OpenEnum, Params, WireId, WireModel
from transport.protocol.items import FileDiff
from transport.protocol.turns import Cursor, PageLimit


class ApprovalKind(OpenEnum):
    """What is asked for. Only these two can be answered remotely in 2.0."""

    COMMAND = "command"
    FILE_CHANGE = "fileChange"
    OTHER = "other"


class ApprovalState(OpenEnum):
    """`pending → answering → answered`, or `expired`, or `withdrawn`. One end each."""

    PENDING = "pending"
    ANSWERING = "answering"
    ANSWERED = "answered"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    OTHER = "other"


class ChoiceEffect(OpenEnum):
    """What a choice does. Anything remembered needs the scope `approve.session`."""

    ALLOW = "allow"
    ALLOW_FOR_SESSION = "allowForSession"
    DENY = "deny"
    CANCEL = "cancel"
    OTHER = "other"


class Choice(WireModel):
    """One answer that may be given; `id` goes into approval/answer."""

    id: str
    label: str
    effect: ChoiceEffect


class ApprovalDetail(WireModel):
    """All that the person must see. `allows`: what else a yes would let through.

    command: `command`, `cwd`; fileChange: `changes`.
    """

    command: str | None = None
    cwd: str | None = None
    reason: str | None = None
    changes: list[FileDiff] | None = None
    allows: list[str] = []


class Approval(WireModel):
    """A question of Codex. `digest` is opaque: echo it, it binds the answer to the text."""

    id: str
    kind: ApprovalKind
    thread_id: str
    root_thread_id: str
    turn_id: str | None = None
    item_id: str | None = None
    title: str
    detail: ApprovalDetail
    choices: list[Choice]
    digest: str
    created_at: int
    expires_at: int
    state: ApprovalState
    decided_by: str | None = None
    choice: str | None = None
    sent: bool | None = None


class ApprovalListParams(Params):
    """`approval/list`: what waits for an answer."""

    thread_id: WireId | None = None
    cursor: Cursor | None = None
    limit: PageLimit = 50


class ApprovalListResult(WireModel):
    """Pending approvals, oldest first."""

    approvals: list[Approval]
    next_cursor: str | None = None
    head: int


class ApprovalAnswerParams(Params):
    """`approval/answer`: exactly one of the offered choices, bound by the digest."""

    approval_id: WireId
    digest: WireId
    choice: Annotated[str, Field(min_length=1, max_length=64)]


class ApprovalResult(WireModel):
    """The approval after the answer: `answered`, or still `answering` after 15 s."""

    approval: Approval
