"""Codex's stored turns and their items as v2 models. Sans-IO. PROTOCOL.md section 5.

A turn whose shape does not fit is an `AnswerShapeError`; such an item does not hide the
others.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from adapter.shapes.failures import turn_error
from adapter.shapes.item_frame import Frame
from adapter.shapes.items import item_from
from adapter.shapes.shapes import (
    MISFITS,
    Shape,
    mapping,
    maybe_whole,
    maybe_word,
    seconds,
    text,
    wire_id,
)
from generated import codex
from transport.protocol.items import Item, ItemStatus, OtherItem
from transport.protocol.turns import Turn, TurnStatus

HISTORY: Final = "codex:history"


def turn_from(raw: Mapping[str, Any], thread_id: str, *, legacy: bool = False) -> Turn:
    """Return a stored turn, with its items unless Codex says `notLoaded`.

    `interrupted` without an end is `inferred`: a turn that runs in another process reads
    like that. `legacy`: the thread's historyMode; ids of its items are not the live ones.
    Raises: AnswerShapeError.
    """
    turn = cast("codex.Turn", raw)
    with Shape("turn"):
        shown = turn.get("itemsView") != "notLoaded"
        return ended_turn(raw, thread_id).model_copy(
            update={"items": _items(raw, legacy=legacy) if shown else None}
        )


def ended_turn(raw: Mapping[str, Any], thread_id: str) -> Turn:
    """Return a turn without its items. Raises one of `MISFITS`."""
    turn = cast("codex.Turn", raw)
    status = TurnStatus(text(turn["status"]))
    ended = seconds(turn.get("completedAt"))
    cut_off = status is TurnStatus.INTERRUPTED and ended is None
    return Turn(
        id=wire_id(turn["id"]),
        thread_id=thread_id,
        status=status,
        error=turn_error(turn.get("error")),
        started_at=seconds(turn.get("startedAt")),
        completed_at=ended,
        duration_ms=maybe_whole(turn.get("durationMs")),
        inferred=True if cut_off else None,
    )


def stored_frame(
    turn_id: str,
    *,
    running: bool = False,
    legacy: bool = False,
    started_at: int | None = None,
    completed_at: int | None = None,
) -> Frame:
    """Return what is known of a stored item; `running`: its turn is in progress."""
    return Frame(
        turn_id=turn_id,
        provenance=HISTORY,
        unfinished=ItemStatus.IN_PROGRESS if running else ItemStatus.INTERRUPTED,
        stable_id=False if legacy else None,
        started_at=started_at,
        completed_at=completed_at,
    )


def stored_item(raw: Mapping[str, Any], frame: Frame) -> Item:
    """Return a stored item. One that cannot be read does not hide the others."""
    try:
        return item_from(raw, frame)
    except MISFITS:
        return OtherItem(
            id=wire_id(raw["id"]),
            turn_id=frame.turn_id,
            status=ItemStatus.OTHER,
            provenance=HISTORY,
            source_type=maybe_word(raw.get("type")) or "unknown",
            summary="this item has a shape that is not known here",
        )


def _items(raw: Mapping[str, Any], *, legacy: bool) -> list[Item]:
    turn = cast("codex.Turn", raw)
    running = turn["status"] == "inProgress"
    frame = stored_frame(wire_id(turn["id"]), running=running, legacy=legacy)
    return [stored_item(mapping(item), frame) for item in turn["items"]]
