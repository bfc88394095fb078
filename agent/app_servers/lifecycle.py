"""One lease's life: its process starts, stays while anything needs it, ends. Trio shell.

PROTOCOL.md section 3 (Lease). One task for each writer; its thread is free only when the
process has been reaped.
"""

import logging
import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import trio

from adapter.errors import AdapterError, ChildExitedError, HandshakeFailedError
from adapter.runtime.acts import Guard
from adapter.runtime.runtime import Runtime
from adapter.runtime.writer import ThreadWriter
from agent.app_servers.lease import Lease, cancel_at_end, ring_when_busy
from agent.app_servers.lease_registry import LeaseRegistry
from agent.app_servers.settling import Settling
from agent.faults import fault_of
from agent.gate.gatekeeper import GateKeeper
from agent.limits import START_PAUSE_S, START_TRIES
from transport.background import open_background
from transport.protocol.gateway import LeaseState

_LOG: Final = logging.getLogger(__name__)

PauseGoal = Callable[[str], Awaitable[None]]
"""Pauses a thread's goal in the store, where its writer does not answer. Never fails."""


class Lifecycle:
    """What the task of every lease goes through, from the start to the reaped process."""

    def __init__(
        self,
        leases: LeaseRegistry,
        *,
        runtime: Runtime,
        keeper: GateKeeper,
        settling: Settling,
        pause_goal: PauseGoal,
        idle_s: float,
    ) -> None:
        self._leases = leases
        self._runtime = runtime
        self._keeper = keeper
        self._settling = settling
        self._pause_goal = pause_goal
        self._idle_s = idle_s

    async def run(
        self, lease: Lease, guard: Guard, *, task_status: trio.TaskStatus[None]
    ) -> None:
        """Run a writer to its end; started when it is initialized, with nothing loaded.

        Raises: AdapterError, what `guard` raises, where it never started; nothing else.
        """
        try:
            await self._started(lease, guard, task_status)
        except Exception as exc:
            if lease.writer is None:
                raise  # to who asked for the start
            # A fault of one writer must not end the Agent and everybody's sessions.
            _LOG.error("writer of thread %s failed: %s", lease.thread_id, fault_of(exc))
            self._leases.died(lease)
        finally:
            self._leases.finish(lease)

    async def _started(
        self, lease: Lease, guard: Guard, task_status: trio.TaskStatus[None]
    ) -> None:
        """Start a process, more than once if it must be, and stay with it."""
        tell = partial(self._leases.tell, lease)
        for attempt in range(1, START_TRIES + 1):
            try:
                async with self._runtime.open_writer(tell, guard=guard) as writer:
                    lease.writer = writer
                    task_status.started()
                    await self._stay(lease, writer)
                break
            except (ChildExitedError, HandshakeFailedError) as exc:
                if lease.writer is not None:
                    _LOG.warning("thread %s: %s", lease.thread_id, exc)
                    self._leases.died(lease)
                    break
                if attempt == START_TRIES:
                    raise
            await trio.sleep(START_PAUSE_S)

    async def _stay(self, lease: Lease, writer: ThreadWriter) -> None:
        """Return when the writer is to be ended; the lease is `releasing` by then."""
        try:
            async with open_background(partial(ring_when_busy, lease, writer)):
                await self._wait_over(lease)
        except trio.Cancelled:
            writer.hurry()  # the Agent closes
            raise
        if not self._keeper.is_open:
            writer.hurry()

    async def _wait_over(self, lease: Lease) -> None:
        """Return when nothing needs the writer, or it is to end whatever it does.

        What is asked meanwhile, of a store or a writer that may hang, stops nobody from
        ending it.
        """
        with trio.CancelScope() as scope:
            async with open_background(partial(cancel_at_end, lease, scope)):
                await self._wait_unneeded(lease)

    async def _wait_unneeded(self, lease: Lease) -> None:
        # Who ends it rings, too: this task may be awake before the one that cancels it.
        while not lease.to_end.is_set():
            if not self._keeper.is_open:
                await self._stop_goal(lease)
            if self._is_over(lease):
                if lease.ended_at is None or not lease.runs_nothing:
                    # Quiet with a turn in it: the process is dead. From this look on,
                    # before any checkpoint, nobody begins anything with it.
                    self._leases.let_go(lease)
                else:
                    await self._settling.settle(lease)
                    self._leases.freed.ring()  # it may have work again
            else:
                with trio.move_on_at(self._idle_until(lease)):
                    await lease.changes.wait()

    async def _stop_goal(self, lease: Lease) -> None:
        await self._settling.look_for_goal(lease)
        if lease.has_goal and not self._keeper.is_open:
            await self._pause(lease)

    async def _pause(self, lease: Lease) -> None:
        """A goal of ours must not start turns beside another writer.

        Its writer is told, so that it knows that it has nothing left to do; where it
        does not answer, the store is.
        """
        lease.has_goal = False
        try:
            await lease.started_writer.pause_goal()
        except AdapterError as exc:
            _LOG.warning("thread %s: %s", lease.thread_id, fault_of(exc))
        else:
            return
        if lease.thread_id is not None:
            await self._pause_goal(lease.thread_id)

    def _is_over(self, lease: Lease) -> bool:
        """Whether nothing needs the lease any more; keeps count of its quiet time."""
        now = trio.current_time()
        loading = self._leases.state(lease.key) is LeaseState.LOADING
        if not lease.is_quiet or (loading and not lease.unwanted):
            lease.quiet_since = None
            return False
        if lease.quiet_since is None:
            lease.quiet_since = now
        if lease.unwanted or not self._keeper.is_open:
            return True
        return now >= self._idle_until(lease)

    def _idle_until(self, lease: Lease) -> float:
        """Return when it has been quiet for long enough, if it stays so.

        Who waits and who compares use this one sum: sums and differences are rounded.
        """
        if lease.quiet_since is None:
            return math.inf
        return lease.quiet_since + self._idle_s
