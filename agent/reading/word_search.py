"""Words in threads, for a caller: which threads hold them, and where. Trio shell.

PROTOCOL.md section 4. A thread that does not exist for the caller is never found.
"""

from collections.abc import Callable
from functools import partial

from adapter.calls.refusals import not_offered
from adapter.errors import AdapterError, CodexRefusedError
from adapter.runtime.store import FoundThreads
from agent.access.scopes import Caller
from agent.access.sight import Sight
from agent.app_servers.supervisor import Supervisor
from agent.reading.judge import Judge
from agent.reading.pages import page_refusal, unwrap_cursor, wrap_cursor
from agent.reading.shared_reads import SharedReads
from agent.reading.thread_pages import thread_page
from transport.errors import Refusal, UnavailableFeature
from transport.protocol.contents import (
    ThreadFindParams,
    ThreadFindResult,
    ThreadHit,
    ThreadSearchParams,
    ThreadSearchResult,
)


class WordSearch:
    """`thread/search` and `thread/find`."""

    def __init__(
        self,
        *,
        supervisor: Supervisor,
        sight: Sight,
        judge: Judge,
        head: Callable[[], int],
        now_ms: Callable[[], int],
    ) -> None:
        self._supervisor = supervisor
        self._sight = sight
        self._judge = judge
        self._head = head
        self._now_ms = now_ms
        self._shared = SharedReads(head)

    async def search(
        self, caller: Caller, params: ThreadSearchParams
    ) -> ThreadSearchResult:
        """Return threads that exist for the caller and hold the words. Raises: Refusal."""
        head = self._head()
        listing = {
            "method": "thread/search",
            "query": params.query,
            "archived": params.archived,
        }
        cursor = unwrap_cursor(listing, params.cursor)
        snippets: dict[str, str] = {}
        rows, following = await thread_page(
            self._sight,
            caller,
            partial(self._found, params, snippets),
            cursor=cursor,
            limit=params.limit,
        )
        hits = [
            ThreadHit(thread=thread, snippet=snippets[thread.id])
            for thread in self._judge.threads(rows)
        ]
        return ThreadSearchResult(
            hits=hits, next_cursor=wrap_cursor(listing, following), head=head
        )

    async def _found(
        self,
        params: ThreadSearchParams,
        snippets: dict[str, str],
        cursor: str | None,
        limit: int,
    ) -> FoundThreads:
        """Ask the store for a page; its snippets go to `snippets`."""

        async def ask() -> FoundThreads:
            try:
                return await self._supervisor.reader.contents.search(
                    params.query, archived=params.archived, cursor=cursor, limit=limit
                )
            except AdapterError as exc:
                raise self._refusal(exc, "") from exc

        asked = (params.query, params.archived, cursor, limit)
        page = await self._shared.get(asked, ask)
        snippets.update(page.snippets)
        return page

    async def find(self, caller: Caller, params: ThreadFindParams) -> ThreadFindResult:
        """Return where in a thread the words occur. Raises: Refusal."""
        head = self._head()
        await self._sight.thread(caller, params.thread_id)
        listing = {
            "method": "thread/find",
            "thread": params.thread_id,
            "query": params.query,
        }
        cursor = unwrap_cursor(listing, params.cursor)
        try:
            page = await self._supervisor.reader.contents.find(
                params.thread_id, params.query, cursor=cursor, limit=params.limit
            )
        except AdapterError as exc:
            if isinstance(exc, CodexRefusedError) and not_offered(exc):
                raise _cannot_find() from exc
            raise self._refusal(exc, params.thread_id) from exc
        return ThreadFindResult(
            hits=list(page.hits),
            next_cursor=wrap_cursor(listing, page.next_cursor),
            head=head,
        )

    def _refusal(self, exc: AdapterError, thread_id: str) -> Refusal:
        return page_refusal(exc, thread_id=thread_id, at_ms=self._now_ms())


def _cannot_find() -> UnavailableFeature:
    return UnavailableFeature(
        "Codex cannot look for words inside this thread: an older Codex has written it, "
        "or an older one runs here.",
        data={"feature": "thread/find"},
    )
