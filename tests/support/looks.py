"""What a look at a thread's history shows, and who is there."""

from collections.abc import Sequence

from adapter.runtime.events import Emitted, ItemClosed, RuntimeEvent
from agent.following.follow import Told
from agent.following.history_view import Snapshot
from agent.reading.standing import Others
from tests.support.fake_threads import AT, make_thread
from transport.protocol.events import (
    TurnCompleted,
    TurnStarted,
)
from transport.protocol.gateway import Writer, WriterKind
from transport.protocol.items import AgentMessage, Item, ItemStatus
from transport.protocol.turns import Turn, TurnStatus

HOLDER = Writer(kind=WriterKind.DESKTOP, name="Codex desktop", pid=7, since=1)
THERE = Others(holder=HOLDER)
NOBODY = Others()


def item(
    item_id: str,
    turn_id: str,
    *,
    status: ItemStatus = ItemStatus.COMPLETED,
    stable: bool | None = None,
    seen: str = "codex:history",
) -> Item:
    return AgentMessage(
        id=item_id,
        turn_id=turn_id,
        status=status,
        text=f"text of {item_id}",
        stable_id=stable,
        provenance=seen,
    )


def turn(
    turn_id: str,
    *items: Item,
    status: TurnStatus = TurnStatus.COMPLETED,
    at: int = AT,
) -> Turn:
    ended = status is not TurnStatus.INTERRUPTED
    return Turn(
        id=turn_id,
        thread_id="thr",
        status=status,
        started_at=at,
        completed_at=at + 1_000 if ended else None,
        items=list(items),
    )


def running(turn_id: str, *items: Item, at: int = AT) -> Turn:
    """How history tells a turn that runs elsewhere, or was cut short."""
    return turn(turn_id, *items, status=TurnStatus.INTERRUPTED, at=at)


def shown(*turns: Turn, others: Others = NOBODY) -> Snapshot:
    """A snapshot; turns are given oldest first."""
    return Snapshot(thread=make_thread("thr"), turns=turns[::-1], others=others)


def live_turn(
    told: Told, turn_id: str, items: Sequence[str], *, stable: bool | None = None
) -> list[RuntimeEvent]:
    """Play a whole turn of a writer of ours."""
    began = turn(turn_id).model_copy(
        update={"status": TurnStatus.IN_PROGRESS, "items": None, "completed_at": None}
    )
    events: list[RuntimeEvent] = [event(TurnStarted(turn=began))]
    events += [
        ItemClosed(
            at=AT,
            thread_id="thr",
            item=item(one, turn_id, stable=stable, seen="codex:item/completed"),
        )
        for one in items
    ]
    ended = turn(turn_id).model_copy(update={"items": None})
    events.append(event(TurnCompleted(turn=ended)))
    for one in events:
        told.note(one)
    return events


def event(data: TurnStarted | TurnCompleted) -> Emitted:
    return Emitted(at=AT, thread_id="thr", data=data)
