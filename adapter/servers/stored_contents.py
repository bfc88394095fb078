"""What threads hold, in the reader's Codex: items, texts, words, files. Trio shell.

PROTOCOL.md sections 3 and 4.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count as numbers
from typing import Any

import trio

from adapter.calls import store_commands
from adapter.calls.refusals import not_offered
from adapter.errors import (
    AdapterError,
    CodexRefusedError,
    NoAnswerError,
)
from adapter.limits import (
    FILES_END_S,
    FILES_FOUND,
    ITEMS_A_PAGE,
    ITEMS_LOOK_S,
    ITEMS_LOOKED,
    SNIPPET_CHARS,
)
from adapter.runtime.store import (
    FoundFiles,
    FoundItems,
    FoundThreads,
    HeldText,
    ItemPage,
    TextName,
)
from adapter.servers import turn_pages as pages
from adapter.servers.app_server import AppServer
from adapter.servers.item_rows import ItemRows
from adapter.servers.reads import Read, read_fitting, rows_of
from adapter.servers.review_turns import inner_turn, told_turns
from adapter.servers.turn_pages import Row
from adapter.shapes.reviews import is_beginning, items_as_told
from adapter.shapes.shapes import (
    Shape,
    mapping,
    sequence,
    text,
    wire_id,
)
from adapter.shapes.texts import one_line
from adapter.shapes.threads import thread_from
from adapter.shapes.turns import stored_item
from adapter.shapes.whole_texts import whole_texts
from transport.protocol.contents import ItemHit
from transport.protocol.items import Item


class StoredContents:
    """`StoreContents` over the reader's app-server.

    `read` asks, and tries a read that fails for a moment again. `is_child`: whether
    a thread is a sub-agent's, whose turns all work for their parent's.
    """

    def __init__(
        self,
        server: AppServer,
        read: Read,
        is_child: Callable[[str], Awaitable[bool]],
    ) -> None:
        self._server = server
        self._read = read
        self._is_child = is_child
        self._rows = ItemRows(read)
        self._searches = numbers(1)

    async def list_items(
        self,
        thread_id: str,
        *,
        turn_id: str | None,
        cursor: str | None,
        limit: int,
        order: str,
    ) -> ItemPage:
        """Return one page of items."""
        rows, following = await self._rows.page(
            thread_id, turn_id=turn_id, cursor=cursor, limit=limit, order=order
        )
        told = items_as_told(_items(rows), newest_first=order == "desc")
        first_page = cursor is None if order == "asc" else following is None
        if turn_id is not None and first_page and (told or cursor is None):
            told = await self._with_prompt(thread_id, turn_id, told, order)
        return ItemPage(items=tuple(told), next_cursor=following)

    async def _with_prompt(
        self, thread_id: str, turn_id: str, items: list[Item], order: str
    ) -> list[Item]:
        """Put what a review's model was asked behind the item with which it begins.

        `items`: the oldest of this turn. While a review runs, it has none of its own.
        """
        begins = 0 if order == "asc" else -1
        if items and not is_beginning(items[begins]):
            return items
        inner = await self._inner(thread_id, turn_id)
        if inner is None:
            return items
        rows, _ = await self._rows.page(
            thread_id, turn_id=inner, cursor=None, limit=ITEMS_A_PAGE, order=order
        )
        asked = _items(rows)
        prompt = [one.model_copy(update={"turn_id": turn_id}) for one in asked]
        place = len(items[:1]) if order == "asc" else len(items[:-1])
        return [*items[:place], *prompt, *items[place:]]

    async def _inner(self, thread_id: str, turn_id: str) -> str | None:
        if await self._is_child(thread_id):
            return None
        return await inner_turn(self._read, thread_id, turn_id)

    async def item_texts(
        self, thread_id: str, item_id: str, *, turn_id: str | None
    ) -> Mapping[TextName, HeldText] | None:
        """Return an item's texts; without its turn the newest items are looked through."""
        if turn_id is not None:
            try:
                return await self._texts_in(thread_id, turn_id, item_id)
            except CodexRefusedError as exc:
                if not not_offered(exc):
                    raise
        cursor: str | None = None
        looked = 0
        with trio.move_on_after(ITEMS_LOOK_S):
            while looked < ITEMS_LOOKED:
                rows, cursor = await self._rows.page(
                    thread_id,
                    turn_id=turn_id,
                    cursor=cursor,
                    limit=ITEMS_A_PAGE,
                    order="desc",
                )
                for row in rows:
                    if row.item.get("id") == item_id:
                        return whole_texts(row.item)
                if cursor is None:
                    break
                looked += max(1, len(rows))
        return None

    async def _texts_in(
        self, thread_id: str, turn_id: str, item_id: str
    ) -> Mapping[TextName, HeldText] | None:
        """Return the texts of an item of this turn, or of the one it works through."""
        command = store_commands.read_item(thread_id, turn_id, item_id)
        rows, _ = pages.rows_of(await self._read(command))
        if not rows:
            inner = await self._inner(thread_id, turn_id)
            if inner is None:
                return None
            command = store_commands.read_item(thread_id, inner, item_id)
            rows, _ = pages.rows_of(await self._read(command))
        return whole_texts(rows[0].item) if rows else None

    async def search(
        self, query: str, *, archived: bool, cursor: str | None, limit: int
    ) -> FoundThreads:
        """Return threads in which the words occur; fewer where the rows are large."""
        answer = await read_fitting(
            self._read,
            limit,
            lambda count: store_commands.search(
                query, archived=archived, cursor=cursor, limit=count
            ),
        )
        rows, following = rows_of(answer, store_commands.SEARCH)
        with Shape(store_commands.SEARCH):
            found = [
                (thread_from(mapping(row["thread"]), archived=archived), _snippet(row))
                for row in rows
            ]
        return FoundThreads(
            threads=tuple(thread for thread, _ in found),
            next_cursor=following,
            snippets={thread.id: snippet for thread, snippet in found},
        )

    async def find(
        self, thread_id: str, query: str, *, cursor: str | None, limit: int
    ) -> FoundItems:
        """Return where in a thread the words occur."""
        answer = await self._read(
            store_commands.find(thread_id, query, cursor=cursor, limit=limit)
        )
        rows, following = rows_of(answer, store_commands.FIND)
        with Shape(store_commands.FIND):
            hits = [_hit(row) for row in rows]
        told = await self._told(thread_id, hits)
        return FoundItems(hits=tuple(told), next_cursor=following)

    async def _told(self, thread_id: str, hits: list[ItemHit]) -> list[ItemHit]:
        """Return hits in what a review's model was asked under the review's own turn."""
        if not hits or await self._is_child(thread_id):
            return hits
        found = {hit.turn_id for hit in hits}
        told = await told_turns(self._read, thread_id, found)
        return [
            hit.model_copy(update={"turn_id": told.get(hit.turn_id, hit.turn_id)})
            for hit in hits
        ]

    async def find_files(self, query: str, *, folder: str) -> FoundFiles:
        """Return files below a folder. Nobody waits for it any more: Codex ends it."""
        token = f"threadgate-{next(self._searches)}"
        try:
            answer = await self._read(
                store_commands.find_files(query, folder, token=token)
            )
        except (trio.Cancelled, NoAnswerError):
            # No longer than that: whoever cancels may wait for us, and Codex may hang.
            with trio.move_on_after(FILES_END_S, shield=True), suppress(AdapterError):
                await self._server.call(store_commands.end_search(token))
            raise
        with Shape(store_commands.FIND_FILES):
            rows = [mapping(row) for row in sequence(answer["files"])]
            paths = [text(row["path"]) for row in rows if text(row["root"]) == folder]
        return FoundFiles(
            paths=tuple(paths[:FILES_FOUND]), truncated=len(rows) >= FILES_FOUND
        )


def _items(rows: Sequence[Row]) -> list[Item]:
    with Shape(store_commands.LIST_ITEMS):
        return [stored_item(row.item, row.frame) for row in rows]


def _snippet(row: Mapping[str, Any]) -> str:
    return one_line(text(row["snippet"]), SNIPPET_CHARS)


def _hit(row: Mapping[str, Any]) -> ItemHit:
    return ItemHit(
        turn_id=wire_id(row["turnId"]),
        item_id=wire_id(row["itemId"]),
        snippet=_snippet(row),
    )
