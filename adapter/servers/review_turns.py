"""Which of a thread's stored turns are the inner half of a review. Trio shell.

PROTOCOL.md section 5 and `adapter/shapes/reviews.py`. Codex does not say it with an item,
so its turns are gone through without their items, newest first.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from adapter.calls import reading_commands
from adapter.limits import BOUNDARY_PAGES, TURNS_LOOKED
from adapter.servers.reads import Read, rows_of
from adapter.shapes.reviews import inner_of, roots_of
from adapter.shapes.shapes import Shape

Looked = Callable[[list[Mapping[str, Any]]], bool]
"""Takes one page of rows; returns whether that is enough."""


async def inner_turn(read: Read, thread_id: str, turn_id: str) -> str | None:
    """Return the turn in which the model worked for this review. Raises: AdapterError."""
    found: list[str] = []

    def looked(rows: list[Mapping[str, Any]]) -> bool:
        inner = inner_of(rows, turn_id)
        found.extend([] if inner is None else [inner])
        return bool(found)

    await _go_through(read, thread_id, looked)
    return found[0] if found else None


async def told_turns(
    read: Read, thread_id: str, turn_ids: Collection[str]
) -> Mapping[str, str]:
    """Return under which turn clients know each of these that is an inner one.

    Raises: AdapterError.
    """
    missing, told = set(turn_ids), dict[str, str]()

    def looked(rows: list[Mapping[str, Any]]) -> bool:
        roots = roots_of(rows)
        told.update({one: roots[one] for one in missing & roots.keys()})
        missing.difference_update(row["id"] for row in rows)
        return not missing

    if missing:
        await _go_through(read, thread_id, looked)
    return told


async def _go_through(read: Read, thread_id: str, looked: Looked) -> None:
    cursor: str | None = None
    for _ in range(BOUNDARY_PAGES):
        command = reading_commands.list_turns(
            thread_id, cursor=cursor, limit=TURNS_LOOKED, order="desc", items="none"
        )
        rows, cursor = rows_of(await read(command), command.method)
        with Shape(command.method):
            enough = looked(rows)
        if enough or cursor is None:
            return
