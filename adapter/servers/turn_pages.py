"""Items out of pages of items, or out of turns where there are no such pages. Trio shell.

Threads that codex before 0.163 has written keep no items of their own (PROTOCOL.md
section 5, `stableId`): a cursor then names a turn and how many of its items were told.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapter.calls import reading_commands
from adapter.calls.store_commands import LIST_ITEMS
from adapter.errors import CodexRefusedError
from adapter.servers import reads
from adapter.servers.reads import Read
from adapter.shapes.item_frame import Frame
from adapter.shapes.shapes import (
    Shape,
    mapping,
    maybe_whole,
    sequence,
    wire_id,
)
from adapter.shapes.turns import stored_frame

_BAD_CURSOR = -32600


@dataclass(frozen=True, slots=True)
class Row:
    """A raw item, and what is known of it from around it."""

    item: Mapping[str, Any]
    frame: Frame


def rows_of(answer: Mapping[str, Any]) -> tuple[list[Row], str | None]:
    """Return the rows of a page of items. Raises: AnswerShapeError."""
    rows, following = reads.rows_of(answer, LIST_ITEMS)
    with Shape(LIST_ITEMS):
        return [_row(row) for row in rows], following


def _row(row: Mapping[str, Any]) -> Row:
    frame = stored_frame(
        wire_id(row["turnId"]),
        started_at=maybe_whole(row.get("startedAtMs")),
        completed_at=maybe_whole(row.get("completedAtMs")),
    )
    return Row(mapping(row["item"]), frame)


class TurnPages:
    """Goes through turns for their items."""

    def __init__(self, read: Read) -> None:
        self._read = read

    async def rows(
        self,
        thread_id: str,
        *,
        turn_id: str | None,
        cursor: str,
        limit: int,
        order: str,
    ) -> tuple[list[Row], str | None]:
        """Return at most `limit` rows of one turn, and the cursor behind them.

        `turn_id`: only of this turn; pages before and behind it are empty.
        """
        skip, at = _read_cursor(cursor)
        answer = await self._read(
            reading_commands.list_turns(
                thread_id, cursor=at, limit=1, order=order, items="full"
            )
        )
        turns, following = reads.rows_of(answer, "thread/turns/list")
        with Shape("thread/turns/list"):
            rows = [row for turn in turns for row in _rows_of_turn(turn, turn_id)]
        if order == "desc":
            rows.reverse()
        shown = rows[skip : skip + limit]
        if skip + limit < len(rows):
            return shown, f"{skip + limit}:{at or ''}"
        if following is None or (rows and turn_id is not None):
            return shown, None
        return shown, f"0:{following}"


def _rows_of_turn(turn: Mapping[str, Any], wanted: str | None) -> list[Row]:
    turn_id = wire_id(turn["id"])
    if wanted not in (None, turn_id):
        return []
    running = turn.get("status") == "inProgress"
    frame = stored_frame(turn_id, running=running, legacy=True)
    return [Row(mapping(item), frame) for item in sequence(turn["items"])]


def _read_cursor(cursor: str) -> tuple[int, str | None]:
    if not cursor:
        return 0, None
    skip, colon, at = cursor.partition(":")
    if not colon or not skip.isdecimal():
        raise CodexRefusedError(LIST_ITEMS, _BAD_CURSOR, "invalid cursor")
    return int(skip), at or None
