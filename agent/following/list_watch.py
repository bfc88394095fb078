"""Looks at Codex's list of threads again and again. Trio shell around `recent`.

PROTOCOL.md section 3 (Modes). A thread that left the list is believed to be gone only
when a second look and another read say so.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import trio

from adapter.errors import AdapterError, ThreadUnknownError
from adapter.runtime.reader import Reader, ThreadQuery
from agent.access.sight import Sight
from agent.app_servers.supervisor import Supervisor
from agent.following.recent import Recent
from agent.limits import LIST_S, LISTED, READ_SHARE
from transport.errors import Refusal
from transport.protocol.threads import Thread


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """`changed`: thread → until when (ms) it is known. `looks_new`: see `Moved`.
    `gone`: thread → why."""

    changed: dict[str, int] = field(default_factory=dict[str, int])
    looks_new: frozenset[str] = frozenset()
    gone: dict[str, str] = field(default_factory=dict[str, str])


class ListWatch:
    """The newest threads. `due`: when the next look is, seconds."""

    def __init__(
        self, *, supervisor: Supervisor, sight: Sight, now_ms: Callable[[], int]
    ) -> None:
        self._supervisor = supervisor
        self._sight = sight
        self._now_ms = now_ms
        self._recent = Recent()
        self._looking = trio.Lock()
        self.due = 0.0

    @property
    def rows(self) -> dict[str, Thread]:
        """The threads of the newest page, as it was seen last."""
        return self._recent.rows

    def note(self, thread: Thread) -> None:
        """How the thread looks now was told already."""
        self._recent.note(thread)

    def forget(self, thread_id: str) -> None:
        """The thread is known to be gone."""
        self._recent.forget(thread_id)

    def start_anew(self) -> None:
        """What happened meanwhile is no news."""
        self._recent = Recent()

    async def look(self) -> Found:
        """Look now; nothing is found where the list cannot be read."""
        async with self._looking:
            at, began = self._now_ms(), trio.current_time()
            self.due = began + LIST_S
            try:
                reader = self._supervisor.reader
                page = await reader.list_threads(ThreadQuery(limit=LISTED))
            except (AdapterError, Refusal):
                return Found()
            ended = trio.current_time()
            self.due = max(self.due, ended + (ended - began) * READ_SHARE)
            self._sight.learn(list(page.threads))
            whole = page.next_cursor is None
            moved = self._recent.see(page.threads, whole=whole, at=at)
            gone: dict[str, str] = {}
            for thread_id in moved.gone:
                if (reason := await _reason(reader, thread_id)) is not None:
                    gone[thread_id] = reason
            return Found(changed=moved.changed, looks_new=moved.looks_new, gone=gone)


async def _reason(reader: Reader, thread_id: str) -> str | None:
    """Return why the list lacks a thread: archived, deleted, or neither."""
    try:
        query = ThreadQuery(archived=True, limit=LISTED)
        archived = (await reader.list_threads(query)).threads
        if any(row.id == thread_id for row in archived):
            return "archived"
        await reader.read_thread(thread_id)
    except ThreadUnknownError:
        return "deleted"
    except (AdapterError, Refusal):
        return None
    return None
