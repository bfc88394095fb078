"""Who gets room for a writer, and which idle one ends for it. Trio shell.

PROTOCOL.md section 3 (Lease). So many writers for all devices, so many of them for one,
and one more for the workstation. Nothing that is at work ends for somebody else.
"""

import trio

from agent.access.scopes import LOCAL
from agent.app_servers.lease import Lease
from agent.app_servers.lease_registry import LeaseRegistry
from agent.limits import ROOM_S, WRITERS, WRITERS_A_DEVICE
from transport.errors import Overloaded
from transport.protocol.gateway import LeaseState


class Capacity:
    """Room for writers, in numbers. `asker`: the device whose share one is of."""

    def __init__(self, leases: LeaseRegistry) -> None:
        self._leases = leases

    async def make_room(self, thread_id: str | None, asker: str | None) -> None:
        """Return as soon as a writer may be started; after a checkpoint it may not.

        Raises: Overloaded.
        """
        with trio.move_on_after(ROOM_S) as patience:
            while self._in_the_way(thread_id, asker):
                await self._leases.freed.wait()
        if patience.cancelled_caught:
            raise self._overloaded()

    def _in_the_way(self, thread_id: str | None, asker: str | None) -> bool:
        if thread_id is not None and self._leases.lives(thread_id):
            return True  # our own last writer of it is not gone yet
        crowd = self._crowd(asker)
        if not crowd:
            return False
        ending = any(
            self._leases.state(lease.key) is LeaseState.RELEASING for lease in crowd
        )
        idle = [one for one in self._leases.held() if one in crowd and one.is_quiet]
        if not ending and not idle:
            raise self._overloaded()
        if not ending and not any(lease.unwanted for lease in idle):
            longest = min(idle, key=lambda lease: lease.quiet_since or 0.0)
            if longest.ended_at is None:
                self._leases.let_go(longest)
            else:
                longest.leave()
        return True

    def _crowd(self, asker: str | None) -> list[Lease]:
        """Return the writers of which one must end before this asker gets another."""
        every = self._leases.living()
        mine = [lease for lease in every if lease.asker == asker]
        guests = [lease for lease in every if lease.asker != LOCAL]
        if asker not in (None, LOCAL) and len(mine) >= WRITERS_A_DEVICE:
            return mine
        if asker != LOCAL and len(guests) >= WRITERS:
            return guests
        return every if self._leases.is_full else []

    def _overloaded(self) -> Overloaded:
        threads = [row.thread_id for row in self._leases.rows()]
        return Overloaded(
            "The writers that this Agent has for you are at work in other threads. Wait "
            "for one of them to finish, or interrupt it.",
            data={"limit": WRITERS, "threads": threads},
            retry_after_ms=5_000,
        )
