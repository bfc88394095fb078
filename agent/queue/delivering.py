"""Delivers what waits in the Agent's queue, when its thread is free. Trio shell.

PROTOCOL.md section 4. A delivery is a `turn/start` through the same door as every other,
as the device that queued it, with its rights of that moment. The queue's id is its
request key, so the ledger knows after a crash whether it was handed to Codex: what was is
not sent again.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, NoReturn

import trio
from pydantic import ValidationError

from adapter.runtime.events import Emitted, RuntimeEvent
from agent.access.scopes import Caller
from agent.app_servers.lease_registry import LeaseRegistry
from agent.gate.gatekeeper import GateKeeper
from agent.gate.writers import Watch
from agent.limits import QUEUE_LOCK_S, QUEUE_RETRY_S, QUEUE_SLOW_S
from agent.queue.backlog import Backlog
from agent.queue.queue_book import Waiting
from agent.sessions.acts import Acts
from transport.errors import (
    CodexUnavailable,
    Conflict,
    Internal,
    OutcomeUnknown,
    Refusal,
    ThreadOwnedElsewhere,
)
from transport.protocol.events import ThreadChanged, TurnCompleted
from transport.protocol.queue import WaitsFor
from transport.protocol.turns import TurnStartParams, TurnStartResult

Deliver = Callable[[Caller, TurnStartParams], Awaitable[TurnStartResult]]
_CONFLICTS: Final = {
    "running": WaitsFor.TURN,
    "queue": WaitsFor.CODEX_QUEUE,
    "goal": WaitsFor.GOAL,
    "lastTurn": WaitsFor.AGENT,  # somebody was quicker; the next try sees it
}
_SLOW: Final = (WaitsFor.CODEX_QUEUE, WaitsFor.GOAL, WaitsFor.WRITER)


class Delivering:
    """Watches for threads that are free. `caller_of`: a device's rights now, if any."""

    def __init__(
        self,
        backlog: Backlog,
        *,
        deliver: Deliver,
        keeper: GateKeeper,
        leases: LeaseRegistry,
        watch: Watch,
    ) -> None:
        self._backlog = backlog
        self._deliver = deliver
        self._keeper = keeper
        self._leases = leases
        self._watch = watch
        self._news = trio.Event()
        self._again: dict[str, float] = {}  # thread → not before
        backlog.changed = self.ring
        leases.listen(self._happened)

    def ring(self) -> None:
        """Something may have become possible: look again."""
        self._news.set()

    def _happened(self, event: RuntimeEvent) -> None:
        if not isinstance(event, Emitted) or event.thread_id is None:
            return
        if not isinstance(event.data, TurnCompleted | ThreadChanged):
            return
        if self._backlog.book.of_thread(event.thread_id):
            lease = self._leases.lease_of(event.thread_id)
            if (
                lease is None
                or lease.writer is None
                or not lease.writer.running_turn_id
            ):
                self._again.pop(event.thread_id, None)
                self.ring()

    async def serve(
        self,
        acts: Acts,
        caller_of: Callable[[str], Caller | None],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> NoReturn:
        """Deliver, and drop what is too old, until cancelled."""
        task_status.started()
        while True:
            self._news = trio.Event()
            await self._backlog.drop_old()
            for row in self._backlog.book.heads():
                if self._may_go(row):
                    self._backlog.delivering.add(row.queue_id)
                    run = partial(self._run, row, caller_of)
                    await acts.start(row.device_id, run)
            with trio.move_on_after(self._pause_s()):
                await self._news.wait()

    def _may_go(self, row: Waiting) -> bool:
        """Whether to try now; notes what it waits for. No checkpoint."""
        if not row.stored or row.queue_id in self._backlog.delivering:
            return False
        if self._backlog.book.get(row.queue_id) is None:
            return False  # taken back while another's delivery was begun
        if not self._keeper.is_open:
            self._backlog.waits(row, WaitsFor.GATE)
            return False
        lease = self._leases.lease_of(row.thread_id)
        if lease is not None and lease.writer and lease.writer.running_turn_id:
            self._backlog.waits(row, WaitsFor.TURN)
            return False
        if trio.current_time() < self._again.get(row.thread_id, 0.0):
            return False
        if lease is None and self._watch.holders([row.thread_id]):
            self._wait(row, WaitsFor.WRITER, QUEUE_LOCK_S)
            return False
        return True

    def _pause_s(self) -> float:
        """Return for how long nothing can become possible without a ring."""
        now = trio.current_time()
        heads = [row.thread_id for row in self._backlog.book.heads()]
        self._again = {one: at for one, at in self._again.items() if one in heads}
        # What is due by now and was not begun waits for something that rings.
        times = [at - now for at in self._again.values() if at > now]
        expiry = self._backlog.book.next_expiry()
        if expiry is not None:
            times.append((expiry - self._backlog.age_ms()) / 1_000)
        return max(0.0, min(times, default=3_600.0))

    def _wait(self, row: Waiting, why: WaitsFor, seconds: float) -> None:
        self._again[row.thread_id] = trio.current_time() + seconds
        self._backlog.waits(row, why)

    async def _run(
        self, row: Waiting, caller_of: Callable[[str], Caller | None]
    ) -> None:
        try:
            await self._try(row, caller_of(row.device_id))
        finally:
            self._backlog.delivering.discard(row.queue_id)
            self.ring()

    async def _try(self, row: Waiting, caller: Caller | None) -> None:
        if caller is None or not caller.alive():
            why = "A queued message of a device that is not known any more was dropped."
            await self._backlog.drop(row, "queueDropped", why)
            return
        try:
            params = TurnStartParams.model_validate_json(row.params)
            await self._deliver(caller, params)
        except ValidationError:
            why = "A queued message of another version of this Agent was dropped."
            await self._backlog.drop(row, "queueRefused", why)
        except OutcomeUnknown:
            why = (
                "It is not known whether a queued message reached Codex; it is not sent "
                "again. Look at the thread: if it is not there, send it anew."
            )
            await self._backlog.drop(row, "queueUnknown", why)
        except Refusal as refusal:
            await self._refused(row, refusal)
        else:
            self._again.pop(row.thread_id, None)
            await self._backlog.leave(row)

    async def _refused(self, row: Waiting, refusal: Refusal) -> None:
        why = _waits_for(refusal)
        if why is None:
            said = "A queued message was refused and dropped: "
            brief, whole = refusal.message, (refusal.whole or refusal).message
            await self._backlog.drop(
                row, "queueRefused", said + brief, whole=said + whole
            )
            return
        self._wait(row, why, QUEUE_SLOW_S if why in _SLOW else QUEUE_RETRY_S)


def _waits_for(refusal: Refusal) -> WaitsFor | None:
    """Return what would have to change; `None`: it will never be taken."""
    match refusal:
        case CodexUnavailable():
            return WaitsFor.GATE
        case ThreadOwnedElsewhere():
            return WaitsFor.WRITER
        case Conflict():
            return _CONFLICTS.get(str(refusal.data.get("what")))
        case Internal():
            return WaitsFor.AGENT  # a full disk; its owner makes room
        case _ if refusal.retryable:
            return WaitsFor.AGENT
        case _:
            return None
