"""Our writers: one app-server for each thread that we write to. Trio shell.

PROTOCOL.md section 3 (Reader and writers, Lease), around the table in `leases`. Each
lease is one task: it starts the process, keeps it while anything needs it, ends it, and
frees the thread only when the process has been reaped.
"""

import logging
import math
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from functools import partial

import trio

from adapter.errors import ChildExitedError, HandshakeFailedError
from adapter.runtime import (
    Emit,
    Emitted,
    Guard,
    Loaded,
    Runtime,
    RuntimeEvent,
    ThreadWriter,
)
from agent.changes import Changes
from agent.gatekeeper import GateKeeper
from agent.leases import LeaseBook, Step
from agent.limits import (
    ELSEWHERE_KEPT,
    IDLE_S,
    ROOM_S,
    START_PAUSE_S,
    START_TRIES,
    WRITERS,
)
from transport.background import open_background
from transport.errors import Overloaded
from transport.protocol.events import (
    ThreadChanged,
    ThreadStarted,
    TurnStarted,
)
from transport.protocol.gateway import LeaseInfo, LeaseState
from transport.protocol.threads import Thread, ThreadMode, ThreadStatus

log = logging.getLogger(__name__)
Listener = Callable[[RuntimeEvent], None]


class Lease:
    """One writer from its start to its end. `key`: the thread's id once it has one."""

    def __init__(self, key: str, thread_id: str | None) -> None:
        self.key = key
        self.thread_id = thread_id
        self.writer: ThreadWriter | None = None
        self.loaded: Loaded | None = None
        self.thread: Thread | None = None  # as last told, title and all
        self.has_goal = False
        self.children: set[str] = set()
        self.changes = Changes()
        self.ended = trio.Event()
        self.lost = False
        self.release = False
        self.quiet_since: float | None = None
        self._users = 0

    @contextmanager
    def used(self) -> Generator[ThreadWriter]:
        """Keep the writer while a call works with it."""
        assert self.writer is not None
        self._users += 1
        try:
            yield self.writer
        finally:
            self._users -= 1
            self.changes.ring()

    @property
    def is_quiet(self) -> bool:
        """Whether nothing needs the writer now."""
        return not self._users and self.writer is not None and not self.writer.busy


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
        pause_goal: Callable[[str], Awaitable[None]] | None = None,
        idle_s: float = IDLE_S,
        most: int = WRITERS,
    ) -> None:
        self._runtime = runtime
        self._emit = emit
        self._nursery = handler_nursery
        self._keeper = keeper
        self._now_ms = now_ms
        self._pause_goal = pause_goal
        self._idle_s = idle_s
        self._book = LeaseBook(most=most)
        self._leases: dict[str, Lease] = {}
        self._listeners: list[Listener] = []
        self._unclean: dict[str, None] = {}
        self._released_at: dict[str, float] = {}
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

    def writer_of(self, thread_id: str) -> ThreadWriter | None:
        """Return the writer that has this thread loaded."""
        lease = self.lease_of(thread_id)
        return lease.writer if lease else None

    def ended_unclean(self, thread_id: str) -> bool:
        """Whether our last writer of the thread died: history may hide its last turn."""
        return thread_id in self._unclean

    def released_at(self, thread_id: str) -> float | None:
        """Return when (trio's clock) we last gave this thread back."""
        return self._released_at.get(thread_id)

    def listen(self, listener: Listener) -> None:
        """Call `listener` with every event of every writer, after it was emitted."""
        self._listeners.append(listener)

    def forget_elsewhere(self, thread_id: str) -> None:
        """The other holder of this thread is gone."""
        self._book.forget_elsewhere(thread_id)

    # what admission does, under the thread's lock

    async def open(self, thread_id: str | None, *, guard: Guard) -> Lease:
        """Start a fresh writer, initialized, with nothing loaded; `None`: a new thread.

        Raises: Overloaded, AdapterError, what `guard` raises; then nothing is left.
        """
        await self._make_room(thread_id)
        self._count += 1
        lease = Lease(thread_id or f"new-{self._count}", thread_id)
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
        self._announce(lease)

    async def end(self, lease: Lease, *, lost: bool = False) -> None:
        """End a writer, whatever it does; return when its process has been reaped.

        `lost`: somebody else turned out to have the thread.
        """
        lease.lost = lease.lost or lost
        lease.release = True
        lease.changes.ring()
        await lease.ended.wait()

    # rooms

    async def _make_room(self, thread_id: str | None) -> None:
        with trio.move_on_after(ROOM_S) as patience:
            while self._in_the_way(thread_id):
                await self._freed.wait()
        if patience.cancelled_caught:
            raise self._overloaded()

    def _in_the_way(self, thread_id: str | None) -> bool:
        if thread_id is not None and thread_id in self._leases:
            return True  # our own last writer of it is not gone yet
        if not self._book.is_full:
            return False
        ending = any(
            self._book.state(key) is LeaseState.RELEASING for key in self._leases
        )
        idle = [lease for lease in self.held() if lease.is_quiet]
        if not ending and not idle:
            raise self._overloaded()
        if not ending:
            longest = min(idle, key=lambda lease: lease.quiet_since or 0.0)
            self._let_go(longest)
        return True

    def _overloaded(self) -> Overloaded:
        threads = [row.thread_id for row in self._book.rows()]
        return Overloaded(
            "All writers of this Agent are at work in other threads. Wait for one of "
            "them to finish, or interrupt it.",
            data={"limit": WRITERS, "threads": threads},
            retry_after_ms=5_000,
        )

    # one lease's life

    async def _run(
        self, lease: Lease, guard: Guard, *, task_status: trio.TaskStatus[None]
    ) -> None:
        tell = partial(self._tell, lease)
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
                        self._died(lease, exc)
                        break
                    if attempt == START_TRIES:
                        raise
                await trio.sleep(START_PAUSE_S)
        except Exception as exc:
            if lease.writer is None:
                raise  # to who asked for the start
            # A fault of one writer must not end the Agent and everybody's sessions.
            log.exception("writer of a thread failed", exc_info=exc)
            self._died(lease, exc)
        finally:
            self._finish(lease)

    async def _stay(self, lease: Lease, writer: ThreadWriter) -> None:
        """Return when the writer is to be ended; the lease is `releasing` by then."""
        try:
            async with open_background(partial(_tell_busy, lease, writer)):
                await self._wait_over(lease)
        except trio.Cancelled:
            writer.hurry()  # the Agent closes
            raise
        if not self._keeper.is_open:
            writer.hurry()
        self._let_go(lease)

    async def _wait_over(self, lease: Lease) -> None:
        while not lease.release and not self._is_over(lease):
            if lease.has_goal and not self._keeper.is_open:
                await self._pause(lease)
            left = math.inf
            if lease.quiet_since is not None:
                left = lease.quiet_since + self._idle_s - trio.current_time()
            with trio.move_on_after(max(0.0, left)):
                await lease.changes.wait()

    async def _pause(self, lease: Lease) -> None:
        """A goal of ours must not start turns beside another writer."""
        lease.has_goal = False
        if self._pause_goal is not None and lease.thread_id is not None:
            await self._pause_goal(lease.thread_id)

    def _is_over(self, lease: Lease) -> bool:
        """Whether nothing needs the lease any more; keeps count of its quiet time."""
        now = trio.current_time()
        if not lease.is_quiet or self._book.state(lease.key) is LeaseState.LOADING:
            lease.quiet_since = None
            return False
        if lease.quiet_since is None:
            lease.quiet_since = now
        return not self._keeper.is_open or now - lease.quiet_since >= self._idle_s

    def _let_go(self, lease: Lease) -> None:
        lease.release = True
        if self._book.state(lease.key) in (LeaseState.LOADING, LeaseState.HELD):
            self._book.take(lease.key, Step.RELEASE, at=self._now_ms())
            self._announce(lease)
        lease.changes.ring()

    def _died(self, lease: Lease, exc: Exception) -> None:
        log.warning("writer of thread %s: %s", lease.thread_id, exc)
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
        if lease.thread_id is not None and lease.writer is not None:
            self._released_at[lease.thread_id] = trio.current_time()
            for old in list(self._released_at)[: -ELSEWHERE_KEPT or None]:
                del self._released_at[old]
        lease.ended.set()
        self._freed.ring()
        self._announce(lease)

    def gate_changed(self) -> None:
        """The gate opened or closed: idle writers decide anew."""
        for lease in self._leases.values():
            lease.changes.ring()

    # what writers tell

    def _tell(self, lease: Lease, event: RuntimeEvent) -> None:
        if event.root_thread_id is not None and event.thread_id is not None:
            lease.children.add(event.thread_id)
        if isinstance(event, Emitted):
            event = self._dressed(lease, event)
        self._emit(event)
        for listener in self._listeners:
            listener(event)

    def _dressed(self, lease: Lease, event: Emitted) -> Emitted:
        """Put our side of a thread (mode, lease) into what the runtime tells of it."""
        data = event.data
        if isinstance(data, TurnStarted) and data.turn.thread_id == lease.thread_id:
            self._went_on(lease, data.turn.id)
        if not isinstance(data, ThreadStarted | ThreadChanged):
            return event
        if data.thread.id == lease.thread_id:
            lease.thread = data.thread
        thread = self.dressed(lease, data.thread)
        return Emitted(
            at=event.at,
            thread_id=event.thread_id,
            root_thread_id=event.root_thread_id,
            data=data.model_copy(update={"thread": thread}),
        )

    def _went_on(self, lease: Lease, turn_id: str) -> None:
        if lease.thread is not None:
            last = {"last_turn_id": turn_id}
            lease.thread = lease.thread.model_copy(update=last)

    def dressed(self, lease: Lease, thread: Thread) -> Thread:
        """Return the thread with what our lease knows better than any store."""
        state = self._book.state(lease.key)
        ours = state in (LeaseState.LOADING, LeaseState.HELD, LeaseState.RELEASING)
        mode = ThreadMode.LIVE if ours else ThreadMode.STILL
        update: dict[str, object] = {"lease": state, "mode": mode}
        if thread.id == lease.thread_id and lease.writer is not None:
            status = lease.writer.status if ours else ThreadStatus.IDLE
            if not (
                status is ThreadStatus.IDLE and thread.status is ThreadStatus.FAILED
            ):
                update["status"] = status
        return thread.model_copy(update=update)

    def _announce(self, lease: Lease) -> None:
        if lease.thread is None:
            return
        thread = self.dressed(lease, lease.thread)
        data = ThreadChanged(thread=thread)
        self._emit(Emitted(at=self._now_ms(), thread_id=thread.id, data=data))


async def _tell_busy(
    lease: Lease, writer: ThreadWriter, *, task_status: trio.TaskStatus[None]
) -> None:
    """Ring whenever the writer begins or ends to be busy."""
    task_status.started()
    while True:
        await writer.wait_busy()
        lease.changes.ring()
        await writer.wait_idle()
        lease.changes.ring()
