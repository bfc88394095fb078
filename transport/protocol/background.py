"""Commands that outlived their turn, and the methods about them. Sans-IO. PROTOCOL.md 4."""

from transport.protocol.base import Params, ThreadMutationParams, WireId, WireModel


class BackgroundCommand(WireModel):
    """One command. `thread_id`: the sub-agent's, where one runs it."""

    item_id: str
    thread_id: str
    command: str
    cwd: str
    started_at: int | None = None


class BackgroundListParams(Params):
    """`background/list`: of a thread and its sub-agents."""

    thread_id: WireId


class BackgroundListResult(WireModel):
    """What runs in a writer of ours; a thread without one has none of ours."""

    commands: list[BackgroundCommand]
    head: int


class BackgroundStopParams(ThreadMutationParams):
    """`background/stop`: end one. Passes a closed gate: it ends a write."""

    item_id: WireId


class BackgroundStopResult(WireModel):
    """It has been ended; its item says how."""
