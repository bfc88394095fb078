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


SESSION_OPEN: Final = Method(
    "session/open",
    session.SessionOpenParams,
    session.SessionOpenResult,
    Access.SESSION,
)
PAIRING_CONFIRM: Final = Method(
    "pairing/confirm",
    session.PairingConfirmParams,
    session.PairingConfirmResult,
    Access.PAIRING,
)
EVENTS_SUBSCRIBE: Final = Method(
    "events/subscribe", session.SubscribeParams, session.SubscribeResult, Access.READ
)
GATEWAY_CAPABILITIES: Final = Method(
    "gateway/capabilities",
    capabilities.CapabilitiesParams,
    capabilities.CapabilitiesResult,
    Access.READ,
)
MODEL_LIST: Final = Method(
    "model/list",
    capabilities.ModelListParams,
    capabilities.ModelListResult,
    Access.READ,
)
GATEWAY_STATUS: Final = Method(
    "gateway/status", gateway.GatewayStatusParams, gateway.GatewayStatus, Access.READ
)
THREAD_LIST: Final = Method(
    "thread/list", threads.ThreadListParams, threads.ThreadListResult, Access.READ
)
THREAD_READ: Final = Method(
    "thread/read", threads.ThreadReadParams, threads.ThreadReadResult, Access.READ
)
TURN_LIST: Final = Method(
    "turn/list", turns.TurnListParams, turns.TurnListResult, Access.READ
)
ITEM_LIST: Final = Method(
    "item/list", contents.ItemListParams, contents.ItemListResult, Access.READ
)
ITEM_OUTPUT: Final = Method(
    "item/output", contents.ItemOutputParams, contents.ItemOutputResult, Access.READ
)
THREAD_DIFF: Final = Method(
    "thread/diff", contents.ThreadDiffParams, contents.ThreadDiffResult, Access.READ
)
THREAD_SEARCH: Final = Method(
    "thread/search",
    contents.ThreadSearchParams,
    contents.ThreadSearchResult,
    Access.READ,
)
THREAD_FIND: Final = Method(
    "thread/find", contents.ThreadFindParams, contents.ThreadFindResult, Access.READ
)
FILE_SEARCH: Final = Method(
    "file/search", files.FileSearchParams, files.FileSearchResult, Access.READ
)
APPROVAL_LIST: Final = Method(
    "approval/list",
    approvals.ApprovalListParams,
    approvals.ApprovalListResult,
    Access.READ,
)
THREAD_START: Final = Method(
    "thread/start",
    threads.ThreadStartParams,
    threads.ThreadStartResult,
    Access.WRITE,
    gated=True,
)
THREAD_FORK: Final = Method(
    "thread/fork",
    thread_acts.ThreadForkParams,
    thread_acts.ThreadForkResult,
    Access.WRITE,
    gated=True,
)
THREAD_COMPACT: Final = Method(
    "thread/compact",
    thread_acts.ThreadCompactParams,
    thread_acts.ThreadCompactResult,
    Access.WRITE,
    gated=True,
)
THREAD_REVERT: Final = Method(
    "thread/revert",
    thread_acts.ThreadRevertParams,
    threads.ThreadResult,
    Access.WRITE,
    gated=True,
)
REVIEW_START: Final = Method(
    "review/start",
    reviews.ReviewStartParams,
    turns.TurnResult,
    Access.WRITE,
    gated=True,
)
THREAD_RENAME: Final = Method(
    "thread/rename",
    thread_acts.ThreadRenameParams,
    threads.ThreadResult,
    Access.WRITE,
    gated=True,
)
THREAD_ARCHIVE: Final = Method(
    "thread/archive",
    thread_acts.ThreadArchiveParams,
    threads.ThreadResult,
    Access.WRITE,
    gated=True,
)
THREAD_UNARCHIVE: Final = Method(
    "thread/unarchive",
    thread_acts.ThreadUnarchiveParams,
    threads.ThreadResult,
    Access.WRITE,
    gated=True,
)
THREAD_DELETE: Final = Method(
    "thread/delete",
    thread_acts.ThreadDeleteParams,
    thread_acts.ThreadDeleteResult,
    Access.WRITE,
    gated=True,
)
TURN_START: Final = Method(
    "turn/start",
    turns.TurnStartParams,
    turns.TurnStartResult,
    Access.WRITE,
    gated=True,
)
TURN_STEER: Final = Method(
    "turn/steer",
    turns.TurnSteerParams,
    turns.TurnSteerResult,
    Access.WRITE,
    gated=True,
)
THREAD_SETTINGS: Final = Method(
    "thread/settings",
    threads.ThreadSettingsParams,
    threads.ThreadResult,
    Access.WRITE,
    gated=True,
)
QUEUE_LIST: Final = Method(
    "queue/list", queue.QueueListParams, queue.QueueListResult, Access.READ
)
QUEUE_DELETE: Final = Method(
    "queue/delete", queue.QueueDeleteParams, queue.QueueDeleteResult, Access.WRITE
)
BACKGROUND_LIST: Final = Method(
    "background/list",
    background.BackgroundListParams,
    background.BackgroundListResult,
    Access.READ,
)
BACKGROUND_STOP: Final = Method(
    "background/stop",
    background.BackgroundStopParams,
    background.BackgroundStopResult,
    Access.WRITE,
)
GOAL_GET: Final = Method(
    "thread/goal/get", goals.GoalGetParams, goals.GoalGetResult, Access.READ
)
GOAL_SET: Final = Method(
    "thread/goal/set",
    goals.GoalSetParams,
    goals.GoalResult,
    Access.WRITE,
    gated=True,
)
GOAL_PAUSE: Final = Method(
    "thread/goal/pause",
    goals.GoalPauseParams,
    goals.GoalResult,
    Access.WRITE,
    gated=True,
)
GOAL_CLEAR: Final = Method(
    "thread/goal/clear",
    goals.GoalClearParams,
    goals.GoalResult,
    Access.WRITE,
    gated=True,
)
TURN_INTERRUPT: Final = Method(
    "turn/interrupt", turns.TurnInterruptParams, turns.TurnResult, Access.WRITE
)
APPROVAL_ANSWER: Final = Method(
    "approval/answer",
    approvals.ApprovalAnswerParams,
    approvals.ApprovalResult,
    Access.APPROVE,
)
BLOB_BEGIN: Final = Method(
    "blob/begin", blobs.BlobBeginParams, blobs.BlobBeginResult, Access.WRITE
)
BLOB_CHUNK: Final = Method(
    "blob/chunk", blobs.BlobChunkParams, blobs.BlobChunkResult, Access.WRITE
)
BLOB_COMMIT: Final = Method(
    "blob/commit", blobs.BlobCommitParams, blobs.BlobCommitResult, Access.WRITE
)
BLOB_READ: Final = Method(
    "blob/read", blobs.BlobReadParams, blobs.BlobReadResult, Access.READ
)
DEVICE_LIST: Final = Method(
    "device/list", admin.DeviceListParams, admin.DeviceListResult, Access.ADMIN
)
DEVICE_GRANT: Final = Method(
    "device/grant", admin.DeviceGrantParams, admin.DeviceResult, Access.ADMIN
)
DEVICE_REVOKE: Final = Method(
    "device/revoke", admin.DeviceRevokeParams, admin.DeviceResult, Access.ADMIN
)
PAIR_OPEN: Final = Method(
    "pair/open", admin.PairOpenParams, admin.PairOpenResult, Access.ADMIN
)
PAIR_AWAIT: Final = Method(
    "pair/await", admin.PairAwaitParams, admin.PairAwaitResult, Access.ADMIN
)
PAIR_DECIDE: Final = Method(
    "pair/decide", admin.PairDecideParams, admin.PairDecideResult, Access.ADMIN
)
AUDIT_LIST: Final = Method(
    "audit/list", admin.AuditListParams, admin.AuditListResult, Access.ADMIN
)
GATEWAY_LOCK: Final = Method(
    "gateway/lock",
    admin.GatewayLockParams,
    admin.GatewayLockResult,
    Access.ADMIN,
)
GATEWAY_UNLOCK: Final = Method(
    "gateway/unlock",
    admin.GatewayUnlockParams,
    admin.GatewayLockResult,
    Access.ADMIN,
)

