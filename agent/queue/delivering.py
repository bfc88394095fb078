"""Delivers what waits in the Agent's queue, when its thread is free. Trio shell.

PROTOCOL.md section 4. A delivery is a `turn/start` through the same door as every other,
as the device that queued it, with its rights of that moment. The queue's id is its
request key, so the ledger knows after a crash whether it was handed to Codex: what was is
not sent again. What was on the disk when the Agent began may come from a backup of the
state folder, which knows of no delivery since: its thread is looked at first.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, NoReturn

import trio
from pydantic import ValidationError

from adapter.runtime.events import Emitted, RuntimeEvent
from agent.access.scopes import LOCAL, Caller
from agent.app_servers.lease_registry import LeaseRegistry
from agent.faults import fault_of
from agent.gate.gatekeeper import GateKeeper
from agent.gate.writers import Watch
from agent.limits import (
    DELIVERIES,
    DELIVERIES_A_DEVICE,
    DROPPED_WORDS,
    QUEUE_CODEX_MOST_S,
    QUEUE_CODEX_S,
    QUEUE_LOCK_S,
    QUEUE_RETRY_S,
    QUEUE_SLOW_S,
)
from agent.queue.backlog import UNKNOWN, Backlog
from agent.queue.dropped_book import OUT
from agent.queue.queue_book import Said, Waiting
from agent.sessions.acts import Acts
from transport.errors import (
    CodexUnavailable,
    Conflict,
    Internal,
    NotResumable,
    OutcomeUnknown,
    Refusal,
    RuntimeFailure,
    ThreadOwnedElsewhere,
    UnavailableFeature,
)
from transport.protocol import methods
from transport.protocol.events import ThreadChanged, TurnCompleted
from transport.protocol.queue import WaitsFor
from transport.protocol.turns import TurnStartParams, TurnStartResult

_LOG: Final = logging.getLogger(__name__)
Deliver = Callable[[Caller, TurnStartParams], Awaitable[TurnStartResult]]
_CONFLICTS: Final = {
    "running": WaitsFor.TURN,
    "queue": WaitsFor.CODEX_QUEUE,
    "goal": WaitsFor.GOAL,
    "lastTurn": WaitsFor.AGENT,  # somebody was quicker; the next try sees it
}
_SENDING: Final = methods.TURN_START.name  # Codex's method for it has the same name
_SLOW: Final = (WaitsFor.CODEX_QUEUE, WaitsFor.GOAL, WaitsFor.WRITER)


class Delivering:
    """Watches for threads that are free. `caller_of`: a device's rights now, if any.

    `sent_before`: whether a message is in its thread already. Raises: Refusal.
    """

    def __init__(
        self,
        backlog: Backlog,
        *,
        deliver: Deliver,
        sent_before: Callable[[Waiting], Awaitable[bool]],
        keeper: GateKeeper,
        leases: LeaseRegistry,
        watch: Watch,
    ) -> None:
        self._backlog = backlog
        self._deliver = deliver
        self._sent_before = sent_before
        self._keeper = keeper
        self._leases = leases
        self._watch = watch
        self._news = trio.Event()
        self._again: dict[str, float] = {}  # queue id → not before
        self._pauses: dict[str, float] = {}  # queue id → Codex was left alone for
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
        if rows := self._backlog.book.of_thread(event.thread_id):
            if isinstance(event.data, ThreadChanged) and (
                rows[0].queue_id in self._pauses
            ):
                return  # each of our own tries makes it change
            lease = self._leases.lease_of(event.thread_id)
            if (
                lease is None
                or lease.writer is None
                or not lease.writer.running_turn_id
            ):
                self._again.pop(rows[0].queue_id, None)
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
        if trio.current_time() < self._again.get(row.queue_id, 0.0):
            return False
        if self._is_crowded(row.device_id):
            return False  # the end of one rings
        if lease is None and self._watch.holders([row.thread_id]):
            self._wait(row, WaitsFor.WRITER, QUEUE_LOCK_S)
            return False
        return True

    def _is_crowded(self, device_id: str) -> bool:
        """Whether enough are being sent: all at once would take the reader for itself."""
        going = self._backlog.delivering
        heads = self._backlog.book.heads()
        whose = [one.device_id for one in heads if one.queue_id in going]
        own, owners = whose.count(device_id), whose.count(LOCAL)
        if device_id == LOCAL:
            return own >= DELIVERIES
        return own >= DELIVERIES_A_DEVICE or len(whose) - owners >= DELIVERIES

    def _pause_s(self) -> float:
        """Return for how long nothing can become possible without a ring."""
        now = trio.current_time()
        heads = [row.queue_id for row in self._backlog.book.heads()]
        self._again = {one: at for one, at in self._again.items() if one in heads}
        self._pauses = {one: s for one, s in self._pauses.items() if one in heads}
        # What is due by now and was not begun waits for something that rings.
        times = [at - now for at in self._again.values() if at > now]
        expiry = self._backlog.book.next_expiry(but=self._backlog.delivering)
        if expiry is not None:
            times.append((expiry - self._backlog.age_ms()) / 1_000)
        return max(0.0, min(times, default=3_600.0))

    def _wait(
        self, row: Waiting, why: WaitsFor, seconds: float, said: Said | None = None
    ) -> None:
        self._again[row.queue_id] = trio.current_time() + seconds
        self._backlog.waits(row, why, said)

    def _wait_longer(
        self, row: Waiting, why: WaitsFor, said: Said | None = None
    ) -> None:
        last = self._pauses.get(row.queue_id, QUEUE_CODEX_S / 2)
        self._pauses[row.queue_id] = pause = min(2 * last, QUEUE_CODEX_MOST_S)
        self._wait(row, why, pause, said)

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
            await self._backlog.drop(row, OUT, why)
            return
        try:
            params = TurnStartParams.model_validate_json(row.params)
        except ValidationError:
            why = "A queued message of another version of this Agent was dropped."
            await self._backlog.drop(row, "queueRefused", why)
            return
        try:
            if row.found and await self._was_sent(row):
                return
            await self._deliver(caller, params)
        except OutcomeUnknown:
            why = (
                "It is not known whether a queued message reached Codex; it is not sent "
                "again. Look at the thread: if it is not there, send it anew."
            )
            await self._backlog.drop(row, UNKNOWN, why)
        except Refusal as refusal:
            await self._refused(row, caller, refusal)
        except Exception as exc:  # noqa: BLE001 - else it ends the next Agent as well
            _LOG.error("a delivery failed: %s", fault_of(exc))
            self._wait_longer(row, WaitsFor.AGENT)
        else:
            await self._backlog.leave(row)

    async def _was_sent(self, row: Waiting) -> bool:
        if not await self._sent_before(row):
            self._backlog.book.looked_for(row.queue_id)
            return False
        why = (
            "A queued message is in its thread already: it was sent before the state "
            "folder was put back. It is not sent again."
        )
        await self._backlog.drop(row, "queueSent", why)
        return True

    async def _refused(self, row: Waiting, caller: Caller, refusal: Refusal) -> None:
        if not caller.alive():  # its rights are others now: those decide
            self._wait(row, WaitsFor.AGENT, QUEUE_RETRY_S)
            return
        why = _waits_for(refusal)
        if why is None:
            said = "A queued message was refused and dropped: "
            await self._backlog.drop(
                row,
                "queueRefused",
                said + refusal.message,
                whole=said + (refusal.whole or refusal).message,
                error=refusal.code,
            )
        elif why is WaitsFor.CODEX:
            self._wait_longer(row, why, _said(refusal))
        else:
            self._wait(row, why, QUEUE_SLOW_S if why in _SLOW else QUEUE_RETRY_S)


def _said(refusal: Refusal) -> Said:
    whole = (refusal.whole or refusal).message
    return Said(brief=refusal.message[:DROPPED_WORDS], whole=whole[:DROPPED_WORDS])


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
        case NotResumable() if "archived" not in refusal.data:
            return WaitsFor.CODEX  # such as a config.toml that is being edited
        case RuntimeFailure() | UnavailableFeature() if not _is_about_it(refusal):
            return WaitsFor.CODEX
        case _ if refusal.retryable:
            return WaitsFor.AGENT
        case _:
            return None


def _is_about_it(refusal: Refusal) -> bool:
    """Whether Codex has taken the thread, and refused this message."""
    return _SENDING in (refusal.data.get("method"), refusal.data.get("feature"))
