"""Threads and turns for a caller. Trio shell over the reader. PROTOCOL.md 3 to 5.

Reading never waits for the gate. `head` is taken before the store is asked, so an event
with a later seq is always news. What a writer of ours runs is told by that writer: the
store says `interrupted` of it.
"""

from collections.abc import Callable, Collection
from functools import partial

from adapter.calls.refusals import not_offered
from adapter.errors import AdapterError, CodexRefusedError, ThreadUnknownError
from adapter.runtime.reader import ThreadPage, ThreadQuery, TurnPage
from adapter.shapes.settings import settings_shown
from agent.access.scopes import Caller
from agent.access.sight import Sight, is_fenced
from agent.app_servers.lease import Lease
from agent.app_servers.lease_pool import LeasePool
from agent.app_servers.supervisor import Supervisor
from agent.gate.gatekeeper import GateKeeper
from agent.gate.writers import Watch
from agent.offload import Runner, in_thread
from agent.reading.fenced_list import Rows, fenced_page
from agent.reading.pages import (
    cut,
    fitting,
    page_refusal,
    shown,
    unwrap_cursor,
    wrap_cursor,
)
from agent.reading.shared_reads import SharedReads
from agent.reading.standing import (
    Others,
    is_open_ended,
    judged_thread,
    judged_turn,
    newest_first,
)
from transport.errors import Refusal
from transport.protocol.gateway import LeaseState, Writer
from transport.protocol.threads import (
    Thread,
    ThreadListParams,
    ThreadListResult,
    ThreadReadParams,
    ThreadReadResult,
    ThreadStatus,
)
from transport.protocol.turns import Turn, TurnListParams, TurnListResult


