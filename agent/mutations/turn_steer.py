"""More words for a turn that a writer of ours runs. Trio shell. PROTOCOL.md section 4.

Sent with the id of the turn that is meant, never as turn/start: Codex takes that for a
steer of whatever runs, and says nothing.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from adapter.calls.refusals import not_steerable
from adapter.errors import CodexRefusedError
from adapter.runtime.acts import InputPart, Steered
from agent.access.scopes import Caller, check_alive, check_settings
from agent.app_servers.lease import Lease
from agent.mutations.carry import Sent
from agent.mutations.newest_turn import running_turn
from agent.mutations.refusals import other_last_turn, running
from agent.mutations.sizes import check_size
from agent.mutations.taking import check_root
from agent.mutations.way import Way
from agent.records.flight import Flight
from transport.protocol.base import WireModel
from transport.protocol.threads import Thread
from transport.protocol.turns import (
    TurnStartParams,
    TurnStartResult,
    TurnSteerParams,
    TurnSteerResult,
)

R = TypeVar("R", bound=WireModel)
_NOT_RUNNING: Final = "This turn does not run (any more); nothing was sent."
_TAKES_NONE: Final = (
    "A review or a compaction runs, and takes no words; nothing was sent. Wait for its "
    "end, or interrupt it."
)
_STEERED: Final = "steered"


def check_turn_steer(_caller: Caller, params: TurnSteerParams) -> None:
    """Raise `TooLarge` for what cannot be sent to any turn."""
    check_size(params.input)


class TurnSteer:
    """`turn/steer`, and `turn/start` with `delivery: steer` while a turn runs."""

    def __init__(self, way: Way) -> None:
        self._way = way

    def running_turn_id(self, thread_id: str) -> str | None:
        """Return the turn that a writer of ours runs in this thread now."""
        lease = self._way.leases.lease_of(thread_id)
        if lease is None or lease.writer is None or lease.key != thread_id:
            return None
        return lease.writer.running_turn_id

    async def look(
        self, caller: Caller, params: TurnSteerParams, thread: Thread
    ) -> None:
        """Look at the message where its thread works. Raises: Refusal."""
        await self._way.inputs.prepare(caller, params.input, thread.cwd)

    async def run(
        self, caller: Caller, params: TurnSteerParams, flight: Flight
    ) -> TurnSteerResult:
        """Steer exactly this turn. Raises: Refusal."""
        lease = self._lease(caller, params.thread_id, params.turn_id)
        return await self._carry(
            caller, params, params.turn_id, lease, flight, _as_steered
        )

    async def run_start(
        self, caller: Caller, params: TurnStartParams, turn_id: str, flight: Flight
    ) -> TurnStartResult:
        """Steer the turn that runs, as a turn/start asked for. Raises: Refusal."""
        lease = self._lease(caller, params.thread_id, turn_id)
        if params.expected_last_turn_id not in (None, turn_id):
            raise other_last_turn(running_turn(lease))
        return await self._carry(caller, params, turn_id, lease, flight, _as_started)

    async def _carry(
        self,
        caller: Caller,
        params: TurnSteerParams | TurnStartParams,
        turn_id: str,
        lease: Lease,
        flight: Flight,
        result_of: Callable[[Steered], R],
    ) -> R:
        async def steps(sent: Sent) -> R:
            parts = await self._way.inputs.prepare(
                caller, params.input, lease.settings.cwd
            )
            await self._way.ledger.hand(flight)
            steered = await self._send(
                caller, lease, turn_id, parts, params.request_key, sent
            )
            result = result_of(steered)
            await self._way.ledger.done(flight, result, steered.turn.id)
            return result

        with lease.used():
            return await self._way.carrier.carry(
                flight, lease, steps, ends_writer=False
            )

    def _lease(self, caller: Caller, thread_id: str, turn_id: str) -> Lease:
        """Return the lease in which this turn runs. Raises: Refusal."""
        check_alive(caller)
        self._way.keeper.check(thread_id)
        lease = self._way.leases.lease_of(thread_id)
        if lease is None:
            raise self._way.not_ours(thread_id, running(None, _NOT_RUNNING))
        check_root(lease, thread_id)
        turn = running_turn(lease)
        if turn is None or turn.id != turn_id:
            raise running(turn, _NOT_RUNNING)
        check_settings(caller, lease.settings, self._way.inside(caller))
        return lease

    async def _send(
        self,
        caller: Caller,
        lease: Lease,
        turn_id: str,
        parts: Sequence[InputPart],
        key: str,
        sent: Sent,
    ) -> Steered:
        try:
            return await lease.started_writer.steer(
                turn_id,
                parts,
                client_key=key,
                guard=sent.behind(self._way.guard(caller, lease.key)),
            )
        except CodexRefusedError as exc:
            if (turn := running_turn(lease)) is None or turn.id != turn_id:
                raise running(turn, _NOT_RUNNING) from exc
            if not_steerable(exc):
                raise running(turn, _TAKES_NONE) from exc
            raise


def _as_steered(steered: Steered) -> TurnSteerResult:
    return TurnSteerResult(turn=steered.turn, pending=steered.pending or None)


def _as_started(steered: Steered) -> TurnStartResult:
    return TurnStartResult(
        turn=steered.turn, delivery=_STEERED, pending=steered.pending or None
    )
