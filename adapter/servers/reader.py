"""The app-server that only reads: it loads no thread and takes no lock. Trio shell.

PROTOCOL.md section 3. Reads come from Codex's store and are fresh, locked or not. A
read that fails in a way known to pass is tried again before it is believed.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import trio

from adapter.calls import owner_commands, reading_commands
from adapter.calls.capabilities import capabilities, offered_methods
from adapter.calls.local_rules import decided_alone
from adapter.calls.owner_commands import models_from, sandbox_fault
from adapter.calls.portions import Firsts
from adapter.errors import (
    AdapterError,
    CodexRefusedError,
)
from adapter.limits import (
    FIRST_TURNS,
    MODEL_PAGES,
    QUEUE_SHOWN,
    QUEUE_TEXT,
    SANDBOX_WORDS,
    SCAN_EVERY_S,
    SCAN_PATIENCE_S,
    SCANNED,
)
from adapter.runtime.acts import Guard
from adapter.runtime.program import RuntimeInfo
from adapter.runtime.reader import PendingWork, ThreadPage, ThreadQuery, TurnPage
from adapter.runtime.store import StoreActs, StoreContents
from adapter.servers.app_server import AppServer
from adapter.servers.goals import StoredGoals
from adapter.servers.reads import Read, read_fitting, read_patiently, rows_of
from adapter.servers.stored_acts import StoredActs
from adapter.servers.stored_contents import StoredContents
from adapter.servers.thread_kinds import ThreadKinds
from adapter.servers.turn_rows import read_turn_rows
from adapter.shapes.reviews import as_told, has_inner
from adapter.shapes.shapes import Shape, mapping, sequence, text
from adapter.shapes.threads import thread_from
from adapter.shapes.turns import turn_from
from transport.protocol.capabilities import Capability, ModelInfo
from transport.protocol.goals import Goal
from transport.protocol.threads import Thread


class CodexReader:
    """`Reader` over one app-server."""

    def __init__(self, server: AppServer) -> None:
        self.info: RuntimeInfo = server.info
        self._server = server
        self._scan_wanted = trio.Event()
        self._scanned = trio.Event()
        self._firsts = Firsts(FIRST_TURNS)
        self._read: Read = partial(read_patiently, server)
        self._kinds = ThreadKinds(self._read)
        self._goals = StoredGoals(server, self._read)
        self._contents = StoredContents(server, self._read, self._kinds.is_child)
        self._acts = StoredActs(server)

    @property
    def contents(self) -> StoreContents:
        """What threads hold."""
        return self._contents

    @property
    def acts(self) -> StoreActs:
        """The acts that need no loaded thread."""
        return self._acts

    async def list_threads(self, query: ThreadQuery) -> ThreadPage:
        """Return one page, newest first, from the state database (≈ 4 ms).

        Fewer rows where they are large: each has the whole first message. The first list
        waits a moment for the first scan, which may take a minute on a large home.
        """
        self._scan_wanted.set()
        if query.cursor is None:
            with trio.move_on_after(SCAN_PATIENCE_S):
                await self._scanned.wait()
        return await self._list(query, state_db=True)

    async def _list(self, query: ThreadQuery, *, state_db: bool) -> ThreadPage:
        answer = await read_fitting(
            self._read,
            query.limit,
            lambda count: reading_commands.list_threads(
                replace(query, limit=count), state_db=state_db
            ),
        )
        rows, next_cursor = rows_of(answer, "thread/list")
        threads = tuple(thread_from(row, archived=query.archived) for row in rows)
        for row in rows:
            self._kinds.note(row)
        return ThreadPage(threads=threads, next_cursor=next_cursor)

    async def serve_scans(
        self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Have Codex look at the newest rollouts themselves, and so repair what its
        database lacks: at the first list, then every five minutes while somebody lists.
        """
        task_status.started()
        while True:
            await self._scan_wanted.wait()
            with suppress(AdapterError):
                await self._list(ThreadQuery(limit=SCANNED), state_db=False)
            self._scanned.set()
            await trio.sleep(SCAN_EVERY_S)
            self._scan_wanted = trio.Event()

    async def read_thread(self, thread_id: str) -> Thread:
        """Return one thread without its turns."""
        return thread_from(await self._kinds.read_thread(thread_id))

    async def list_turns(
        self, thread_id: str, *, cursor: str | None, limit: int, order: str, items: str
    ) -> TurnPage:
        """Return one page of turns."""
        page = await read_turn_rows(
            self._read,
            thread_id,
            cursor=cursor,
            limit=limit,
            order=order,
            items=items,
            firsts=self._firsts,
        )
        known = await self._kinds.of(thread_id)
        rows: Sequence[Mapping[str, Any]] = page.rows
        with Shape("thread/turns/list"):
            if has_inner(rows) and not known.is_child:
                rows = as_told(
                    rows, follows=cursor is not None, goes_on=page.cursor is not None
                )
        turns = [turn_from(row, thread_id, legacy=known.legacy) for row in rows]
        short = {"more_items": True}
        return TurnPage(
            turns=tuple(
                one.model_copy(update=short) if one.id in page.short else one
                for one in turns
            ),
            next_cursor=page.cursor,
        )

    async def pending_work(self, thread_id: str) -> PendingWork:
        """Return what a resume would start; both are asked of an unloaded thread."""
        return PendingWork(
            queue=await self._queue(thread_id), goal=await self._goals.active(thread_id)
        )

    async def goal(self, thread_id: str) -> Goal | None:
        """Return the goal; asked of an unloaded thread."""
        return await self._goals.get(thread_id)

    async def pause_goal(self, thread_id: str, *, guard: Guard | None = None) -> None:
        """Pause the active goal, also under a writer of ours: that one obeys."""
        await self._goals.pause(thread_id, guard=guard)

    async def clear_goal(self, thread_id: str, *, guard: Guard) -> None:
        """Take the goal away."""
        await self._goals.clear(thread_id, guard=guard)

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """Return the models, of a bounded number of pages."""
        models: list[ModelInfo] = []
        cursor: str | None = None
        for _ in range(MODEL_PAGES):
            page, cursor = models_from(
                await self._read(owner_commands.list_models(cursor))
            )
            models += page
            if cursor is None:
                break
        return tuple(models)

    async def capabilities(self) -> tuple[Capability, ...]:
        """Return what this codex offers: it names its methods when asked for none."""
        said = ""
        try:
            await self._server.call(owner_commands.list_methods())
        except CodexRefusedError as exc:
            said = exc.message
        return capabilities(offered_methods(said), self.info.version)

    async def decided_alone(self) -> tuple[str, ...]:
        """Return what decides approvals without a person."""
        return decided_alone(await self._read(owner_commands.read_config()))

    async def sandbox_fault(self) -> str | None:
        """Return why a sandbox does not start here."""
        try:
            answer = await self._server.call(owner_commands.check_sandbox())
        except CodexRefusedError as exc:
            return exc.message[:SANDBOX_WORDS]
        return sandbox_fault(answer)

    async def _queue(self, thread_id: str) -> tuple[str, ...]:
        if not self._server.traits.lists_queue:
            return ()
        answer = await self._read(reading_commands.list_queue(thread_id))
        rows, _ = rows_of(answer, "thread/queue/list")
        with Shape("thread/queue/list"):
            shown = [_queued_text(row) for row in rows[:QUEUE_SHOWN]]
        return tuple(shown)


def _queued_text(row: Mapping[str, Any]) -> str:
    parts = [mapping(part) for part in sequence(row.get("input"))]
    said = " ".join(text(part["text"]) for part in parts if "text" in part)
    return (said or "(no text)")[:QUEUE_TEXT]