METHODS: Final[dict[str, Method[Any, Any]]] = {
    method.name: method
    for method in (
        SESSION_OPEN,
        PAIRING_CONFIRM,
        EVENTS_SUBSCRIBE,
        GATEWAY_STATUS,
        GATEWAY_CAPABILITIES,
        MODEL_LIST,
        THREAD_LIST,
        THREAD_READ,
        TURN_LIST,
        ITEM_LIST,
        ITEM_OUTPUT,
        THREAD_DIFF,
        THREAD_SEARCH,
        THREAD_FIND,
        FILE_SEARCH,
        APPROVAL_LIST,
        THREAD_START,
        THREAD_FORK,
        THREAD_RENAME,
        THREAD_ARCHIVE,
        THREAD_UNARCHIVE,
        THREAD_DELETE,
        THREAD_COMPACT,
        THREAD_REVERT,
        REVIEW_START,
        TURN_START,
        TURN_STEER,
        TURN_INTERRUPT,
        THREAD_SETTINGS,
        QUEUE_LIST,
        QUEUE_DELETE,
        BACKGROUND_LIST,
        BACKGROUND_STOP,
        GOAL_GET,
        GOAL_SET,
        GOAL_PAUSE,
        GOAL_CLEAR,
        APPROVAL_ANSWER,
        BLOB_BEGIN,
        BLOB_CHUNK,
        BLOB_COMMIT,
        BLOB_READ,
        DEVICE_LIST,
        DEVICE_GRANT,
        DEVICE_REVOKE,
        PAIR_OPEN,
        PAIR_AWAIT,
        PAIR_DECIDE,
        AUDIT_LIST,
        GATEWAY_LOCK,
        GATEWAY_UNLOCK,
    )
}
