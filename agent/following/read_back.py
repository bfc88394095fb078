"""Reads one thread back and tells what is new in it. Trio shell around `follow`.

PROTOCOL.md section 3 (Modes). A thread is read and told under its lock, so that a writer
of ours never begins in between.
"""

from collections.abc import Callable

import trio

from adapter.errors import AdapterError
from adapter.runtime.events import Emit, RuntimeEvent
from agent.app_servers.lease_registry import LeaseRegistry
from agent.following.interest import Paces
from agent.following.snapshots import Snapshots
from agent.following.told_threads import News, ToldThreads
from agent.mutations.thread_locks import ThreadLocks
from transport.errors import Refusal


class ReadBack:
    """One thread at a time. `locks`: the same that mutations take."""

    def __init__(
        self,
        *,
        snapshots: Snapshots,
        told: ToldThreads,
        news: News,
        paces: Paces,
        leases: LeaseRegistry,
        locks: ThreadLocks,
        emit: Emit,
        now_ms: Callable[[], int],
    ) -> None:
        self._snapshots = snapshots
        self._told = told
        self._news = news
        self._paces = paces
        self._leases = leases
        self._locks = locks
        self._emit = emit
        self._now_ms = now_ms

    async def sync(self, thread_id: str) -> None:
        """Tell what history shows beyond what was told; nothing of threads of ours."""
        since = self._news.take(thread_id)
        if self._leases.is_ours(thread_id) or self._locks.is_taken(thread_id):
            return  # a mutation is on its way; it hands over
        async with self._locks.holding(thread_id):
            if not self._leases.is_ours(thread_id):
                await self.read(thread_id, since=since)

    async def read(
        self, thread_id: str, *, since: int | None, ours: bool = False
    ) -> None:
        """The same, under the thread's lock. `since`: until when (ms) it is known.

        `ours`: a writer of ours has loaded it, so nobody else can be at work. Never fails.
        """
        began = trio.current_time()
        told = self._told.get(thread_id)
        fresh = told or self._told.fresh(thread_id)
        if told is None and since is None and self._told.saw_begin(thread_id):
            since = 0
        events: list[RuntimeEvent] = []
        try:
            now = await self._snapshots.take(thread_id, fresh, since)
        except (AdapterError, Refusal):
            pass  # believed by nobody: it is read again
        else:
            at = self._now_ms()
            if told is None:
                self._told.keep(fresh)
            events = fresh.advance(
                now,
                at=at,
                since=since,
                certain=ours,
                looks_new=self._news.looks_new(thread_id),
            )
            self._news.look_told(thread_id)
            for event in events:
                self._emit(event)
        if (pace := self._paces.get(thread_id)) is not None:
            ended = trio.current_time()
            pace.was_read(
                ended,
                took=ended - began,
                changed=bool(events),
                running=fresh.turns.is_running,
            )
