"""What a fake reader's disk holds, and acts on it. Steps as in `fake_runtime`.

Steps: `list_items`, `item_texts`, `search`, `find`, `find_files`, `rename`, `archive`, `unarchive`,
`delete`, each with `:done` when its effect has happened.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from adapter.errors import (
    CodexRefusedError,
    ThreadForkedError,
    ThreadLockedError,
    ThreadUnknownError,
)
from adapter.runtime.acts import Guard
from adapter.runtime.events import Emit, Emitted
from adapter.runtime.store import (
    FoundFiles,
    FoundItems,
    FoundThreads,
    HeldText,
    ItemPage,
    TextName,
)
from tests.support.fake_threads import AT, Stored
from transport.protocol.contents import ItemHit
from transport.protocol.events import ThreadRemoved

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.fake_runtime import FakeRuntime
    from transport.protocol.items import Item


class FakeStore:
    """`StoreContents` and `StoreActs` over the threads of a fake runtime."""

    def __init__(self, runtime: FakeRuntime, emit: Emit) -> None:
        self._runtime = runtime
        self._emit = emit

    async def list_items(
        self,
        thread_id: str,
        *,
        turn_id: str | None,
        cursor: str | None,
        limit: int,
        order: str,
    ) -> ItemPage:
        await self._runtime.reach("list_items")
        items = self._items(self._stored("thread/items/list", thread_id), turn_id)
        if order == "desc":
            items.reverse()
        start = int(cursor or 0)
        following = str(start + limit) if start + limit < len(items) else None
        return ItemPage(
            items=tuple(items[start : start + limit]), next_cursor=following
        )

    def _items(self, stored: Stored, turn_id: str | None) -> list[Item]:
        return [
            item
            for turn in stored.turns
            if turn_id in (None, turn.id)
            for item in turn.items or ()
        ]

    async def item_texts(
        self, thread_id: str, item_id: str, *, turn_id: str | None
    ) -> Mapping[TextName, HeldText] | None:
        await self._runtime.reach("item_texts")
        stored = self._stored("thread/items/list", thread_id)
        if item_id in stored.texts:
            return stored.texts[item_id]
        for item in self._items(stored, turn_id):
            if item.id == item_id:
                data = getattr(item, "text", "").encode()
                return {("text", ""): HeldText(data=data, total=len(data))}
        return None

    async def search(
        self, query: str, *, archived: bool, cursor: str | None, limit: int
    ) -> FoundThreads:
        await self._runtime.reach("search")
        rows = [
            stored.thread
            for stored in self._runtime.threads.values()
            if stored.thread.archived is archived and query in stored.thread.preview
        ]
        start = int(cursor or 0)
        following = str(start + limit) if start + limit < len(rows) else None
        shown = rows[start : start + limit]
        return FoundThreads(
            threads=tuple(shown),
            next_cursor=following,
            snippets={row.id: f"… {query} …" for row in shown},
        )

    async def find(
        self, thread_id: str, query: str, *, cursor: str | None, limit: int
    ) -> FoundItems:
        await self._runtime.reach("find")
        stored = self._stored("thread/searchOccurrences", thread_id)
        hits = [
            ItemHit(turn_id=item.turn_id, item_id=item.id, snippet=f"… {query} …")
            for item in self._items(stored, None)
            if query in getattr(item, "text", "")
        ]
        return FoundItems(hits=tuple(hits[:limit]), next_cursor=None)

    async def find_files(self, query: str, *, folder: str) -> FoundFiles:
        """Like Codex: every path that has the words, through whatever links there are."""
        await self._runtime.reach("find_files")
        found = [
            os.path.relpath(os.path.join(at, name), folder)
            for at, folders, files in os.walk(folder, followlinks=True)
            for name in (*folders, *files)
            if query in name
        ]
        return FoundFiles(paths=tuple(sorted(found)[:50]), truncated=len(found) > 50)

    async def rename(self, thread_id: str, name: str, *, guard: Guard) -> None:
        stored = await self._acting("rename", thread_id, guard, locks=False)
        stored.thread = stored.thread.model_copy(update={"title": name})
        await self._runtime.reach("rename:done")

    async def archive(self, thread_id: str, *, guard: Guard) -> None:
        stored = await self._acting("archive", thread_id, guard)
        stored.thread = stored.thread.model_copy(update={"archived": True})
        self._tell_gone(thread_id, "archived")
        await self._runtime.reach("archive:done")

    async def unarchive(self, thread_id: str, *, guard: Guard) -> None:
        stored = await self._acting("unarchive", thread_id, guard)
        stored.thread = stored.thread.model_copy(update={"archived": False})
        await self._runtime.reach("unarchive:done")

    async def delete(self, thread_id: str, *, guard: Guard) -> None:
        await self._acting("delete", thread_id, guard)
        forks = self._runtime.threads.values()
        if any(one.thread.forked_from_id == thread_id for one in forks):
            message = f"cannot delete thread {thread_id}: forked history …"
            raise ThreadForkedError("thread/delete", -32600, message)
        del self._runtime.threads[thread_id]
        self._tell_gone(thread_id, "deleted")
        await self._runtime.reach("delete:done")

    async def _acting(
        self, step: str, thread_id: str, guard: Guard, *, locks: bool = True
    ) -> Stored:
        await self._runtime.reach(step)
        guard()
        stored = self._runtime.threads.get(thread_id)
        if stored is None:
            message = f"no rollout found for thread id {thread_id}"
            raise ThreadUnknownError(f"thread/{step}", -32600, message)
        if locks and stored.locked_by is not None:
            message = f"thread {thread_id} already has an active writer"
            raise ThreadLockedError(f"thread/{step}", -32600, message)
        return stored

    def _tell_gone(self, thread_id: str, reason: str) -> None:
        data = ThreadRemoved(thread_id=thread_id, reason=reason)
        self._emit(Emitted(at=AT, thread_id=thread_id, data=data))

    def _stored(self, method: str, thread_id: str) -> Stored:
        try:
            return self._runtime.threads[thread_id]
        except KeyError:
            message = f"{method} is not supported yet"
            raise CodexRefusedError(method, -32601, message) from None
