"""Turns: one exchange of a thread, and the methods about them. Sans-IO. PROTOCOL.md 4, 5."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from transport.protocol.base import (
    OpenEnum,
    Params,
    ThreadMutationParams,
    WireId,
    WireModel,
)
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
ModelName = Annotated[str, Field(min_length=1, max_length=128)]
EffortName = Annotated[str, Field(min_length=1, max_length=64)]
ModeName = Literal["default", "plan"]
FolderName = Annotated[str, Field(min_length=1, max_length=4096)]
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


class TurnStartParams(ThreadMutationParams):
    """`turn/start`: continue a thread with a message of the person."""

    input: TurnInput
    expected_last_turn_id: WireId | None = None
    delivery: Literal["start", "steer", "queue"] = "start"
    allow_pending: bool = False
    mode: ModeName | None = None
    model: ModelName | None = None
    effort: EffortName | None = None
    cwd: FolderName | None = None
    output_schema: dict[str, JsonValue] | None = None


class Queued(WireModel):
    """Where a message waits in the Agent's queue; `position` 1 is the next one."""

    queue_id: str
    position: int


class TurnStartResult(WireModel):
    """What happened to the message. `delivery`: started, steered or queued.

    `turn`: the one that was seen to start, or that took it; absent where it is queued.
    `pending`: see TurnSteerResult.
    """

    turn: Turn | None = None
    queued: Queued | None = None
    delivery: str
    pending: bool | None = None

    @property
    def sent(self) -> Turn:
        """The turn of a message that was not queued."""
        assert self.turn is not None
        return self.turn


class TurnSteerParams(ThreadMutationParams):
    """`turn/steer`: more words for a turn that runs, and for no other."""

    turn_id: WireId
    input: TurnInput


class TurnSteerResult(WireModel):
    """The turn. `pending`: Codex has the message, and the model has not taken it yet.

    It takes it with its next call; `notice steerLost` tells where the turn ended first.
    """

    turn: Turn
    pending: bool | None = None


class TurnInterruptParams(ThreadMutationParams):
    """`turn/interrupt`: stop exactly this turn. Passes a closed gate: it ends a write.

    `background`: end the background commands of its thread and sub-agents as well.
    """

    turn_id: WireId
    background: bool = False


class TurnResult(WireModel):
    """The turn after the act."""

    turn: Turn
