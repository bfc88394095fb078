"""Pages of a thread's turns, as they stand. Trio shell over the reader.

PROTOCOL.md sections 4 and 5. What a writer of ours runs is told by that writer: the store
says `interrupted` of it, or does not have it yet.
"""

from collections.abc import Callable

from adapter.calls.refusals import not_offered
from adapter.errors import AdapterError, CodexRefusedError, ThreadUnknownError
from adapter.runtime.reader import TurnPage
from adapter.runtime.writer import ThreadWriter
from agent.app_servers.lease_registry import LeaseRegistry
from agent.app_servers.supervisor import Supervisor
from agent.reading.judge import Judge
from agent.reading.pages import cut, fitting, page_refusal, shown
from agent.reading.standing import is_open_ended, newest_first
from transport.protocol.turns import Turn


class TurnPages:
    """Each within a page's bytes."""

    def __init__(
        self,
        *,
        supervisor: Supervisor,
        leases: LeaseRegistry,
        judge: Judge,
        now_ms: Callable[[], int],
    ) -> None:
        self._supervisor = supervisor
        self._leases = leases
        self._judge = judge
        self._now_ms = now_ms

    async def page(
        self, thread_id: str, cursor: str | None, limit: int, order: str, items: str
    ) -> tuple[list[Turn], str | None]:
        """Return turns as they stand, and the store's cursor behind them.

        Raises: Refusal.
        """
        before = self._judge.holder(thread_id)
        page = await self._read(thread_id, cursor, limit, order, items)
        turns = self._told(thread_id, page, cursor, order, items)
        while (fits := fitting(turns)) < len(turns) and len(page.turns) > 1:
            count = max(1, min(fits, len(page.turns) - 1))
            page = await self._read(thread_id, cursor, count, order, items)
            turns = self._told(thread_id, page, cursor, order, items)
        newest = newest_first(turns, order=order, first_page=cursor is None)
        if newest is None and any(is_open_ended(turn) for turn in turns):
            first = await self._read(thread_id, None, 1, "desc", "none")
            newest = first.turns[0].id if first.turns else None
        turns = self._judge.turns(thread_id, turns, newest=newest, before=before)
        return turns, page.next_cursor

    async def _read(
        self, thread_id: str, cursor: str | None, limit: int, order: str, items: str
    ) -> TurnPage:
        """Read a page; once more where a turn of ours ended while it was read.

        History called it interrupted until then.
        """
        before = self._writer(thread_id)
        page = await self._stored(thread_id, cursor, limit, order, items)
        writer = self._writer(thread_id) or before
        open_ended = [turn.id for turn in page.turns if is_open_ended(turn)]
        if writer is None or not any(map(writer.has_ended, open_ended)):
            return page
        return await self._stored(thread_id, cursor, limit, order, items)

    def _writer(self, thread_id: str) -> ThreadWriter | None:
        """Return the writer of ours that has the thread, or the one that it is below."""
        lease = self._leases.lease_of(thread_id)
        return None if lease is None else lease.writer

    async def _stored(
        self, thread_id: str, cursor: str | None, limit: int, order: str, items: str
    ) -> TurnPage:
        try:
            return await self._supervisor.reader.list_turns(
                thread_id, cursor=cursor, limit=limit, order=order, items=items
            )
        except AdapterError as exc:
            if _has_no_turns(exc) or (
                isinstance(exc, ThreadUnknownError)
                and self._leases.lease_of(thread_id) is not None
            ):
                return TurnPage(turns=(), next_cursor=None)
            at_ms = self._now_ms()
            raise page_refusal(exc, thread_id=thread_id, at_ms=at_ms) from exc

    def _told(
        self, thread_id: str, page: TurnPage, cursor: str | None, order: str, items: str
    ) -> list[Turn]:
        """Let the writer that runs a turn tell it, also before the store has it."""
        writer = self._writer(thread_id)
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


def _has_no_turns(exc: AdapterError) -> bool:
    return isinstance(exc, CodexRefusedError) and not_offered(exc)
