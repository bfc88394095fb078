"""Our writers: one app-server for each thread that we write to. Trio shell.

PROTOCOL.md section 3 (Reader and writers, Lease), around the table in `leases`. Each
lease is one task: it starts the process, keeps it while anything needs it, ends it, and
frees the thread only when the process has been reaped.
"""

import logging
import math
from collections.abc import Awaitable, Callable
from functools import partial

import trio

from adapter.errors import AdapterError, ChildExitedError, HandshakeFailedError
from adapter.runtime.acts import Guard
from adapter.runtime.events import Emit
from adapter.runtime.reader import PendingWork
from adapter.runtime.runtime import Runtime
from adapter.runtime.threads import Loaded
from adapter.runtime.writer import ThreadWriter
from agent.access.scopes import LOCAL
from agent.app_servers.lease import Lease, cancel_at_end, ring_when_busy
from agent.app_servers.lease_events import LeaseEvents, Listener, ModeOf
from agent.app_servers.leases import LeaseBook, Step
from agent.app_servers.settling import Pending, Settling
from agent.changes import Changes
from agent.faults import fault_of
from agent.gate.gatekeeper import GateKeeper
from agent.limits import (
    ELSEWHERE_KEPT,
    IDLE_S,
    OWNER_WRITERS,
    ROOM_S,
    START_PAUSE_S,
    START_TRIES,
    WRITERS,
    WRITERS_A_DEVICE,
)
from transport.background import open_background
from transport.errors import Overloaded
from transport.protocol.gateway import LeaseInfo, LeaseState
from transport.protocol.threads import Thread

log = logging.getLogger(__name__)


