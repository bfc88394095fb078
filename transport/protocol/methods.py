"""The method table: name, params, result, and what it takes to call it. Sans-IO.

PROTOCOL.md section 4. The one authority for scopes: what has no row does not exist, and
a remote device may call only rows whose access it has.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

from transport.protocol import (
    admin,
    approvals,
    background,
    blobs,
    capabilities,
    contents,
    files,
    gateway,
    goals,
    queue,
    reviews,
    session,
    thread_acts,
    threads,
    turns,
)
from transport.protocol.base import Params, WireModel

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=WireModel)


class Access(StrEnum):
    """What the caller needs. `SESSION`: any authenticated peer. `ADMIN`: admin.sock."""

    SESSION = "session"
    PAIRING = "pairing"
    READ = "read"
    WRITE = "write"
    APPROVE = "approve"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Method(Generic[P, R]):
    """One row. `gated`: refused while the gate is closed."""

    name: str
    params: type[P]
    result: type[R]
    access: Access
    gated: bool = False


METHODS: Final[dict[str, Method[Any, Any]]] = {}


def _row(
    name: str, params: type[P], result: type[R], access: Access, *, gated: bool = False
) -> Method[P, R]:
    """Put a row into the table, and return it."""
    row = METHODS[name] = Method(name, params, result, access, gated)
    return row


SESSION_OPEN: Final = _row(
    "session/open", session.SessionOpenParams, session.SessionOpenResult, Access.SESSION
)
PAIRING_CONFIRM: Final = _row(
    "pairing/confirm",
    session.PairingConfirmParams,
    session.PairingConfirmResult,
    Access.PAIRING,
)
EVENTS_SUBSCRIBE: Final = _row(
    "events/subscribe", session.SubscribeParams, session.SubscribeResult, Access.READ
)
GATEWAY_CAPABILITIES: Final = _row(
    "gateway/capabilities",
    capabilities.CapabilitiesParams,
    capabilities.CapabilitiesResult,
    Access.READ,
)
MODEL_LIST: Final = _row(
    "model/list",
    capabilities.ModelListParams,
    capabilities.ModelListResult,
    Access.READ,
)
GATEWAY_STATUS: Final = _row(
    "gateway/status", gateway.GatewayStatusParams, gateway.GatewayStatus, Access.READ
)
THREAD_LIST: Final = _row(
    "thread/list", threads.ThreadListParams, threads.ThreadListResult, Access.READ
)
THREAD_READ: Final = _row(
    "thread/read", threads.ThreadReadParams, threads.ThreadReadResult, Access.READ
)
TURN_LIST: Final = _row(
    "turn/list", turns.TurnListParams, turns.TurnListResult, Access.READ
)
ITEM_LIST: Final = _row(
    "item/list", contents.ItemListParams, contents.ItemListResult, Access.READ
)
ITEM_OUTPUT: Final = _row(
    "item/output", contents.ItemOutputParams, contents.ItemOutputResult, Access.READ
)
THREAD_DIFF: Final = _row(
    "thread/diff", contents.ThreadDiffParams, contents.ThreadDiffResult, Access.READ
)
THREAD_SEARCH: Final = _row(
    "thread/search",
    contents.ThreadSearchParams,
    contents.ThreadSearchResult,
    Access.READ,
)
THREAD_FIND: Final = _row(
    "thread/find", contents.ThreadFindParams, contents.ThreadFindResult, Access.READ
)
FILE_SEARCH: Final = _row(
    "file/search", files.FileSearchParams, files.FileSearchResult, Access.READ
)
APPROVAL_LIST: Final = _row(
    "approval/list",
    approvals.ApprovalListParams,
    approvals.ApprovalListResult,
    Access.READ,
)
THREAD_START: Final = _row(
    "thread/start",
    threads.ThreadStartParams,
    threads.ThreadStartResult,
    Access.WRITE,
    gated=True,
)
THREAD_FORK: Final = _row(
    "thread/fork",
    thread_acts.ThreadForkParams,
    thread_acts.ThreadForkResult,
    Access.WRITE,
    gated=True,
)
THREAD_COMPACT: Final = _row(
    "thread/compact",
    thread_acts.ThreadCompactParams,
    thread_acts.ThreadCompactResult,
    Access.WRITE,
    gated=True,
)
THREAD_REVERT: Final = _row(
    "thread/revert",
    thread_acts.ThreadRevertParams,
    threads.ThreadResult,
    Access.WRITE,
    gated=True,
)
REVIEW_START: Final = _row(
    "review/start",
    reviews.ReviewStartParams,
    turns.TurnResult,
    Access.WRITE,
    gated=True,
)
THREAD_RENAME: Final = _row(
    "thread/rename",
    thread_acts.ThreadRenameParams,
    threads.ThreadResult,
    Access.WRITE,
    gated=True,
)
THREAD_ARCHIVE: Final = _row(
    "thread/archive",
    thread_acts.ThreadArchiveParams,
    threads.ThreadResult,
    Access.WRITE,
    gated=True,
)
THREAD_UNARCHIVE: Final = _row(
    "thread/unarchive",
    thread_acts.ThreadUnarchiveParams,
    threads.ThreadResult,
    Access.WRITE,
    gated=True,
)
THREAD_DELETE: Final = _row(
    "thread/delete",
    thread_acts.ThreadDeleteParams,
    thread_acts.ThreadDeleteResult,
    Access.WRITE,
    gated=True,
)
TURN_START: Final = _row(
    "turn/start", turns.TurnStartParams, turns.TurnStartResult, Access.WRITE, gated=True
)
TURN_STEER: Final = _row(
    "turn/steer", turns.TurnSteerParams, turns.TurnSteerResult, Access.WRITE, gated=True
)
THREAD_SETTINGS: Final = _row(
    "thread/settings",
    threads.ThreadSettingsParams,
    threads.ThreadResult,
    Access.WRITE,
    gated=True,
)
QUEUE_LIST: Final = _row(
    "queue/list", queue.QueueListParams, queue.QueueListResult, Access.READ
)
QUEUE_DELETE: Final = _row(
    "queue/delete", queue.QueueDeleteParams, queue.QueueDeleteResult, Access.WRITE
)
BACKGROUND_LIST: Final = _row(
    "background/list",
    background.BackgroundListParams,
    background.BackgroundListResult,
    Access.READ,
)
BACKGROUND_STOP: Final = _row(
    "background/stop",
    background.BackgroundStopParams,
    background.BackgroundStopResult,
    Access.WRITE,
)
GOAL_GET: Final = _row(
    "thread/goal/get", goals.GoalGetParams, goals.GoalGetResult, Access.READ
)
GOAL_SET: Final = _row(
    "thread/goal/set", goals.GoalSetParams, goals.GoalResult, Access.WRITE, gated=True
)
GOAL_PAUSE: Final = _row(
    "thread/goal/pause",
    goals.GoalPauseParams,
    goals.GoalResult,
    Access.WRITE,
    gated=True,
)
GOAL_CLEAR: Final = _row(
    "thread/goal/clear",
    goals.GoalClearParams,
    goals.GoalResult,
    Access.WRITE,
    gated=True,
)
TURN_INTERRUPT: Final = _row(
    "turn/interrupt", turns.TurnInterruptParams, turns.TurnResult, Access.WRITE
)
APPROVAL_ANSWER: Final = _row(
    "approval/answer",
    approvals.ApprovalAnswerParams,
    approvals.ApprovalResult,
    Access.APPROVE,
)
BLOB_BEGIN: Final = _row(
    "blob/begin", blobs.BlobBeginParams, blobs.BlobBeginResult, Access.WRITE
)
BLOB_CHUNK: Final = _row(
    "blob/chunk", blobs.BlobChunkParams, blobs.BlobChunkResult, Access.WRITE
)
BLOB_COMMIT: Final = _row(
    "blob/commit", blobs.BlobCommitParams, blobs.BlobCommitResult, Access.WRITE
)
BLOB_READ: Final = _row(
    "blob/read", blobs.BlobReadParams, blobs.BlobReadResult, Access.READ
)
DEVICE_LIST: Final = _row(
    "device/list", admin.DeviceListParams, admin.DeviceListResult, Access.ADMIN
)
DEVICE_GRANT: Final = _row(
    "device/grant", admin.DeviceGrantParams, admin.DeviceResult, Access.ADMIN
)
DEVICE_REVOKE: Final = _row(
    "device/revoke", admin.DeviceRevokeParams, admin.DeviceResult, Access.ADMIN
)
PAIR_OPEN: Final = _row(
    "pair/open", admin.PairOpenParams, admin.PairOpenResult, Access.ADMIN
)
PAIR_AWAIT: Final = _row(
    "pair/await", admin.PairAwaitParams, admin.PairAwaitResult, Access.ADMIN
)
PAIR_DECIDE: Final = _row(
    "pair/decide", admin.PairDecideParams, admin.PairDecideResult, Access.ADMIN
)
AUDIT_LIST: Final = _row(
    "audit/list", admin.AuditListParams, admin.AuditListResult, Access.ADMIN
)
GATEWAY_LOCK: Final = _row(
    "gateway/lock", admin.GatewayLockParams, admin.GatewayLockResult, Access.ADMIN
)
GATEWAY_UNLOCK: Final = _row(
    "gateway/unlock", admin.GatewayUnlockParams, admin.GatewayLockResult, Access.ADMIN
)
