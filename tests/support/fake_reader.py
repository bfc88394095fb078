"""The reader of the fake runtime: it reads the fake's disk. Steps as in `fake_runtime`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import trio

from adapter.errors import (
    CodexRefusedError,
    ThreadUnknownError,
)
from adapter.runtime.acts import Guard
from adapter.runtime.events import Emit
from adapter.runtime.reader import PendingWork, ThreadPage, ThreadQuery, TurnPage
from tests.support.fake_store import FakeStore
from tests.support.fake_threads import Stored
from transport.protocol.capabilities import (
    Capability,
    ModelInfo,
)
from transport.protocol.goals import Goal, GoalStatus
from transport.protocol.threads import Thread

if TYPE_CHECKING:
    from tests.support.fake_runtime import FakeRuntime

MODELS = (
    ModelInfo(
        id="m-1", name="M 1", efforts=["low"], default_effort="low", is_default=True
    ),
)


class FakeReader:
    """Reads the fake's disk."""

    def __init__(self, runtime: FakeRuntime, emit: Emit) -> None:
        self.info = runtime.info
        self.emit = emit
        self.died = trio.Event()
        self._runtime = runtime
        self._store = FakeStore(runtime, emit)

    @property
    def contents(self) -> FakeStore:
        return self._store

    @property
    def acts(self) -> FakeStore:
        return self._store

    def die(self) -> None:
        """End the reader's process."""
        self.died.set()

    def _stored(self, method: str, thread_id: str) -> Stored:
        try:
            return self._runtime.threads[thread_id]
        except KeyError:
            message = f"thread not loaded: {thread_id}"
            raise ThreadUnknownError(method, -32600, message) from None

    async def list_threads(self, query: ThreadQuery) -> ThreadPage:
        await self._runtime.reach("list_threads")
        rows = [stored.thread for stored in self._runtime.threads.values()]
        rows = [row for row in rows if row.archived == query.archived]
        start = _offset(query.cursor)
        end = start + query.limit
        cursor = f"c{end}" if end < len(rows) else None
        return ThreadPage(threads=tuple(rows[start:end]), next_cursor=cursor)

    async def read_thread(self, thread_id: str) -> Thread:
        await self._runtime.reach("read_thread")
        return self._stored("thread/read", thread_id).thread

    async def list_turns(
        self, thread_id: str, *, cursor: str | None, limit: int, order: str, items: str
    ) -> TurnPage:
        await self._runtime.reach("list_turns")
        stored = self._stored("thread/turns/list", thread_id)
        turns = [turn for turn in stored.turns if turn.id not in stored.hidden]
        if order == "desc":
            turns.reverse()
        if items == "none":
            turns = [turn.model_copy(update={"items": None}) for turn in turns]
        start = _offset(cursor)
        end = start + limit
        following = f"c{end}" if end < len(turns) else None
        return TurnPage(turns=tuple(turns[start:end]), next_cursor=following)

    async def pending_work(self, thread_id: str) -> PendingWork:
        await self._runtime.reach("pending_work")
        return self._stored("queue/list", thread_id).pending

    async def goal(self, thread_id: str) -> Goal | None:
        await self._runtime.reach("reader.goal")
        return self._stored("goal/get", thread_id).goal

    async def pause_goal(self, thread_id: str, *, guard: Guard | None = None) -> None:
        await self._runtime.reach("pause_goal")
        if guard is not None:
            guard()
        stored = self._stored("goal/set", thread_id)
        stored.pending = replace(stored.pending, goal=None)
        if stored.goal is not None:
            paused = {"status": GoalStatus.PAUSED}
            stored.goal = stored.goal.model_copy(update=paused)

    async def clear_goal(self, thread_id: str, *, guard: Guard) -> None:
        await self._runtime.reach("clear_goal")
        guard()
        stored = self._stored("goal/clear", thread_id)
        stored.pending = replace(stored.pending, goal=None)
        stored.goal = None

    async def list_models(self) -> tuple[ModelInfo, ...]:
        await self._runtime.reach("list_models")
        return MODELS

    async def capabilities(self) -> tuple[Capability, ...]:
        await self._runtime.reach("capabilities")
        return self._runtime.capabilities

    async def decided_alone(self) -> tuple[str, ...]:
        return self._runtime.decided_alone

    async def sandbox_fault(self) -> str | None:
        return self._runtime.sandbox_fault


def _offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor[1:].isdigit():
        raise CodexRefusedError("list", -32600, f"invalid cursor: {cursor}")
    return int(cursor[1:])