class LeasePool:
    """All leases. `handler_nursery` runs them; closing it ends every writer."""

    def __init__(
        self,
        *,
        runtime: Runtime,
        emit: Emit,
        handler_nursery: trio.Nursery,
        keeper: GateKeeper,
        now_ms: Callable[[], int],
        pending: Pending | None = None,
        pause_goal: Callable[[str], Awaitable[None]] | None = None,
        mode_of: ModeOf | None = None,
        idle_s: float = IDLE_S,
        most: int = WRITERS,
    ) -> None:
        self._runtime = runtime
        self._nursery = handler_nursery
        self._keeper = keeper
        self._now_ms = now_ms
        self._pause_goal = pause_goal
        self._settling = Settling(pending or _nothing_pending)
        self._idle_s = idle_s
        self._most = most
        self._book = LeaseBook(most=most + OWNER_WRITERS)
        self._events = LeaseEvents(
            emit=emit, state=self._book.state, now_ms=now_ms, mode_of=mode_of
        )
        self._leases: dict[str, Lease] = {}
        self._unclean: dict[str, None] = {}
        self._freed = Changes()
        self._count = 0

    # what others ask

    def leases(self) -> list[LeaseInfo]:
        """Return our leases as clients see them."""
        return self._book.rows()

    def state(self, thread_id: str) -> LeaseState:
        """Return how the lease of this thread stands."""
        return self._book.state(thread_id)

    def held(self) -> list[Lease]:
        """Return the leases whose thread is loaded."""
        return [
            lease
            for lease in self._leases.values()
            if self._book.state(lease.key) is LeaseState.HELD
        ]

    def lease_of(self, thread_id: str) -> Lease | None:
        """Return the held lease of a thread, or of the thread that it is a child of."""
        for lease in self.held():
            if lease.key == thread_id or thread_id in lease.children:
                return lease
        return None

    def ended_unclean(self, thread_id: str) -> bool:
        """Whether our last writer of the thread died: history may hide its last turn."""
        return thread_id in self._unclean

    def listen(self, listener: Listener) -> None:
        """Call `listener` with every event of every writer, after it was emitted."""
        self._events.listen(listener)

    def dressed(self, lease: Lease, thread: Thread) -> Thread:
        """Return the thread with what our lease knows better than any store."""
        return self._events.dressed(lease, thread)

    def renamed(self, thread_id: str, title: str | None) -> None:
        """Another program has named a thread whose writer of ours does not hear of it."""
        lease = self.lease_of(thread_id)
        if lease is None or lease.key != thread_id or lease.thread is None:
            return
        if title is not None and title != (lease.renamed or lease.thread.title):
            lease.renamed = title
            self._events.announce(lease)

    def forget_elsewhere(self, thread_id: str) -> None:
        """The other holder of this thread is gone."""
        self._book.forget_elsewhere(thread_id)

    def gate_changed(self) -> None:
        """The gate opened or closed: idle writers decide anew."""
        for lease in self._leases.values():
            lease.changes.ring()

    # what admission does, under the thread's lock

    async def open(
        self, thread_id: str | None, *, guard: Guard, asker: str | None = None
    ) -> Lease:
        """Start a fresh writer, initialized, with nothing loaded; `None`: a new thread.

        `asker`: the device whose share of writers it is of; the owner has one more.

        Raises: Overloaded, AdapterError, what `guard` raises; then nothing is left.
        """
        await self._make_room(thread_id, asker)
        self._count += 1
        lease = Lease(thread_id or f"new-{self._count}", thread_id, asker=asker)
        if thread_id is None:
            self._book.open_unnamed(lease.key, at=self._now_ms())
        else:
            self._book.take(lease.key, Step.OPEN, at=self._now_ms())
        self._leases[lease.key] = lease
        await self._nursery.start(partial(self._run, lease, guard))
        return lease

    def hold(self, lease: Lease, loaded: Loaded) -> None:
        """The thread is loaded: the lease is held from now on."""
        thread_id = loaded.thread.id
        if lease.thread_id is None:
            self._book.name(lease.key, thread_id)
            self._leases[thread_id] = self._leases.pop(lease.key)
            lease.key = lease.thread_id = thread_id
        self._book.take(lease.key, Step.HOLD, at=self._now_ms())
        self._unclean.pop(thread_id, None)
        lease.loaded = loaded
        lease.thread = loaded.thread
        lease.changes.ring()
        self._events.announce(lease)

    async def settle(self, lease: Lease) -> None:
        """Return when it is known whether a turn begins by itself in the lease's thread."""
        await self._settling.settle(lease)

    def leave(self, lease: Lease) -> None:
        """Nobody of ours wants it any more: it ends as soon as nothing runs in it."""
        lease.unwanted = True
        lease.changes.ring()

    async def end(self, lease: Lease, *, lost: bool = False) -> None:
        """End a writer, whatever it does; return when its process has been reaped.

        `lost`: somebody else turned out to have the thread.
        """
        lease.lost = lease.lost or lost
        if not lease.ended.is_set():
            self._let_go(lease)
        await lease.ended.wait()

    # rooms

    async def _make_room(self, thread_id: str | None, asker: str | None) -> None:
        with trio.move_on_after(ROOM_S) as patience:
            while self._in_the_way(thread_id, asker):
                await self._freed.wait()
        if patience.cancelled_caught:
            raise self._overloaded()

    def _in_the_way(self, thread_id: str | None, asker: str | None) -> bool:
        if thread_id is not None and thread_id in self._leases:
            return True  # our own last writer of it is not gone yet
        crowd = self._crowd(asker)
        if not crowd:
            return False
        ending = any(
            self._book.state(lease.key) is LeaseState.RELEASING for lease in crowd
        )
        idle = [lease for lease in self.held() if lease in crowd and lease.is_quiet]
        if not ending and not idle:
            raise self._overloaded()
        if not ending and not any(lease.unwanted for lease in idle):
            longest = min(idle, key=lambda lease: lease.quiet_since or 0.0)
            if longest.ended_at is None:
                self._let_go(longest)
            else:
                self.leave(longest)
        return True

    def _crowd(self, asker: str | None) -> list[Lease]:
        """Return the writers of which one must end before this asker gets another."""
        every = [*self._leases.values()]
        mine = [lease for lease in every if lease.asker == asker]
        guests = [lease for lease in every if lease.asker != LOCAL]
        if asker not in (None, LOCAL) and len(mine) >= WRITERS_A_DEVICE:
            return mine
        if asker != LOCAL and len(guests) >= self._most:
            return guests
        return every if self._book.is_full else []

    def _overloaded(self) -> Overloaded:
        threads = [row.thread_id for row in self._book.rows()]
        return Overloaded(
            "The writers that this Agent has for you are at work in other threads. Wait "
            "for one of them to finish, or interrupt it.",
            data={"limit": WRITERS, "threads": threads},
            retry_after_ms=5_000,
        )

    # one lease's life

    async def _run(
        self, lease: Lease, guard: Guard, *, task_status: trio.TaskStatus[None]
    ) -> None:
        tell = partial(self._events.tell, lease)
        try:
            for attempt in range(1, START_TRIES + 1):
                try:
                    async with self._runtime.open_writer(tell, guard=guard) as writer:
                        lease.writer = writer
                        task_status.started()
                        await self._stay(lease, writer)
                    break
                except (ChildExitedError, HandshakeFailedError) as exc:
                    if lease.writer is not None:
                        log.warning("thread %s: %s", lease.thread_id, exc)
                        self._died(lease)
                        break
                    if attempt == START_TRIES:
                        raise
                await trio.sleep(START_PAUSE_S)
        except Exception as exc:
            if lease.writer is None:
                raise  # to who asked for the start
            # A fault of one writer must not end the Agent and everybody's sessions.
            log.error(  # noqa: TRY400 - a traceback's texts may quote the thread
                "writer of thread %s failed: %s", lease.thread_id, fault_of(exc)
            )
            self._died(lease)
        finally:
            self._finish(lease)

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
                    self._let_go(lease)
                else:
                    await self._settling.settle(lease)
                    self._freed.ring()  # it may have work again
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
            log.warning("thread %s: %s", lease.thread_id, fault_of(exc))
        else:
            return
        if self._pause_goal is not None and lease.thread_id is not None:
            await self._pause_goal(lease.thread_id)

    def _is_over(self, lease: Lease) -> bool:
        """Whether nothing needs the lease any more; keeps count of its quiet time."""
        now = trio.current_time()
        loading = self._book.state(lease.key) is LeaseState.LOADING
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

    def _let_go(self, lease: Lease) -> None:
        lease.to_end.set()
        if self._book.state(lease.key) in (LeaseState.LOADING, LeaseState.HELD):
            self._book.take(lease.key, Step.RELEASE, at=self._now_ms())
            self._events.announce(lease)
        lease.changes.ring()

    def _died(self, lease: Lease) -> None:
        if lease.thread_id is not None:
            self._unclean[lease.thread_id] = None
            for old in list(self._unclean)[: -ELSEWHERE_KEPT or None]:
                del self._unclean[old]

    def _finish(self, lease: Lease) -> None:
        """The process has been reaped: only now is the thread nobody's."""
        if self._book.state(lease.key) in (LeaseState.LOADING, LeaseState.HELD):
            self._book.take(lease.key, Step.RELEASE, at=self._now_ms())
        step = Step.LOSE if lease.lost else Step.END
        self._book.take(lease.key, step, at=self._now_ms())
        del self._leases[lease.key]
        lease.ended.set()
        self._freed.ring()
        self._events.announce(lease)


async def _nothing_pending(_thread_id: str) -> PendingWork:  # noqa: ASYNC124 - it stands in for one that asks
    """No store to ask."""
    return PendingWork()
