"""The Agent's own queue of messages, and the methods about it. Sans-IO. PROTOCOL.md 4."""

from transport.protocol.base import MutationParams, OpenEnum, Params, WireId, WireModel


class WaitsFor(OpenEnum):
    """Why a message still waits, as far as the Agent has tried."""

    TURN = "turn"
    GATE = "gate"
    WRITER = "writer"
    CODEX_QUEUE = "codexQueue"
    GOAL = "goal"
    AGENT = "agent"
    CODEX = "codex"
    OTHER = "other"


class QueuedMessage(WireModel):
    """One message that waits. `preview`: its first characters, on one line.

    `waits_for`: absent where it was not tried yet, or follows another one.
    `waits_message`: what Codex said, where it waits for that.
    """

    queue_id: str
    thread_id: str
    position: int
    preview: str
    device_id: str
    created_at: int
    expires_at: int
    waits_for: WaitsFor | None = None
    waits_message: str | None = None


class DroppedMessage(WireModel):
    """One message that waits no more and was not delivered; told for a day.

    `preview`: empty once its device was shut out. `code`: as of the notice. `error`: the
    code of the refusal, where it was refused.
    """

    queue_id: str
    thread_id: str
    device_id: str
    preview: str
    code: str
    message: str
    error: str | None = None
    at: int


class QueueListParams(Params):
    """`queue/list`: of one thread, or of all."""

    thread_id: WireId | None = None


class QueueListResult(WireModel):
    """What waits, oldest first in each thread.

    `codex_queue`: what others queued at Codex for the thread that was named. The Agent
    never writes there. `dropped`: what was not delivered, oldest first.
    """

    queue: list[QueuedMessage]
    codex_queue: list[str] = []
    dropped: list[DroppedMessage] = []
    head: int


class QueueDeleteParams(MutationParams):
    """`queue/delete`: take a message back before it is delivered."""

    queue_id: WireId


class QueueDeleteResult(WireModel):
    """It is gone, and was not sent."""
