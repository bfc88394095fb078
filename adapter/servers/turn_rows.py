"""Pages of turns as Codex has them, however large its turns are. Trio shell.

PROTOCOL.md section 4. They come in portions. A turn that is too long even alone is put
together from a page of its own items, the newest first, as many as a page may be long.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from adapter.calls import reading_commands, store_commands
from adapter.calls.portions import Firsts, Portions
from adapter.calls.refusals import not_offered
from adapter.errors import AnswerTooLongError, CodexRefusedError
from adapter.limits import FIRST_ITEMS, ITEMS_A_PAGE
from adapter.servers import turn_pages
from adapter.servers.loading import id_of
from adapter.servers.reads import Read, rows_of

Row = Mapping[str, Any]
_TURNS: Final = "thread/turns/list"


@dataclass(slots=True)
class TurnRows:
    """`rows` of one page, its `cursor` behind them; `short`: turns that lack items."""

    cursor: str | None
    rows: list[Row] = field(default_factory=list[Row])
    short: set[str] = field(default_factory=set[str])


async def read_turn_rows(
    read: Read,
    thread_id: str,
    *,
    cursor: str | None,
    limit: int,
    order: str,
    items: str,
    firsts: Firsts,
) -> TurnRows:
    """Return at most `limit` turns; fewer where they are large. Raises: AdapterError."""
    page = TurnRows(cursor)
    first = limit if items == "none" else firsts.of(thread_id)
    portions = Portions(limit, first=first)
    while count := portions.wanted():
        command = reading_commands.list_turns(
            thread_id, cursor=page.cursor, limit=count, order=order, items=items
        )
        try:
            rows, following = rows_of(await read(command), _TURNS)
        except AnswerTooLongError:
            if portions.too_long():
                continue
            rows, following = await _in_pieces(read, thread_id, page, order, items)
            portions.end()
        else:
            portions.came(rows)
        page.rows += rows
        page.cursor = following
        if following is None:
            break
    if items == "full":
        firsts.note(thread_id, portions)
    return page


async def _in_pieces(
    read: Read, thread_id: str, page: TurnRows, order: str, items: str
) -> tuple[list[Row], str | None]:
    """Return the next turn with its newest items, and the first where it is known."""
    command = reading_commands.list_turns(
        thread_id, cursor=page.cursor, limit=1, order=order, items="none"
    )
    rows, following = rows_of(await read(command), _TURNS)
    for row in rows:
        turn_id = id_of(row, _TURNS)
        page.short.add(turn_id)
        found = await _newest_items(read, thread_id, turn_id)
        if items == "summary":
            found = [one for one in found if one.get("type") == "agentMessage"][-1:]
        return [{**row, "items": found, "itemsView": items}], following
    return rows, following


async def _newest_items(read: Read, thread_id: str, turn_id: str) -> list[Row]:
    found: list[Row] = []
    cursor: str | None = None
    portions = Portions(ITEMS_A_PAGE, first=FIRST_ITEMS)
    while count := portions.wanted():
        command = store_commands.list_items(
            thread_id, turn_id=turn_id, cursor=cursor, limit=count, order="desc"
        )
        try:
            rows, cursor = turn_pages.rows_of(await read(command))
        except AnswerTooLongError:
            if portions.too_long():
                continue
            break
        except CodexRefusedError as exc:
            if not not_offered(exc):
                raise
            break  # an older codex wrote it: it has no items of its own
        items = [row.item for row in rows]
        portions.came(items)
        found += items
        if cursor is None:
            break
    return [*reversed(found)]
