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
    OTHER = "other"


class QueuedMessage(WireModel):
    """One message that waits. `preview`: its first characters, on one line.

    `waits_for`: absent where it was not tried yet, or follows another one.
    """

    queue_id: str
    thread_id: str
    position: int
    preview: str
    device_id: str
    created_at: int
    expires_at: int
    waits_for: WaitsFor | None = None


class QueueListParams(Params):
    """`queue/list`: of one thread, or of all."""

    thread_id: WireId | None = None


class QueueListResult(WireModel):
    """What waits, oldest first in each thread.

    `codex_queue`: what others queued at Codex for the thread that was named. The Agent
    never writes there.
    """

    queue: list[QueuedMessage]
    codex_queue: list[str] = []
    head: int


class QueueDeleteParams(MutationParams):
    """`queue/delete`: take a message back before it is delivered."""

    queue_id: WireId


class QueueDeleteResult(WireModel):
    """It is gone, and was not sent."""
