"""Stop a turn that a writer of ours runs; the gate may be closed. Trio shell.

PROTOCOL.md section 4.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final

from adapter.errors import (
    AdapterError,
    CodexOverloadedError,
    CodexRefusedError,
    NoAnswerError,
)
from agent.access.scopes import Caller, check_alive
from agent.app_servers.lease import Lease
from agent.faults import fault_of
from agent.mutations.carry import Sent
from agent.mutations.refusals import running
from agent.mutations.way import Way
from agent.records.flight import Flight
from transport.errors import NotFound, Refusal
from transport.protocol.turns import Turn, TurnInterruptParams, TurnResult

_LOG: Final = logging.getLogger(__name__)
_NOT_RUNNING: Final = "This turn does not run (any more); nothing was stopped."


class TurnInterrupt:
    """`turn/interrupt`, and the end of what a device has started that is put out."""

    def __init__(self, way: Way) -> None:
        self._way = way

    async def run(
        self, caller: Caller, params: TurnInterruptParams, flight: Flight
    ) -> TurnResult:
        """Stop the turn and return it, ended. Raises: Refusal."""
        check_alive(caller)
        lease = self._way.leases.lease_of(params.thread_id)
        if lease is None or not lease.started_writer.knows_turn(params.turn_id):
            raise self._way.not_ours(params.thread_id, running(None, _NOT_RUNNING))

        async def steps(sent: Sent) -> TurnResult:
            await self._way.ledger.hand(flight)
            check_alive(caller)
            sent.is_out = True
            try:
                turn = await self._stop(
                    lease, params.turn_id, background=params.background
                )
            except NotFound as exc:
                raise running(None, _NOT_RUNNING) from exc
            result = TurnResult(turn=turn)
            await self._way.ledger.done(flight, result, turn.id)
            return result

        with lease.used():
            return await self._way.carrier.carry(
                flight, lease, steps, ends_writer=False
            )

    async def _stop(
        self,
        lease: Lease,
        turn_id: str,
        *,
        background: bool = False,
        repeatable: bool = True,
    ) -> Turn:
        """Interrupt; where its thread does not react, end the writer, and so the turn.

        A stop has to work also where Codex hangs, or has lost a turn whose end it never
        told; or is overloaded, where nobody would say it again (not `repeatable`).
        Raises: NotFound, Conflict (running), CodexOverloadedError.
        """
        writer = lease.started_writer
        try:
            return await writer.interrupt(turn_id, background=background)
        except (NoAnswerError, CodexRefusedError) as exc:
            if isinstance(exc, CodexOverloadedError) and repeatable:
                raise
            if writer.live_turn(turn_id) is None:
                raise running(None, _NOT_RUNNING) from exc
            _LOG.warning(
                "thread %s: its turn cannot be interrupted, its writer is ended: %s",
                lease.key,
                fault_of(exc),
            )
        writer.hurry()
        await self._way.pool.end(lease)
        return await writer.interrupt(turn_id)

    def goals_of(self, device_id: str) -> dict[str, Callable[[], Awaitable[None]]]:
        """Return the goals of this device that would begin turns, each with its end."""
        return {
            lease.key: partial(self._pause_goal, lease)
            for lease in self._way.leases.held()
            if lease.has_goal and lease.goal_by == device_id
        }

    def stops_of(self, device_id: str) -> dict[str, Callable[[], Awaitable[None]]]:
        """Return the turns of this device that run, each with what ends it; and its goals
        that would begin further ones."""
        stops: dict[str, Callable[[], Awaitable[None]]] = {}
        for lease in self._way.leases.held():
            if lease.has_goal and lease.goal_by == device_id:
                stops[lease.key] = partial(self._end_goal, lease)
            for turn_id, began_in in _running(lease):
                if self._way.starter_of(began_in, lease) == device_id:
                    stops[turn_id] = partial(self._put_an_end, lease, turn_id)
        return stops

    async def _put_an_end(self, lease: Lease, turn_id: str) -> None:
        with lease.used(), suppress(AdapterError, Refusal):  # it has ended by itself
            await self._stop(lease, turn_id, repeatable=False)

    async def _pause_goal(self, lease: Lease) -> None:
        try:
            with lease.used():
                await lease.started_writer.pause_goal()
        except AdapterError:
            if lease.runs_nothing:  # it hangs: without it no turn begins
                await self._way.pool.end(lease)

    async def _end_goal(self, lease: Lease) -> None:
        goal_by = lease.goal_by
        await self._pause_goal(lease)
        turn_id = lease.started_writer.running_turn_id
        if turn_id and self._way.starter_of(turn_id, lease) in (None, goal_by):
            await self._put_an_end(lease, turn_id)  # it has just begun


def _running(lease: Lease) -> Iterator[tuple[str, str]]:
    """Yield each turn that is to be stopped by itself, and in which of the lease's own
    thread it began: a sub-agent may work on when that has ended."""
    writer = lease.started_writer
    own = writer.running_turn_id
    if own is not None:
        yield own, own
    for child, began_in in lease.children.items():
        turn_id = writer.running_turn_of(child)
        if turn_id and began_in and began_in != own:
            yield turn_id, began_in
