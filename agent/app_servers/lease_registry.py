"""All our leases: which thread each has, and how far it is. Trio shell around `leases`.

PROTOCOL.md section 3 (Lease). Every step is taken in the book and told to everybody in
one go: there is no checkpoint in this module.
"""

from collections.abc import Callable

from adapter.runtime.events import Emit, RuntimeEvent
from adapter.runtime.threads import Loaded
from agent.app_servers.lease import Lease
from agent.app_servers.lease_events import LeaseEvents, Listener, ModeOf
from agent.app_servers.leases import LeaseBook, Step
from agent.changes import Changes
from agent.limits import ELSEWHERE_KEPT, OWNER_WRITERS, WRITERS
from transport.protocol.gateway import LeaseInfo, LeaseState
from transport.protocol.threads import Thread


class LeaseRegistry:
    """`freed` rings when a writer may have become free for others, or has ended."""

    def __init__(
        self, *, emit: Emit, now_ms: Callable[[], int], mode_of: ModeOf
    ) -> None:
        self._now_ms = now_ms
        self._book = LeaseBook(most=WRITERS + OWNER_WRITERS)
        self._events = LeaseEvents(
            emit=emit, state=self._book.state, now_ms=now_ms, mode_of=mode_of
        )
        self._leases: dict[str, Lease] = {}
        self._unclean: dict[str, None] = {}
        self._count = 0
        self.freed = Changes()

    # what others ask

    def rows(self) -> list[LeaseInfo]:
        """Return our leases as clients see them."""
        return self._book.rows()

    @property
    def is_full(self) -> bool:
        """Whether no further writer may be started, whoever asks."""
        return self._book.is_full

    def state(self, key: str) -> LeaseState:
        """Return how the lease of this thread stands."""
        return self._book.state(key)

    def living(self) -> list[Lease]:
        """Return all leases whose process has not been reaped yet."""
        return [*self._leases.values()]

    def lives(self, thread_id: str) -> bool:
        """Whether one of these is the thread's own."""
        return thread_id in self._leases

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

    def is_ours(self, thread_id: str) -> bool:
        """Whether a writer of ours tells of the thread, or is about to."""
        if self.lease_of(thread_id) is not None:
            return True
        return self.state(thread_id) in (LeaseState.LOADING, LeaseState.RELEASING)

    def ended_unclean(self, thread_id: str) -> bool:
        """Whether our last writer of the thread died: history may hide its last turn."""
        return thread_id in self._unclean

    def forget_elsewhere(self, thread_id: str) -> None:
        """The other holder of this thread is gone."""
        self._book.forget_elsewhere(thread_id)

    # what is told of them

    def listen(self, listener: Listener) -> None:
        """Call `listener` with every event of every writer, after it was emitted."""
        self._events.listen(listener)

    def tell(self, lease: Lease, event: RuntimeEvent) -> None:
        """Pass on what the lease's writer tells."""
        self._events.tell(lease, event)

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

    # one lease's steps

    def open(self, thread_id: str | None, *, asker: str | None) -> Lease:
        """Begin a lease, `loading` from now on; `None`: of a thread that is to be made.

        Raises: LeaseError where there is no room, or the thread has one.
        """
        self._count += 1
        lease = Lease(thread_id or f"new-{self._count}", thread_id, asker=asker)
        if thread_id is None:
            self._book.open_unnamed(lease.key, at=self._now_ms())
        else:
            self._book.take(lease.key, Step.OPEN, at=self._now_ms())
        self._leases[lease.key] = lease
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

    def let_go(self, lease: Lease) -> None:
        """Its writer is to end, whatever it does; nobody begins anything with it."""
        lease.to_end.set()
        if self._release(lease):
            self._events.announce(lease)
        lease.changes.ring()

    def died(self, lease: Lease) -> None:
        """Its process ended by itself."""
        if lease.thread_id is not None:
            self._unclean[lease.thread_id] = None
            for old in list(self._unclean)[: -ELSEWHERE_KEPT or None]:
                del self._unclean[old]

    def finish(self, lease: Lease) -> None:
        """The process has been reaped: only now is the thread nobody's."""
        self._release(lease)
        step = Step.LOSE if lease.lost else Step.END
        self._book.take(lease.key, step, at=self._now_ms())
        del self._leases[lease.key]
        lease.ended.set()
        self.freed.ring()
        self._events.announce(lease)

    def _release(self, lease: Lease) -> bool:
        """Take the step to `releasing`, unless it was taken; return whether it is new."""
        if self._book.state(lease.key) not in (LeaseState.LOADING, LeaseState.HELD):
            return False
        self._book.take(lease.key, Step.RELEASE, at=self._now_ms())
        return True
