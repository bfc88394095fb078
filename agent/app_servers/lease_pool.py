"""Our writers: one app-server for each thread that we write to. Trio shell.

PROTOCOL.md section 3 (Reader and writers, Lease). A writer is started where there is room
(`capacity`) and is a task of its own from then on (`lifecycle`). Which there are, and who
has which thread, is in `lease_registry`.
"""

from functools import partial

import trio

from adapter.runtime.acts import Guard
from agent.app_servers.capacity import Capacity
from agent.app_servers.lease import Lease
from agent.app_servers.lease_registry import LeaseRegistry
from agent.app_servers.lifecycle import Lifecycle
from agent.app_servers.settling import Settling


class LeasePool:
    """What admission does with writers, under the lock of their thread.

    `handler_nursery` runs them; closing it ends every one.
    """

    def __init__(
        self,
        leases: LeaseRegistry,
        lifecycle: Lifecycle,
        settling: Settling,
        *,
        handler_nursery: trio.Nursery,
    ) -> None:
        self._leases = leases
        self._lifecycle = lifecycle
        self._settling = settling
        self._capacity = Capacity(leases)
        self._nursery = handler_nursery

    async def open(
        self, thread_id: str | None, *, guard: Guard, asker: str | None = None
    ) -> Lease:
        """Start a fresh writer, initialized, with nothing loaded; `None`: a new thread.

        `asker`: the device whose share of writers it is of; the owner has one more.

        Raises: Overloaded, AdapterError, what `guard` raises; then nothing is left.
        """
        await self._capacity.make_room(thread_id, asker)
        # No checkpoint in between: there is room now.
        lease = self._leases.open(thread_id, asker=asker)
        await self._nursery.start(partial(self._lifecycle.run, lease, guard))
        return lease

    async def settle(self, lease: Lease) -> None:
        """Return when it is known whether a turn begins by itself in the lease's thread."""
        await self._settling.settle(lease)

    async def end(self, lease: Lease, *, lost: bool = False) -> None:
        """End a writer, whatever it does; return when its process has been reaped.

        `lost`: somebody else turned out to have the thread.
        """
        lease.lost = lease.lost or lost
        if not lease.ended.is_set():
            self._leases.let_go(lease)
        await lease.ended.wait()

    def gate_changed(self) -> None:
        """The gate opened or closed: idle writers decide anew."""
        for lease in self._leases.living():
            lease.changes.ring()
