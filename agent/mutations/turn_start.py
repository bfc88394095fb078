"""Continue a thread with a turn. Trio shell. PROTOCOL.md sections 3 and 4."""

from typing import Final

from agent.access.scopes import Caller
from agent.mutations.carry import Sent
from agent.mutations.taking import Taking, Wanted
from agent.mutations.way import Way, turn_wishes
from agent.records.ledger import Flight
from transport.protocol.methods import TURN_START
from transport.protocol.turns import TurnStartParams, TurnStartResult

_STARTED: Final = "started"


class TurnStart:
    """`turn/start`, under the lock of its thread."""

    def __init__(self, way: Way, taking: Taking) -> None:
        self._way = way
        self._taking = taking

    async def run(
        self,
        caller: Caller,
        params: TurnStartParams,
        folder: str | None,
        flight: Flight,
    ) -> TurnStartResult:
        """Go the way, from the first look to the record. Raises: Refusal.

        `folder`: `params.cwd`, checked.
        """
        wanted = Wanted(
            thread_id=params.thread_id,
            expected_last_turn_id=params.expected_last_turn_id,
            allow_pending=params.allow_pending,
        )
        async with self._taking.taken(caller, wanted, flight) as lease:

            async def steps(sent: Sent) -> TurnStartResult:
                where = folder or lease.settings.cwd
                parts = await self._way.inputs.prepare(caller, params.input, where)
                await self._way.ledger.hand(flight, TURN_START.name)
                turn = await lease.started_writer.start_turn(
                    parts,
                    client_key=params.request_key,
                    guard=sent.behind(self._way.guard(caller, params.thread_id)),
                    wishes=turn_wishes(params, folder),
                    output_schema=params.output_schema,
                )
                result = TurnStartResult(turn=turn, delivery=_STARTED)
                await self._way.record(caller, flight, result, turn)
                return result

            return await self._way.carrier.carry(flight, lease, steps)
