"""What threads hold, for a caller: items, whole texts, diffs. Trio shell.

PROTOCOL.md section 4. Whole texts come from this run's own events where they are there,
else from history, which may have less; what is missing is said, never filled.
"""

from collections.abc import Callable, Mapping

import trio

from adapter.calls.refusals import not_offered
from adapter.errors import AdapterError, CodexRefusedError
from adapter.runtime.store import HeldText, ItemPage, TextName
from agent.access.scopes import Caller
from agent.access.sight import Sight
from agent.app_servers.lease_registry import LeaseRegistry
from agent.app_servers.supervisor import Supervisor
from agent.files.upload import misfit
from agent.limits import DIFF_HELD, DIFF_ITEMS, DIFF_S, OPEN_BYTES
from agent.reading.diffs import changes_of, joined
from agent.reading.output_cache import OutputCache
from agent.reading.pages import (
    fitting,
    newest_within,
    page_refusal,
    unwrap_cursor,
    wrap_cursor,
)
from transport.errors import NotFound, Refusal
from transport.protocol.contents import (
    ItemListParams,
    ItemListResult,
    ItemOutputParams,
    ItemOutputResult,
    ThreadDiffParams,
    ThreadDiffResult,
)
from transport.protocol.items import FileChange, Item, ItemStatus

_STEP = 100  # items that the store is asked for at once


class Contents:
    """`item/list`, `item/output`, `thread/diff`."""

    def __init__(
        self,
        *,
        supervisor: Supervisor,
        leases: LeaseRegistry,
        sight: Sight,
        cache: OutputCache,
        head: Callable[[], int],
        now_ms: Callable[[], int],
    ) -> None:
        self._supervisor = supervisor
        self._leases = leases
        self._sight = sight
        self._cache = cache
        self._head = head
        self._now_ms = now_ms

    async def item_list(self, caller: Caller, params: ItemListParams) -> ItemListResult:
        """Return one page of items. Raises: Refusal."""
        head = self._head()
        await self._sight.thread(caller, params.thread_id)
        listing = {
            "method": "item/list",
            "thread": params.thread_id,
            "turn": params.turn_id,
            "order": params.order,
        }
        cursor = unwrap_cursor(listing, params.cursor)
        page = await self._page(params, cursor, params.limit)
        while (fits := fitting(page.items)) < len(page.items):
            page = await self._page(params, cursor, fits)
        items = list(page.items)
        if params.order == "asc" and page.next_cursor is None:
            items += self._in_progress(params, page)
        elif params.order == "desc" and cursor is None:
            items[:0] = reversed(self._in_progress(params, page))
        return ItemListResult(
            items=items,
            next_cursor=wrap_cursor(listing, page.next_cursor),
            head=head,
        )

    async def _page(
        self, params: ItemListParams, cursor: str | None, limit: int
    ) -> ItemPage:
        try:
            return await self._supervisor.reader.contents.list_items(
                params.thread_id,
                turn_id=params.turn_id,
                cursor=cursor,
                limit=limit,
                order=params.order,
            )
        except AdapterError as exc:
            if isinstance(exc, CodexRefusedError) and not_offered(exc):
                return ItemPage(items=(), next_cursor=None)  # it has no turn yet
            raise self._refusal(exc, params.thread_id) from exc

    def _in_progress(self, params: ItemListParams, page: ItemPage) -> list[Item]:
        """Return what a writer of ours has begun: the store gets it when it ends."""
        lease = self._leases.lease_of(params.thread_id)
        if lease is None or lease.writer is None:
            return []
        running = (
            lease.writer.running_turn_id if lease.key == params.thread_id else None
        )
        turn_id = params.turn_id or running
        turn = lease.writer.live_turn(turn_id) if turn_id is not None else None
        if turn is None or turn.thread_id != params.thread_id:
            return []
        told = {item.id for item in page.items}
        begun = [
            item
            for item in turn.items or ()
            if item.status is ItemStatus.IN_PROGRESS and item.id not in told
        ]
        return newest_within(begun, OPEN_BYTES)

    async def item_output(
        self, caller: Caller, params: ItemOutputParams
    ) -> ItemOutputResult:
        """Return a part of one text of an item. Raises: Refusal."""
        await self._sight.thread(caller, params.thread_id)
        texts = self._cache.texts(params.thread_id, params.item_id)
        if texts is None:
            texts = await self._stored_texts(params)
        held = _chosen(texts, params)
        data = held.data[params.offset : params.offset + params.limit]
        available = len(held.data)
        return ItemOutputResult(
            bytes=data,
            available=available,
            total=held.total,
            gap_at=held.gap_at,
            eof=params.offset + len(data) >= available,
        )

    async def _stored_texts(
        self, params: ItemOutputParams
    ) -> Mapping[TextName, HeldText]:
        try:
            texts = await self._supervisor.reader.contents.item_texts(
                params.thread_id, params.item_id, turn_id=params.turn_id
            )
        except AdapterError as exc:
            raise self._refusal(exc, params.thread_id) from exc
        if texts is None:
            raise NotFound(
                "This thread has no such item, or a very old one: name its turn too.",
                data={"kind": "item", "id": params.item_id},
            )
        return texts

    async def thread_diff(
        self, caller: Caller, params: ThreadDiffParams
    ) -> ThreadDiffResult:
        """Return what file changes did. Raises: Refusal."""
        head = self._head()
        await self._sight.thread(caller, params.thread_id)
        asked = ItemListParams(
            thread_id=params.thread_id, turn_id=params.turn_id, order="desc"
        )
        changes: list[FileChange] = []
        cursor: str | None = None
        looked = held = 0
        with trio.move_on_after(DIFF_S) as patience:
            while looked < DIFF_ITEMS and held < DIFF_HELD:
                page = await self._page(asked, cursor, _STEP)
                changed = changes_of(page.items)
                changes += changed
                looked += max(1, len(page.items))
                held += sum(len(one.diff) for item in changed for one in item.changes)
                cursor = page.next_cursor
                if cursor is None:
                    break
        diff, files, cut = joined(changes[::-1])
        cut = cut or cursor is not None or patience.cancelled_caught
        return ThreadDiffResult(diff=diff, files=files, truncated=cut, head=head)

    def _refusal(self, exc: AdapterError, thread_id: str) -> Refusal:
        return page_refusal(exc, thread_id=thread_id, at_ms=self._now_ms())


def _chosen(texts: Mapping[TextName, HeldText], params: ItemOutputParams) -> HeldText:
    """Return the text that is meant. Raises: InvalidParams."""
    fits = {path: text for (name, path), text in texts.items() if name == params.field}
    if not fits:
        raise misfit("field", f"this item has no {params.field}")
    if params.path is None:
        if len(fits) > 1:
            raise misfit("path", "several files were changed: say which is meant")
        return next(iter(fits.values()))
    if params.path not in fits:
        raise misfit("path", "this item did not change that file")
    return fits[params.path]
