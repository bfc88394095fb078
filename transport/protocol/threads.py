"""Threads, and the methods about them. Sans-IO. PROTOCOL.md sections 4 and 5."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from transport.protocol.base import (
    MutationParams,
    OpenEnum,
    Params,
    ThreadMutationParams,
    WireId,
    WireModel,
)
from transport.protocol.gateway import (
    ApprovalPolicyName,
    LeaseState,
    SandboxName,
    Writer,
)
from transport.protocol.turns import (
    Cursor,
    EffortName,
    FolderName,
    ModelName,
    ModeName,
    PageLimit,
    Turn,
    TurnInput,
)


class ThreadStatus(OpenEnum):
    """What a thread does now, as far as anybody can know."""

    IDLE = "idle"
    RUNNING = "running"
    WAITING_ON_APPROVAL = "waitingOnApproval"
    WAITING_ON_INPUT = "waitingOnInput"
    FAILED = "failed"
    UNKNOWN = "unknown"
    OTHER = "other"


class ThreadMode(OpenEnum):
    """Where a thread's events come from: a writer of ours, another's history, nobody."""

    LIVE = "live"
    FOLLOW = "follow"
    STILL = "still"
    OTHER = "other"


class ThreadSettings(WireModel):
    """A thread's effective settings, as Codex last told them."""

    model: str | None = None
    effort: str | None = None
    mode: str | None = None
    sandbox: str | None = None
    approval_policy: str | None = None
    cwd: str | None = None


class GitInfo(WireModel):
    """Where the thread's folder stood; `origin` never carries credentials."""

    branch: str | None = None
    commit: str | None = None
    origin: str | None = None


class Thread(WireModel):
    """One Codex thread."""

    id: str
    title: str | None = None
    preview: str
    cwd: str
    source: str
    status: ThreadStatus
    mode: ThreadMode
    lease: LeaseState
    writer: Writer | None = None
    settings: ThreadSettings | None = None
    created_at: int
    updated_at: int
    archived: bool = False
    parent_id: str | None = None
    root_id: str | None = None
    forked_from_id: str | None = None
    git: GitInfo | None = None
    last_turn_id: str | None = None
    ephemeral: bool = False
    inferred: bool | None = None


class ThreadListParams(Params):
    """`thread/list`: the person's threads, newest change first by default."""

    archived: bool = False
    cwd: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    query: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    sort: Literal["updatedAt", "createdAt"] = "updatedAt"
    parent_id: WireId | None = None
    cursor: Cursor | None = None
    limit: PageLimit = 50


class ThreadListResult(WireModel):
    """A page of threads. No `next_cursor` is the only end."""

    threads: list[Thread]
    next_cursor: str | None = None
    head: int


class ThreadReadParams(Params):
    """`thread/read`: a thread and its newest turns with their items."""

    thread_id: WireId
    turns: Annotated[int, Field(ge=0, le=100)] = 10


class ThreadReadResult(WireModel):
    """The thread, its newest turns (newest first); `next_cursor` goes to `turn/list`."""

    thread: Thread
    turns: list[Turn]
    next_cursor: str | None = None
    head: int


class ThreadStartParams(MutationParams):
    """`thread/start`: a new thread with its first message, as one mutation.

    `cwd` is absolute and must lie inside a root of the device.
    """

    cwd: Annotated[str, Field(min_length=1, max_length=4096)]
    input: TurnInput
    name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    model: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    effort: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    sandbox: SandboxName | None = None
    approval_policy: ApprovalPolicyName | None = None
    mode: ModeName | None = None
    output_schema: dict[str, JsonValue] | None = None


class ThreadStartResult(WireModel):
    """The new thread and its first turn, seen to start."""

    thread: Thread
    turn: Turn


class ThreadSettingsParams(ThreadMutationParams):
    """`thread/settings`: what later turns run with. At least one is named."""

    model: ModelName | None = None
    effort: EffortName | None = None
    mode: ModeName | None = None
    sandbox: SandboxName | None = None
    approval_policy: ApprovalPolicyName | None = None
    cwd: FolderName | None = None
    allow_pending: bool = False


class ThreadResult(WireModel):
    """The thread after the act."""

    thread: Thread
