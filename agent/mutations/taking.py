"""A lease on a stored thread, fit to act on: held writer or fresh one. Trio shell.

PROTOCOL.md section 3, "A mutation's way", from the look to the loaded thread. A held
writer that does not know all that is on the disk is too old: it ends, and a fresh one
takes its place.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from adapter.errors import AdapterError
from adapter.runtime.acts import Guard
from adapter.runtime.threads import Loaded
from adapter.runtime.writer import ThreadWriter
from agent.access.scopes import Caller, check_alive, check_settings
from agent.app_servers.lease import Lease
from agent.mutations.newest_turn import check_expected, check_idle, check_pending
from agent.mutations.refusals import is_lock, owned_elsewhere, running
from agent.mutations.way import Way
from agent.records.flight import Flight
from transport.errors import ThreadOwnedElsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which thread, and what its client said about it."""

    thread_id: str
    expected_last_turn_id: str | None = None
    allow_pending: bool = False


class Taking:
    """Takes leases, under the lock of their thread."""

    def __init__(self, way: Way) -> None:
        self._way = way

    @asynccontextmanager
    async def taken(
        self, caller: Caller, wanted: Wanted, flight: Flight
    ) -> AsyncGenerator[Lease]:
        """Hold an idle thread's lease in use for the block. Raises: Refusal."""
        check_alive(caller)
        self._way.keeper.check(wanted.thread_id)
        lease = self._way.leases.lease_of(wanted.thread_id)
        if lease is not None:
            check_root(lease, wanted.thread_id)
            with lease.used():
                if await self._fits(caller, wanted, lease, flight):
                    yield lease
                    return
            await self._way.pool.end(lease)
        lease = await self._fresh(caller, wanted, flight)
        with lease.used():
            await self._way.pool.settle(lease)
            check_idle(lease)
            yield lease

    def guard(self, caller: Caller, lease: Lease) -> Guard:
        """Return the last look for what a running turn would take in, or be ended by:
        Codex says nothing, and one may have begun by itself while the disk was written.
        """
        guard = self._way.guard(caller, lease.key)

        def last_look() -> None:
            guard()
            check_idle(lease)

        return last_look

    async def _fits(
        self, caller: Caller, wanted: Wanted, lease: Lease, flight: Flight
    ) -> bool:
        """Whether a held writer is what the reader is, and knows all that is on the disk;
        else it is too old.

        Raises: Conflict (running, lastTurn), Forbidden.
        """
        assert lease.writer is not None
        check_idle(lease)
        await self._way.pool.settle(lease)
        check_idle(lease)
        newest = await self._way.newest.read(wanted.thread_id)
        told = newest.id if newest else None
        known = lease.writer.last_turn_id
        check_idle(lease)
        check_expected(wanted.expected_last_turn_id, newest, told, known)
        if not self._way.supervisor.is_current(lease.writer.info):
            _check_ends_nothing(lease.writer)
            return False
        if told != known:
            _check_ends_nothing(lease.writer)
            if told is not None and not lease.writer.knows_turn(told):
                self._notice_foreign(wanted.thread_id)
            return False
        check_settings(caller, lease.settings, self._way.inside(caller))
        flight.row = replace(flight.row, last_turn=told)
        return True

    async def _fresh(self, caller: Caller, wanted: Wanted, flight: Flight) -> Lease:
        """Return a lease that was loaded just now. Any failure leaves no writer."""
        thread_id, expected = wanted.thread_id, wanted.expected_last_turn_id
        newest = await self._way.newest.read(thread_id)
        hidden = await self._way.newest.hidden(thread_id, expected)
        check_expected(expected, newest, newest.id if newest else None, hidden)
        pending = await self._way.newest.pending(thread_id)
        check_pending(pending, allowed=wanted.allow_pending)
        guard = self._way.guard(caller, thread_id)
        lease = await self._way.open(caller, thread_id, guard)
        loaded: Loaded | None = None
        try:
            loaded = await self._resume(lease, thread_id, guard)
            if pending:
                lease.turn_ended()
            check_settings(caller, loaded.settings, self._way.inside(caller))
            if await self._way.newest.check_loaded(thread_id, loaded, newest, expected):
                self._notice_recovered(thread_id)
            last = loaded.last_turn.id if loaded.last_turn else None
            await self._way.hand_over(thread_id, last)
        except BaseException as exc:  # Cancelled too: nothing may be left
            lost = isinstance(exc, ThreadOwnedElsewhere)
            await self._way.carrier.leave_nothing(lease, lost=lost)  # noqa: ASYNC102 - shields itself, with a deadline
            if loaded is not None and lease.unwanted and not lease.ended.is_set():
                self._way.leases.hold(lease, loaded)  # others' work: it is shown
            raise
        lease.has_goal = pending.goal is not None
        flight.row = replace(flight.row, last_turn=last)
        self._way.hold(lease, loaded)
        return lease

    async def _resume(self, lease: Lease, thread_id: str, guard: Guard) -> Loaded:
        try:
            return await lease.started_writer.resume(thread_id, guard=guard)
        except AdapterError as exc:
            if is_lock(exc):
                raise owned_elsewhere(thread_id, self._way.holder(thread_id)) from exc
            raise self._way.failed_before(exc, thread_id) from exc

    def _notice_foreign(self, thread_id: str) -> None:
        self._way.notice(
            "foreignTurn",
            "Another program has continued this thread meanwhile. It is loaded anew, so "
            "that the next turn knows what was added.",
            thread_id,
        )

    def _notice_recovered(self, thread_id: str) -> None:
        self._way.notice(
            "turnRecovered",
            "A turn that this Agent had started before a crash shows again as the newest "
            "one; it was interrupted.",
            thread_id,
        )


def check_root(lease: Lease, thread_id: str) -> None:
    """Raise `Conflict` (running) where the thread is a sub-agent's of a held one."""
    if lease.key != thread_id:
        raise running(
            None,
            "This is a sub-agent's thread; its parent is being worked in. Send to the "
            f"parent thread ({lease.key}).",
        )


def _check_ends_nothing(writer: ThreadWriter) -> None:
    """Raise `Conflict` (running) where a background command or a sub-agent is at work."""
    if writer.at_work:
        raise running(
            None,
            "A fresh Codex is needed (it was updated, or another program has continued the "
            "thread), and something of this thread still works in the background; it would "
            "end with the old one. Wait for it, or end it, and send again.",
        )
