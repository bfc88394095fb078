"""Pieces of a thread's history, and how they look as events. Sans-IO.

PROTOCOL.md section 3 (Modes): what `follow` compares and tells.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from agent.reading.standing import Others
from transport.protocol.items import Item, ItemStatus
from transport.protocol.threads import Thread
from transport.protocol.turns import Turn, TurnStatus

RUNS: Final = (TurnStatus.IN_PROGRESS, TurnStatus.UNKNOWN)
FOLLOWED: Final = (
    "Another program runs this turn: what it does shows here when it is done, up to some "
    "seconds later. The message that it is writing, and whether it waits for its own "
    "user, cannot be seen from here."
)
GAP: Final = "More happened in this thread than is told here: read it anew."
TAKEN_BACK: Final = (
    "Turns of this thread were taken back by another program: read it anew."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What the store shows now: the thread, its newest turns (newest first, without a
    hole). `others`: who was there before or after the read."""

    thread: Thread
    turns: Sequence[Turn]
    others: Others


@dataclass(frozen=True, slots=True)
class ToldItem:
    """`look`: a hash of the item as history showed it; `None` where a writer told it."""

    status: ItemStatus
    look: int | None


@dataclass(slots=True, kw_only=True)
class ToldTurn:
    """`ended`: the end that was told. `live`: by a writer of ours; `unstable`: its items
    have other ids in history. `doubts`: looks in a row that found nobody running it.
    `items`: `None` where the turn is too old to be compared with history."""

    live: bool = False
    unstable: bool = False
    ended: TurnStatus | None = None
    noticed: bool = False
    doubts: int = 0
    items: dict[str, ToldItem] | None = field(default_factory=dict[str, ToldItem])


def began_after(turn: Turn, since: int) -> bool:
    """Whether the turn is news for who knew all until then (ms)."""
    return turn.started_at is None or turn.started_at > since


def begun(turn: Turn) -> Turn:
    """Return the turn as it was when it began."""
    runs = turn.status in RUNS
    return turn.model_copy(
        update={
            "status": turn.status if runs else TurnStatus.IN_PROGRESS,
            "inferred": turn.inferred if runs else None,
            "error": None,
            "completed_at": None,
            "duration_ms": None,
            "usage": None,
            "items": None,
        }
    )


def without_items(turn: Turn) -> Turn:
    """Return the turn as events carry it."""
    return turn.model_copy(update={"items": None, "more_items": None})


def ended_items(turn: Turn, *, running: bool) -> Iterator[Item]:
    """Yield the items that have ended. In a turn that runs none was cut short yet."""
    for item in turn.items or ():
        open_ended = item.status is ItemStatus.IN_PROGRESS or (
            running and item.status is ItemStatus.INTERRUPTED
        )
        if not open_ended:
            yield item


def look_of(item: Item) -> int:
    """Return what changes when anything of the item does."""
    return hash(item.model_dump_json())


def alike(now: Thread, told: Thread) -> bool:
    """Whether nothing changed but what turns themselves tell."""
    same = {
        "updated_at": told.updated_at,
        "last_turn_id": told.last_turn_id,
        "settings": told.settings,
    }
    return now.model_copy(update=same) == told
