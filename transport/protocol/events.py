"""Events: what the Agent tells by itself, one model a name. Sans-IO. PROTOCOL.md section 6.

`item/delta` has no model: deltas are packed lists (`{"d": [seq, ref, channel, part,
text]}`), the hot path of the protocol.
"""

from enum import IntEnum
from typing import ClassVar, Final

from transport.protocol.approvals import Approval
from transport.protocol.base import OpenEnum, WireModel
from transport.protocol.gateway import Ceiling, GateState, RuntimeState
from transport.protocol.goals import Goal
from transport.protocol.items import Item
from transport.protocol.queue import QueuedMessage
from transport.protocol.threads import Thread
from transport.protocol.turns import Turn, Usage


class DeltaChannel(IntEnum):
    """Which text of an item a delta belongs to."""

    TEXT = 0
    REASONING = 1
    SUMMARY = 2
    OUTPUT = 3
    DIFF = 4
    PLAN = 5


class EventData(WireModel):
    """`data` of one event; the class knows the event's name."""

    event: ClassVar[str]


class ThreadStarted(EventData):
    """A thread came into being (sub-agents too)."""

    event = "thread/started"
    thread: Thread


class ThreadChanged(EventData):
    """Title, status, settings, mode or lease of a thread changed."""

    event = "thread/changed"
    thread: Thread


class ThreadRemoved(EventData):
    """A thread is gone from the lists; never said because of one failed read."""

    event = "thread/removed"
    thread_id: str
    reason: str


class TurnStarted(EventData):
    """A turn began."""

    event = "turn/started"
    turn: Turn


class TurnCompleted(EventData):
    """A turn ended: completed, interrupted or failed. Every open item was closed first."""

    event = "turn/completed"
    turn: Turn


class TurnReplaced(EventData):
    """A turn that was told before is this one: its items have other ids, or its end was
    another. `turn` is whole, cut as in `thread/read`."""

    event = "turn/replaced"
    turn: Turn


class ThreadReverted(EventData):
    """Turns were taken back: all behind `last_turn_id` are gone, with their items."""

    event = "thread/reverted"
    thread_id: str
    last_turn_id: str


class TurnDiff(EventData):
    """The cumulative diff of the turn."""

    event = "turn/diff"
    turn_id: str
    diff: str
    truncated: bool = False


class PlanStep(WireModel):
    """One step of a plan."""

    text: str
    status: str


class TurnPlan(EventData):
    """The model's plan for the turn."""

    event = "turn/plan"
    turn_id: str
    explanation: str | None = None
    steps: list[PlanStep]


class ItemStarted(EventData):
    """An item began; deltas name it by `ref`."""

    event = "item/started"
    ref: int
    item: Item


class ItemCompleted(EventData):
    """An item ended. Authoritative: whatever the deltas said, this is the item."""

    event = "item/completed"
    ref: int
    item: Item


class UsageChanged(EventData):
    """Token usage after a model call."""

    event = "usage/changed"
    turn_id: str
    usage: Usage


class ApprovalRequested(EventData):
    """Codex asks; it waits until `expires_at`."""

    event = "approval/requested"
    approval: Approval


class ApprovalResolved(EventData):
    """The one end of an approval."""

    event = "approval/resolved"
    approval: Approval


class GateChanged(EventData):
    """The gate opened or closed, or another writer is the reason."""

    event = "gate/changed"
    gate: GateState


class RuntimeChanged(EventData):
    """The Codex runtime started, failed or restarts."""

    event = "runtime/changed"
    runtime: RuntimeState


class NoticeLevel(OpenEnum):
    """How much a notice matters."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    OTHER = "other"


class Notice(EventData):
    """Something a person should know. `code` is stable, `message` is for reading."""

    event = "notice"
    level: NoticeLevel
    code: str
    message: str
    thread_id: str | None = None


class QueueChanged(EventData):
    """The Agent's queue of a thread, whole, after a change."""

    event = "queue/changed"
    thread_id: str
    queue: list[QueuedMessage]


class GoalChanged(EventData):
    """A thread's goal was set, paused, reached or cleared (then it is absent)."""

    event = "goal/changed"
    goal: Goal | None = None


JOURNAL_EVENTS: Final[dict[str, type[EventData]]] = {
    model.event: model
    for model in (
        ThreadStarted,
        ThreadChanged,
        ThreadRemoved,
        ThreadReverted,
        TurnStarted,
        TurnCompleted,
        TurnReplaced,
        TurnDiff,
        TurnPlan,
        ItemStarted,
        ItemCompleted,
        UsageChanged,
        ApprovalRequested,
        ApprovalResolved,
        GateChanged,
        RuntimeChanged,
        Notice,
        QueueChanged,
        GoalChanged,
    )
}


class Open(WireModel):
    """An item in progress as of a head, with its text so far. `seq`: last event in it.

    Whose it is must be said: on a resume it comes before the events that began it.
    """

    ref: int
    seq: int
    item: Item
    thread_id: str | None = None
    root_thread_id: str | None = None


class Gap(EventData):
    """The session fell out of the ring: re-read what is shown, go on from `head`."""

    event = "gap"
    epoch: str
    head: int
    open: list[Open]


class SessionChanged(EventData):
    """Rights changed. The epoch is new where they change what is seen."""

    event = "session/changed"
    epoch: str
    scopes: list[str]
    ceiling: Ceiling


class SessionClosing(EventData):
    """The Agent is about to close this session."""

    event = "session/closing"
    code: str
    message: str
    retry_after_ms: int | None = None


SESSION_EVENTS: Final[dict[str, type[EventData]]] = {
    model.event: model for model in (Gap, SessionChanged, SessionClosing)
}
