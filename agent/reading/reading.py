"""Threads and turns for a caller. Trio shell over the reader. PROTOCOL.md 3 to 5.

Reading never waits for the gate. `head` is taken before the store is asked, so an event
with a later seq is always news. How a thread stands is said by `judge`.
"""

from collections.abc import Callable
from functools import partial

from adapter.errors import AdapterError
from adapter.runtime.reader import ThreadPage, ThreadQuery
from agent.access.scopes import Caller
from agent.access.sight import Sight
from agent.app_servers.supervisor import Supervisor
from agent.reading.judge import Judge
from agent.reading.pages import page_refusal, unwrap_cursor, wrap_cursor
from agent.reading.shared_reads import SharedReads
from agent.reading.thread_pages import thread_page
from agent.reading.turn_pages import TurnPages
from transport.protocol.threads import (
    ThreadListParams,
    ThreadListResult,
    ThreadReadParams,
    ThreadReadResult,
)
from transport.protocol.turns import TurnListParams, TurnListResult


class Reading:
    """`thread/list`, `thread/read` and `turn/list`."""

    def __init__(
        self,
        *,
        supervisor: Supervisor,
        sight: Sight,
        judge: Judge,
        turn_pages: TurnPages,
        head: Callable[[], int],
        now_ms: Callable[[], int],
    ) -> None:
        self._supervisor = supervisor
        self._sight = sight
        self._judge = judge
        self._turn_pages = turn_pages
        self._head = head
        self._now_ms = now_ms
        self._shared = SharedReads(head)

    async def thread_list(
        self, caller: Caller, params: ThreadListParams
    ) -> ThreadListResult:
        """Return one page of the threads that exist for the caller. Raises: Refusal."""
        head = self._head()
        listing = {
            "method": "thread/list",
            "archived": params.archived,
            "cwd": params.cwd,
            "query": params.query,
            "sort": params.sort,
            "parent": params.parent_id,
        }
        cursor = unwrap_cursor(listing, params.cursor)
        rows, following = await thread_page(
            self._sight,
            caller,
            partial(self._threads, params),
            cursor=cursor,
            limit=params.limit,
        )
        return ThreadListResult(
            threads=self._judge.threads(rows),
            next_cursor=wrap_cursor(listing, following),
            head=head,
        )

    async def _threads(
        self, params: ThreadListParams, cursor: str | None, limit: int
    ) -> ThreadPage:
        query = ThreadQuery(
            archived=params.archived,
            cwd=params.cwd,
            query=params.query,
            sort=params.sort,
            parent_id=params.parent_id,
            cursor=cursor,
            limit=limit,
        )
        return await self._shared.get(query, partial(self._listed, query))

    async def _listed(self, query: ThreadQuery) -> ThreadPage:
        try:
            return await self._supervisor.reader.list_threads(query)
        except AdapterError as exc:
            raise page_refusal(exc, thread_id="", at_ms=self._now_ms()) from exc

    async def thread_read(
        self, caller: Caller, params: ThreadReadParams
    ) -> ThreadReadResult:
        """Return a thread and its newest turns, newest first. Raises: Refusal."""
        head = self._head()
        thread = await self._sight.thread(caller, params.thread_id)
        listing = _turn_listing(params.thread_id, "desc")
        turns, following = await self._turn_pages.page(
            params.thread_id, None, max(1, params.turns), "desc", "full"
        )
        newest = turns[0] if turns else None
        return ThreadReadResult(
            thread=self._judge.thread_with(thread, newest),
            turns=turns if params.turns else [],
            next_cursor=wrap_cursor(listing, following) if params.turns else None,
            head=head,
        )

    async def turn_list(self, caller: Caller, params: TurnListParams) -> TurnListResult:
        """Return one page of a thread's turns. Raises: Refusal."""
        head = self._head()
        await self._sight.thread(caller, params.thread_id)
        listing = _turn_listing(params.thread_id, params.order)
        cursor = unwrap_cursor(listing, params.cursor)
        turns, following = await self._turn_pages.page(
            params.thread_id, cursor, params.limit, params.order, params.items
        )
        return TurnListResult(
            turns=turns, next_cursor=wrap_cursor(listing, following), head=head
        )


def _turn_listing(thread_id: str, order: str) -> dict[str, object]:
    return {"method": "turn/list", "thread": thread_id, "order": order}
