"""Threads and turns as the disk of the fake runtime holds them."""

from dataclasses import dataclass, field

from adapter.runtime.reader import PendingWork
from adapter.runtime.store import HeldText, TextName
from adapter.runtime.threads import EffectiveSettings
from transport.protocol.gateway import LeaseState
from transport.protocol.goals import Goal
from transport.protocol.items import ItemStatus, UserMessage
from transport.protocol.threads import Thread, ThreadMode, ThreadStatus
from transport.protocol.turns import Turn, TurnStatus

AT = 1_796_058_499_000


def make_thread(thread_id: str, *, cwd: str = "/work/app", at: int = AT) -> Thread:
    """Return a thread as the reader tells it: nobody's, idle."""
    return Thread(
        id=thread_id,
        title=None,
        preview=f"preview of {thread_id}",
        cwd=cwd,
        source="cli",
        status=ThreadStatus.IDLE,
        mode=ThreadMode.STILL,
        lease=LeaseState.NONE,
        created_at=at,
        updated_at=at,
    )


def make_turn(
    turn_id: str, thread_id: str, status: TurnStatus = TurnStatus.COMPLETED
) -> Turn:
    """Return a turn of history; only a running one has no end."""
    ended = status in (TurnStatus.COMPLETED, TurnStatus.FAILED)
    return Turn(
        id=turn_id,
        thread_id=thread_id,
        status=status,
        started_at=AT,
        completed_at=AT + 1_000 if ended else None,
        items=[
            UserMessage(
                id=f"u-{turn_id}",
                turn_id=turn_id,
                status=ItemStatus.COMPLETED,
                text=f"question of {turn_id}",
            )
        ],
    )


@dataclass(slots=True)
class Stored:
    """One thread on the fake's disk. `turns` oldest first."""

    thread: Thread
    turns: list[Turn] = field(default_factory=list[Turn])
    settings: EffectiveSettings = field(
        default_factory=lambda: EffectiveSettings(
            cwd="/work/app",
            sandbox="workspace-write",
            approval_policy="on-request",
            model="gpt",
            effort=None,
        )
    )
    pending: PendingWork = field(default_factory=PendingWork)
    goal: Goal | None = None
    locked_by: int | None = None  # a foreign pid, or a writer's of ours
    hidden: set[str] = field(default_factory=set[str])  # turns only a resume shows
    texts: dict[str, dict[TextName, HeldText]] = field(
        default_factory=dict[str, dict[TextName, HeldText]]
    )  # whole, by item
