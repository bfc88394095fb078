"""Pages of items as Codex has them, however large its items are. Trio shell.

PROTOCOL.md section 4. They come in portions. Threads that an old Codex has written have no
pages of items: their turns are read instead, one after another.
"""

from typing import Final

from adapter.calls import store_commands
from adapter.calls.portions import Firsts, Portions
from adapter.calls.refusals import not_offered
from adapter.errors import AnswerTooLongError, CodexRefusedError
from adapter.limits import FIRST_ITEMS
from adapter.servers import turn_pages as pages
from adapter.servers.reads import Read
from adapter.servers.turn_pages import Row, TurnPages

_BY_TURNS: Final = "turns:"  # how a cursor begins that goes through turns


class ItemRows:
    """Raw items of threads, page by page."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._turns = TurnPages(read)
        self._firsts = Firsts(FIRST_ITEMS)

    async def page(
        self,
        thread_id: str,
        *,
        turn_id: str | None,
        cursor: str | None,
        limit: int,
        order: str,
    ) -> tuple[list[Row], str | None]:
        """Return at most `limit` rows, and the cursor behind them.

        `turn_id`: only of this turn. Raises: AdapterError.
        """
        if cursor is None or not cursor.startswith(_BY_TURNS):
            try:
                return await self._portions(
                    thread_id, turn_id=turn_id, cursor=cursor, limit=limit, order=order
                )
            except CodexRefusedError as exc:
                if not not_offered(exc):
                    raise
            cursor = _BY_TURNS
        rows, following = await self._turns.rows(
            thread_id,
            turn_id=turn_id,
            cursor=cursor.removeprefix(_BY_TURNS),
            limit=limit,
            order=order,
        )
        return rows, None if following is None else _BY_TURNS + following

    async def _portions(
        self,
        thread_id: str,
        *,
        turn_id: str | None,
        cursor: str | None,
        limit: int,
        order: str,
    ) -> tuple[list[Row], str | None]:
        """Return a page of items; fewer where they are large."""
        found: list[Row] = []
        portions = Portions(limit, first=self._firsts.of(thread_id))
        while count := portions.wanted():
            command = store_commands.list_items(
                thread_id, turn_id=turn_id, cursor=cursor, limit=count, order=order
            )
            try:
                rows, cursor = pages.rows_of(await self._read(command))
            except AnswerTooLongError:
                if found:
                    break  # what came is a page; the next one begins here
                if not portions.too_long():
                    raise
                continue
            portions.came([row.item for row in rows])
            found += rows
            if cursor is None:
                break
        self._firsts.note(thread_id, portions)
        return found, cursor
