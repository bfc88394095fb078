"""Turns: one exchange of a thread, and the methods about them. Sans-IO. PROTOCOL.md 4, 5."""

from typing import Annotated, Literal

from pydantic import Field

from transport.protocol.base import OpenEnum, Params, RequestKey, WireId, WireModel
from transport.protocol.items import Item


class TurnStatus(OpenEnum):
    """How a turn stands. History's `interrupted` may be `inferred`."""

    IN_PROGRESS = "inProgress"
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    UNKNOWN = "unknown"
    OTHER = "other"


class TurnError(WireModel):
    """Why a turn failed. `code` is Codex's own word for it.

    `http_status`: what the model provider answered, where Codex says it.
    """

    code: str
    message: str
    http_status: int | None = None


class Usage(WireModel):
    """Tokens of the turn's thread so far, over all its calls of the model.

    `context_used`: tokens of the last call alone, which is what fills `context_window`.
    """

    input: int
    cached_input: int
    output: int
    reasoning: int
    total: int
    context_window: int | None = None
    context_used: int | None = None


class Turn(WireModel):
    """One turn; `items` only where the method gives them."""

    id: str
    thread_id: str
    status: TurnStatus
    error: TurnError | None = None
    started_at: int | None = None
    completed_at: int | None = None
    duration_ms: int | None = None
    usage: Usage | None = None
    items: list[Item] | None = None
    more_items: bool | None = None
    inferred: bool | None = None


class TextInput(Params):
    """Text of the person, at most `limits.textInput` bytes of UTF-8."""

    type: Literal["text"]
    text: Annotated[str, Field(min_length=1)]


class ImageInput(Params):
    """A picture that this device has sent before (`blob/commit`)."""

    type: Literal["image"]
    blob_id: WireId


class MentionInput(Params):
    """A file, its path relative to the thread's folder. Links are not followed."""

    type: Literal["mention"]
    path: Annotated[str, Field(min_length=1, max_length=4096)]


InputPart = Annotated[
    TextInput | ImageInput | MentionInput, Field(discriminator="type")
]
TurnInput = Annotated[list[InputPart], Field(min_length=1, max_length=16)]
WaitMs = Annotated[int, Field(ge=0, le=90_000)]
PageLimit = Annotated[int, Field(ge=1, le=100)]
Cursor = Annotated[str, Field(min_length=1, max_length=1024)]


class TurnListParams(Params):
    """`turn/list`: pages of turns, newest first unless `order` says otherwise."""

    thread_id: WireId
    order: Literal["desc", "asc"] = "desc"
    items: Literal["none", "summary", "full"] = "summary"
    cursor: Cursor | None = None
    limit: PageLimit = 50


class TurnListResult(WireModel):
    """A page of turns. No `next_cursor` is the only end."""

    turns: list[Turn]
    next_cursor: str | None = None
    head: int


class TurnStartParams(Params):
    """`turn/start`: continue a thread with a message of the person."""

    thread_id: WireId
    input: TurnInput
    expected_last_turn_id: WireId | None = None
    delivery: Literal["start"] = "start"
    allow_pending: bool = False
    request_key: RequestKey
    wait_ms: WaitMs = 0


class TurnStartResult(WireModel):
    """The turn that Codex was seen to start."""

    turn: Turn
    delivery: str


class TurnInterruptParams(Params):
    """`turn/interrupt`: stop exactly this turn. Passes a closed gate: it ends a write."""

    thread_id: WireId
    turn_id: WireId
    request_key: RequestKey
    wait_ms: WaitMs = 0


class TurnResult(WireModel):
    """The turn after the act."""

    turn: Turn