class Reading:
    """`thread/list`, `thread/read` and `turn/list`."""

    def __init__(
        self,
        *,
        supervisor: Supervisor,
        keeper: GateKeeper,
        pool: LeasePool,
        sight: Sight,
        watch: Watch,
        head: Callable[[], int],
        now_ms: Callable[[], int],
        run: Runner = in_thread,
    ) -> None:
        self._supervisor = supervisor
        self._keeper = keeper
        self._pool = pool
        self._sight = sight
        self._watch = watch
        self._head = head
        self._now_ms = now_ms
        self._run = run
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
        if is_fenced(caller):
            rows, following = await fenced_page(
                partial(self._threads, params),
                partial(self.visible, caller),
                cursor=cursor,
                limit=params.limit,
            )
        else:
            rows, following = await self._all_threads(params, cursor)
        return ThreadListResult(
            threads=self.judged(rows),
            next_cursor=wrap_cursor(listing, following),
            head=head,
        )

    async def _all_threads(
        self, params: ThreadListParams, cursor: str | None
    ) -> tuple[list[Thread], str | None]:
        """Return the store's page, shortened to what fits, and its cursor."""
        page = await self._threads(params, cursor, params.limit)
        self._sight.learn(list(page.threads))
        while (fits := fitting(page.threads)) < len(page.threads):
            # Fewer rows of the store's, so that its own cursor goes on behind them.
            page = await self._threads(params, cursor, fits)
        return list(page.threads), page.next_cursor

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
            raise self._refusal(exc, "") from exc

    async def visible(self, caller: Caller, page: Rows) -> list[Thread]:
        """Return the rows of one of the store's pages that exist for the caller."""
        self._sight.learn(list(page.threads))
        roots = self._sight.roots
        return await self._run(
            lambda: [row for row in page.threads if roots.shows(caller, row.cwd)]
        )

    def judged(self, rows: Collection[Thread]) -> list[Thread]:
        """Return threads of the store as they stand: whose they are, what they do."""
        holders = self._watch.holders([row.id for row in rows])
        return [self._stands(row, holders.get(row.id)) for row in rows]

    def judged_one(self, row: Thread) -> Thread:
        """Return one thread of the store as it stands."""
        return self.judged([row])[0]

    def _stands(self, thread: Thread, holder: Writer | None) -> Thread:
        lease = self._pool.lease_of(thread.id)
        if lease is not None:
            return self._live(lease, thread)
        state = self._pool.state(thread.id)
        if state in (LeaseState.LOADING, LeaseState.RELEASING):
            return thread.model_copy(
                update={"lease": state, "status": ThreadStatus.IDLE}
            )
        others = self._others(thread.id, holder)
        return judged_thread(thread, others, turns_known=False)

    async def thread_read(
        self, caller: Caller, params: ThreadReadParams
    ) -> ThreadReadResult:
        """Return a thread and its newest turns, newest first. Raises: Refusal."""
        head = self._head()
        thread = await self._sight.thread(caller, params.thread_id)
        listing = _turn_listing(params.thread_id, "desc")
        page, turns = await self._page_of_turns(
            params.thread_id, None, max(1, params.turns), "desc", "full"
        )
        holder = self._watch.holders([thread.id]).get(thread.id)
        lease = self._pool.lease_of(thread.id)
        newest = turns[0] if turns else None
        if lease is not None:
            thread = self._live(lease, thread, newest)
        else:
            others = self._others(thread.id, holder)
            thread = judged_thread(thread, others, newest=newest, turns_known=True)
        return ThreadReadResult(
            thread=thread,
            turns=turns if params.turns else [],
            next_cursor=wrap_cursor(listing, page.next_cursor)
            if params.turns
            else None,
            head=head,
        )

    async def turn_list(self, caller: Caller, params: TurnListParams) -> TurnListResult:
        """Return one page of a thread's turns. Raises: Refusal."""
        head = self._head()
        await self._sight.thread(caller, params.thread_id)
        listing = _turn_listing(params.thread_id, params.order)
        cursor = unwrap_cursor(listing, params.cursor)
        page, turns = await self._page_of_turns(
            params.thread_id, cursor, params.limit, params.order, params.items
        )
        return TurnListResult(
            turns=turns,
            next_cursor=wrap_cursor(listing, page.next_cursor),
            head=head,
        )

    async def _page_of_turns(
        self, thread_id: str, cursor: str | None, limit: int, order: str, items: str
    ) -> tuple[TurnPage, list[Turn]]:
        """Return the store's page and its turns as they stand, within a page's bytes."""
        before = self._watch.holders([thread_id]).get(thread_id)
        page = await self._turns(thread_id, cursor, limit, order, items)
        turns = self._told(thread_id, page, cursor, order, items)
        while (fits := fitting(turns)) < len(turns) and len(page.turns) > 1:
            count = max(1, min(fits, len(page.turns) - 1))
            page = await self._turns(thread_id, cursor, count, order, items)
            turns = self._told(thread_id, page, cursor, order, items)
        newest = newest_first(turns, order=order, first_page=cursor is None)
        if newest is None and any(is_open_ended(turn) for turn in turns):
            first = await self._turns(thread_id, None, 1, "desc", "none")
            newest = first.turns[0].id if first.turns else None
        return page, self._concluded(thread_id, turns, newest, before)

    async def _turns(
        self, thread_id: str, cursor: str | None, limit: int, order: str, items: str
    ) -> TurnPage:
        """Read a page; once more where a turn of ours has ended meanwhile.

        Only its writer tells a running turn from one that was cut short.
        """
        running = self._running(thread_id)
        page = await self._stored_turns(thread_id, cursor, limit, order, items)
        if running is None or self._running(thread_id) == running:
            return page
        if any(turn.id == running and is_open_ended(turn) for turn in page.turns):
            return await self._stored_turns(thread_id, cursor, limit, order, items)
        return page

    def _running(self, thread_id: str) -> str | None:
        """Return the turn that a writer of ours runs in the thread."""
        lease = self._pool.lease_of(thread_id)
        if lease is None or lease.writer is None:
            return None
        return lease.writer.running_turn_of(thread_id)

    async def _stored_turns(
        self, thread_id: str, cursor: str | None, limit: int, order: str, items: str
    ) -> TurnPage:
        try:
            return await self._supervisor.reader.list_turns(
                thread_id, cursor=cursor, limit=limit, order=order, items=items
            )
        except AdapterError as exc:
            if _has_no_turns(exc) or (
                isinstance(exc, ThreadUnknownError)
                and self._pool.lease_of(thread_id) is not None
            ):
                return TurnPage(turns=(), next_cursor=None)
            raise self._refusal(exc, thread_id) from exc

    def _told(
        self, thread_id: str, page: TurnPage, cursor: str | None, order: str, items: str
    ) -> list[Turn]:
        """Let the writer that runs a turn tell it, also before the store has it."""
        lease = self._pool.lease_of(thread_id)
        writer = lease.writer if lease is not None else None
        if writer is None:
            return [cut(turn) for turn in page.turns]
        turns = [
            cut(shown(live, items) if (live := writer.live_turn(turn.id)) else turn)
            for turn in page.turns
        ]
        running = writer.running_turn_of(thread_id)
        live = writer.live_turn(running) if running is not None else None
        if live is None or any(turn.id == live.id for turn in turns):
            return turns
        if order == "desc" and cursor is None:
            return [cut(shown(live, items)), *turns]
        if order == "asc" and page.next_cursor is None:
            return [*turns, cut(shown(live, items))]
        return turns

    def _concluded(
        self,
        thread_id: str,
        turns: list[Turn],
        newest: str | None,
        before: Writer | None,
    ) -> list[Turn]:
        """Judge turns that history cannot tell from running ones. `before`: who had the
        thread when they were read; it may have let go since, its turn well ended."""
        if self._pool.lease_of(thread_id) is not None:
            return turns  # nobody else can run one
        holder = self._watch.holders([thread_id]).get(thread_id)
        others = self._others(thread_id, holder or before)
        return [judged_turn(turn, others, newest=turn.id == newest) for turn in turns]

    def _others(self, thread_id: str, holder: Writer | None) -> Others:
        if holder is None:
            self._pool.forget_elsewhere(thread_id)
        look = self._keeper.last_look
        lockless = look.lockless(ours_lock=True) or look.desktop
        return Others(holder=holder, lockless=lockless is not None)

    def _live(self, lease: Lease, thread: Thread, newest: Turn | None = None) -> Thread:
        thread = self._pool.dressed(lease, thread)
        update: dict[str, object] = {}
        if lease.key == thread.id and lease.writer is not None:
            update["last_turn_id"] = lease.writer.last_turn_id
            if lease.loaded is not None:
                update["settings"] = settings_shown(lease.settings)
        else:
            update["root_id"] = lease.key
            if newest is not None:
                update["last_turn_id"] = newest.id
        return thread.model_copy(update=update)

    def _refusal(self, exc: AdapterError, thread_id: str) -> Refusal:
        return page_refusal(exc, thread_id=thread_id, at_ms=self._now_ms())


def _turn_listing(thread_id: str, order: str) -> dict[str, object]:
    return {"method": "turn/list", "thread": thread_id, "order": order}


def _has_no_turns(exc: AdapterError) -> bool:
    return isinstance(exc, CodexRefusedError) and not_offered(exc)
