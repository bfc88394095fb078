"""Continue a thread with a turn. Trio shell. PROTOCOL.md sections 3 and 4."""

from typing import Final

from agent.access.scopes import Caller
from agent.mutations.carry import Sent
from agent.mutations.sizes import check_schema, check_size
from agent.mutations.taking import Taking, Wanted
from agent.mutations.turn_steer import TurnSteer
from agent.mutations.way import Way, turn_wishes
from agent.records.flight import Flight
from transport.errors import InvalidParams
from transport.protocol.threads import Thread
from transport.protocol.turns import TurnStartParams, TurnStartResult

_STARTED: Final = "started"


def check_turn_start(_caller: Caller, params: TurnStartParams) -> None:
    """Raise `TooLarge`, `InvalidParams` for what cannot be sent to any thread."""
    check_size(params.input)
    check_schema(params.output_schema)
    if params.delivery == "steer":
        _check_steers(params)


class TurnStart:
    """`turn/start`, under the lock of its thread."""

    def __init__(self, way: Way, taking: Taking, steer: TurnSteer) -> None:
        self._way = way
        self._taking = taking
        self._steer = steer

    async def look(
        self, caller: Caller, params: TurnStartParams, thread: Thread
    ) -> None:
        """Look at the message before a writer is started. Raises: Refusal.

        Once more when the writer has said where it works.
        """
        folder = await self._way.folder(caller, params.cwd)
        await self._way.inputs.prepare(caller, params.input, folder or thread.cwd)

    async def run(
        self, caller: Caller, params: TurnStartParams, flight: Flight
    ) -> TurnStartResult:
        """Go the way, from the first look to the record. Raises: Refusal."""
        if params.delivery == "steer":
            running = self._steer.running_turn_id(params.thread_id)
            if running is not None:
                return await self._steer.run_start(caller, params, running, flight)
        folder = await self._way.folder(caller, params.cwd)
        wanted = Wanted(
            thread_id=params.thread_id,
            expected_last_turn_id=params.expected_last_turn_id,
            allow_pending=params.allow_pending,
        )
        async with self._taking.taken(caller, wanted, flight) as lease:

            async def steps(sent: Sent) -> TurnStartResult:
                where = folder or lease.settings.cwd
                parts = await self._way.inputs.prepare(caller, params.input, where)
                await self._way.ledger.hand(flight)
                turn = await lease.started_writer.start_turn(
                    parts,
                    client_key=params.request_key,
                    guard=sent.behind(self._taking.guard(caller, lease)),
                    wishes=turn_wishes(params, folder),
                    output_schema=params.output_schema,
                )
                result = TurnStartResult(turn=turn, delivery=_STARTED)
                await self._way.record(caller, flight, result, turn)
                return result

            return await self._way.carrier.carry(flight, lease, steps)


def _check_steers(params: TurnStartParams) -> None:
    """A turn that runs takes words and nothing else: what it runs with is settled."""
    for name in ("mode", "model", "effort", "cwd", "output_schema"):
        if getattr(params, name) is not None:
            raise InvalidParams(
                "What goes into a running turn is a message alone; settings go with a "
                "turn of their own.",
                data={"field": name, "reason": "not with delivery steer"},
            )
