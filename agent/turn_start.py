"""Continue a thread: held writer or fresh one, checked, then the turn. Trio shell.

PROTOCOL.md section 3, "The way". A held writer that does not know all that is on the
disk is too old: it ends, and a fresh one takes its place.
"""

from dataclasses import replace
from typing import Final

from adapter.errors import AdapterError
from adapter.runtime import Guard, Loaded
from agent.carry import Sent
from agent.lease import Lease
from agent.ledger import Flight
from agent.newest_turn import check_expected, check_idle, check_pending
from agent.refusals import is_lock, owned_elsewhere, running
from agent.scopes import Caller, check_alive, check_settings
from agent.way import Way
from transport.errors import ThreadOwnedElsewhere
from transport.protocol.methods import TURN_START
from transport.protocol.turns import TurnStartParams, TurnStartResult

_STARTED: Final = "started"


class TurnStart:
    """`turn/start`, under the lock of its thread."""

    def __init__(self, way: Way) -> None:
        self._way = way

    async def run(
        self, caller: Caller, params: TurnStartParams, flight: Flight
    ) -> TurnStartResult:
        """Go the way, from the first look to the record. Raises: Refusal."""
        check_alive(caller)
        self._way.keeper.check(params.thread_id)
        lease = self._way.pool.lease_of(params.thread_id)
        if lease is not None:
            _check_root(lease, params.thread_id)
            with lease.used():
                if await self._fits(caller, params, lease, flight):
                    return await self._send_turn(caller, params, lease, flight)
            await self._way.pool.end(lease)
        lease = await self._fresh(caller, params, flight)
        with lease.used():
            return await self._send_turn(caller, params, lease, flight)

    async def _fits(
        self, caller: Caller, params: TurnStartParams, lease: Lease, flight: Flight
    ) -> bool:
        """Whether a held writer knows all that is on the disk; else it is too old.

        Raises: Conflict (running, lastTurn), Forbidden.
        """
        assert lease.writer is not None
        assert lease.loaded is not None
        check_idle(lease)
        newest = await self._way.newest.read(params.thread_id)
        told = newest.id if newest else None
        known = lease.writer.last_turn_id
        check_idle(lease)
        check_expected(params.expected_last_turn_id, newest, told, known)
        if told != known:
            if told is not None and not lease.writer.knows_turn(told):
                self._notice_foreign(params.thread_id)
            return False
        check_settings(caller, lease.loaded.settings, self._way.inside(caller))
        flight.row = replace(flight.row, last_turn=told)
        return True

    async def _fresh(
        self, caller: Caller, params: TurnStartParams, flight: Flight
    ) -> Lease:
        """Return a lease that was loaded just now. Any failure leaves no writer."""
        thread_id, expected = params.thread_id, params.expected_last_turn_id
        newest = await self._way.newest.read(thread_id)
        check_expected(expected, newest, newest.id if newest else None)
        pending = await self._way.newest.pending(thread_id)
        check_pending(pending, allowed=params.allow_pending)
        guard = self._way.guard(caller, thread_id)
        lease = await self._way.open(caller, thread_id, guard)
        try:
            loaded = await self._resume(lease, thread_id, guard)
            check_settings(caller, loaded.settings, self._way.inside(caller))
            if await self._way.newest.check_loaded(thread_id, loaded, newest, expected):
                self._notice_recovered(thread_id)
            last = loaded.last_turn.id if loaded.last_turn else None
            await self._way.hand_over(thread_id, last)
        except BaseException as exc:  # Cancelled too: nothing may be left
            lost = isinstance(exc, ThreadOwnedElsewhere)
            await self._way.carrier.leave_nothing(lease, lost=lost)  # noqa: ASYNC102 - shields itself, with a deadline
            raise
        lease.has_goal = pending.goal is not None
        flight.row = replace(flight.row, last_turn=last)
        self._way.pool.hold(lease, loaded)
        return lease

    async def _resume(self, lease: Lease, thread_id: str, guard: Guard) -> Loaded:
        try:
            return await lease.started_writer.resume(thread_id, guard=guard)
        except AdapterError as exc:
            if is_lock(exc):
                holder = self._way.watch.holders([thread_id]).get(thread_id)
                raise owned_elsewhere(thread_id, holder) from exc
            raise self._way.failed_before(exc, thread_id) from exc

    async def _send_turn(
        self, caller: Caller, params: TurnStartParams, lease: Lease, flight: Flight
    ) -> TurnStartResult:
        check_idle(lease)

        async def steps(sent: Sent) -> TurnStartResult:
            assert lease.loaded is not None
            folder = lease.loaded.settings.cwd
            parts = await self._way.inputs.prepare(caller, params.input, folder)
            await self._way.ledger.hand(flight, TURN_START.name)
            turn = await lease.started_writer.start_turn(
                parts,
                client_key=params.request_key,
                guard=sent.behind(self._way.guard(caller, params.thread_id)),
            )
            result = TurnStartResult(turn=turn, delivery=_STARTED)
            await self._way.record(caller, flight, result, turn)
            return result

        return await self._way.carrier.carry(flight, lease, steps)

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


def _check_root(lease: Lease, thread_id: str) -> None:
    if lease.key != thread_id:
        raise running(
            None,
            "This is a sub-agent's thread; its parent is being worked in. Send to the "
            f"parent thread ({lease.key}).",
        )
