"""Approvals: what Codex asks before it acts, behind opaque ids. Sans-IO. PROTOCOL.md 5."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from transport.protocol.base import OpenEnum, Params, WireId, WireModel
from transport.protocol.items import FileDiff
from transport.protocol.turns import Cursor, PageLimit

MAX_FIELDS = 64  # questions of one approval, or fields of one form
MAX_TEXTS = 64  # answers to one question, or choices of one field
MAX_ANSWER = 32_000  # characters of one answer; the frame bounds all of them


class ApprovalKind(OpenEnum):
    """What is asked for."""

    COMMAND = "command"
    FILE_CHANGE = "fileChange"
    PERMISSIONS = "permissions"
    QUESTION = "question"
    ELICITATION = "elicitation"
    TOOL_CALL = "toolCall"
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
    """What a choice does. Anything remembered needs the scope `approve.session`.

    `answer`: it goes with `answers` (question) or `content` (a form).
    """

    ALLOW = "allow"
    ALLOW_FOR_SESSION = "allowForSession"
    ANSWER = "answer"
    DENY = "deny"
    CANCEL = "cancel"
    OTHER = "other"


class Choice(WireModel):
    """One answer that may be given; `id` goes into approval/answer."""

    id: str
    label: str
    effect: ChoiceEffect


class PermissionKind(OpenEnum):
    """What a permission is about; `deny` takes something away from the others."""

    NETWORK = "network"
    READ = "read"
    WRITE = "write"
    DENY = "deny"
    OTHER = "other"


class Permission(WireModel):
    """One permission. `text` says it whole; `path`: the one path that it is about."""

    access: PermissionKind
    path: str | None = None
    text: str


class QuestionOption(WireModel):
    """One of the answers that Codex proposes; `label` is what goes into `answers`."""

    label: str
    description: str = ""


class AskedQuestion(WireModel):
    """One question. `secret`: do not show what is typed. `other`: a text of one's own
    is an answer too; always so where there are no options."""

    id: str
    header: str
    text: str
    secret: bool
    other: bool
    options: list[QuestionOption] = []


class ElicitationMode(OpenEnum):
    """How an MCP server asks. What is `other` can only be declined."""

    FORM = "form"
    URL = "url"
    OTHER = "other"


class ApprovalDetail(WireModel):
    """All that the person must see. `allows`: what else a yes would let through.

    command: `command`, `cwd` · fileChange: `changes` · permissions: `permissions`, `cwd`
    · question: `questions` · elicitation: `server`, `mode`, `message`, `schema` or `url`
    · toolCall: `server`, `tool`, `arguments` (JSON text), `message`.
    """

    command: str | None = None
    cwd: str | None = None
    reason: str | None = None
    changes: list[FileDiff] | None = None
    permissions: list[Permission] | None = None
    questions: list[AskedQuestion] | None = None
    server: str | None = None
    mode: ElicitationMode | None = None
    message: str | None = None
    form: Annotated[dict[str, Any] | None, Field(alias="schema")] = None
    url: str | None = None
    tool: str | None = None
    arguments: str | None = None
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


FieldName = Annotated[str, StringConstraints(min_length=1, max_length=256)]
AnswerText = Annotated[str, StringConstraints(max_length=MAX_ANSWER)]
AnswerTexts = Annotated[list[AnswerText], Field(max_length=MAX_TEXTS)]
FormValue = bool | int | float | AnswerText | AnswerTexts


class ApprovalAnswerParams(Params):
    """`approval/answer`: exactly one of the offered choices, bound by the digest.

    `answers` (a question's, by id) and `content` (a form's, by field) go with the choice
    whose effect is `answer`, and with no other.
    """

    approval_id: WireId
    digest: WireId
    choice: Annotated[str, Field(min_length=1, max_length=64)]
    answers: Annotated[
        dict[FieldName, AnswerTexts] | None, Field(max_length=MAX_FIELDS)
    ] = None
    content: Annotated[
        dict[FieldName, FormValue] | None, Field(max_length=MAX_FIELDS)
    ] = None


class ApprovalResult(WireModel):
    """The approval after the answer: `answered`, or still `answering` after 15 s."""

    approval: Approval
