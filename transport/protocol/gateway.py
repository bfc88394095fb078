"""Runtime, gate and other writers as clients see them. Sans-IO. PROTOCOL.md sections 3, 5."""

from enum import StrEnum
from typing import Literal

from transport.protocol.base import NoParams, OpenEnum, WireModel


class RuntimePhase(OpenEnum):
    """Where the reader app-server is in its life."""

    STARTING = "starting"
    READY = "ready"
    RESTARTING = "restarting"
    FAILED = "failed"
    OTHER = "other"


class RuntimeState(WireModel):
    """The Codex runtime behind this Agent. `next_try_at` in ms since the epoch."""

    state: RuntimePhase
    name: str
    version: str | None = None
    since: int
    next_try_at: int | None = None
    error: str | None = None


class WriterKind(OpenEnum):
    """Which program holds the pen, as far as its executable tells."""

    DESKTOP = "desktop"
    CLI = "cli"
    IDE = "ide"
    DAEMON = "daemon"
    UNKNOWN = "unknown"
    OTHER = "other"


class Writer(WireModel):
    """Another process that writes (or may write) Codex threads. `since` in ms."""

    kind: WriterKind
    name: str
    pid: int
    since: int


class GateReason(OpenEnum):
    """Why mutations are refused. `None` on an open gate."""

    DESKTOP_ACTIVE = "desktopActive"
    WRITER_WITHOUT_LOCK = "writerWithoutLock"
    RUNTIME_DOWN = "runtimeDown"
    CONFIGURED = "configured"
    LOCKED = "locked"
    OTHER = "other"


class GatePosition(StrEnum):
    """Open, or read-only."""

    OPEN = "open"
    READ_ONLY = "readOnly"


class GateState(WireModel):
    """Whether mutations are possible now, and if not, because of whom."""

    state: GatePosition
    reason: GateReason | None = None
    writer: Writer | None = None
    since: int
    retry_after_ms: int | None = None


class Limits(WireModel):
    """The numbers a client must keep to. Bytes and milliseconds. PROTOCOL.md section 2."""

    frame_in: int
    frame_out: int
    in_flight: int
    page: int
    text_input: int
    blob: int = 0
    blob_chunk: int = 0
    blobs_per_turn: int = 0
    ping_ms: int
    dead_ms: int
    session_ms: int
    request_key_ms: int
    wait_ms: int
    approval_ms: int


class AgentInfo(WireModel):
    """Which Agent answers. `id` is 32 lower-case hex characters."""

    id: str
    name: str
    version: str


class LeaseState(OpenEnum):
    """Who holds a thread for writing, seen from this Agent. PROTOCOL.md section 3."""

    NONE = "none"
    LOADING = "loading"
    HELD = "held"
    RELEASING = "releasing"
    ELSEWHERE = "elsewhere"
    OTHER = "other"


class LeaseInfo(WireModel):
    """One row of `gateway/status.leases`."""

    thread_id: str
    state: LeaseState
    since: int


class FollowedThread(WireModel):
    """A thread of another program whose history is read for who is subscribed to it.

    `writer`: who has its lock, where somebody has. `since`: ms.
    """

    thread_id: str
    writer: Writer | None = None
    since: int


class GatewayStatusParams(NoParams):
    """`gateway/status` takes nothing."""


class GatewayStatus(WireModel):
    """One look at the whole Agent."""

    agent: AgentInfo
    runtime: RuntimeState
    gate: GateState
    warnings: list[str] = []
    leases: list[LeaseInfo] = []
    following: list[FollowedThread] = []
    sessions: int
    uptime_ms: int
    epoch: str
    head: int


ScopeName = Literal["read", "write", "approve", "approve.session"]
SandboxName = Literal["read-only", "workspace-write", "danger-full-access"]
ApprovalPolicyName = Literal["untrusted", "on-request", "never"]


class Ceiling(WireModel):
    """The widest that a device may go, set at the workstation. PROTOCOL.md section 2.

    `roots`: absolute folders; a thread whose folder lies in none of them does not
    exist for the device.
    """

    sandbox: str
    approval_policy: list[str]
    roots: list[str]


class DeviceInfo(WireModel):
    """What a device is told about itself. `id` is lower-case hex. `follows_threads`: the
    folders of all threads are roots of its ceiling, too."""

    id: str
    name: str
    scopes: list[str]
    ceiling: Ceiling | None = None
    follows_threads: bool = False
