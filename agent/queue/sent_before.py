"""Whether a message that waits is in its thread already. Trio shell over the reader.

PROTOCOL.md section 4. A state folder that was put back from a backup knows nothing of what
was sent since. But each delivery is the first message of a turn, and has the queue's id as
its key, which Codex keeps with the thread.
"""

from adapter.calls.refusals import not_offered
from adapter.errors import AdapterError, CodexRefusedError
from adapter.runtime.reader import TurnPage
from agent.errors import StoreUnavailableError
from agent.limits import QUEUE_TURNS, QUEUE_TURNS_A_PAGE
from agent.mutations.refusals import storage_failed
from agent.mutations.way import Way
from agent.queue.queue_book import Waiting
from transport.protocol.items import UserMessage
from transport.protocol.turns import Turn


class SentBefore:
    """Looks through the newest turns of threads."""

    def __init__(self, way: Way) -> None:
        self._way = way

    async def has(self, row: Waiting) -> bool:
        """Return whether it is there. Raises: Refusal: nobody can tell now."""
        if await self._is_on_record(row):
            return False  # what became of it, its own way tells
        cursor: str | None = None
        for _ in range(QUEUE_TURNS // QUEUE_TURNS_A_PAGE):
            page = await self._page(row.thread_id, cursor)
            if any(_has(turn, row.queue_id) for turn in page.turns):
                return True
            if (cursor := page.next_cursor) is None:
                break
        return False

    async def _is_on_record(self, row: Waiting) -> bool:
        try:
            return await self._way.ledger.is_used(row.queue_id)
        except StoreUnavailableError as exc:
            raise storage_failed("ledger") from exc

    async def _page(self, thread_id: str, cursor: str | None) -> TurnPage:
        try:
            return await self._way.supervisor.reader.list_turns(
                thread_id,
                cursor=cursor,
                limit=QUEUE_TURNS_A_PAGE,
                order="desc",
                items="summary",
            )
        except AdapterError as exc:
            if isinstance(exc, CodexRefusedError) and not_offered(exc):
                return TurnPage(turns=(), next_cursor=None)  # it has no turn yet
            raise self._way.failed_before(exc, thread_id) from exc


def _has(turn: Turn, key: str) -> bool:
    return any(
        isinstance(item, UserMessage) and item.client_key == key
        for item in turn.items or ()
    )
