"""The one door for every mutation. Trio shell. PROTOCOL.md section 3, "The way".

Scope and ceiling → request key → look → newest turn by the reader → writer: start, look,
load → effective settings → newest turn again through the writer → `handed` on the disk →
look → act → outcome on the disk → answer. Every no is typed, and leaves nothing behind:
no row, no writer. From `handed` on the act is carried to its recorded end (`carry`).

The beginning is here; from the look on: `turn_start`, `thread_start`, `turn_interrupt`,
with what they share in `way`.
"""

from collections.abc import Sequence

from agent.ledger import Flight
from agent.limits import TEXT_INPUT
from agent.patience import Patience
from agent.scopes import Caller, check_access, check_wishes
from agent.thread_locks import ThreadLocks
from agent.thread_start import ThreadStart
from agent.turn_interrupt import TurnInterrupt
from agent.turn_start import TurnStart
from agent.way import Way
from transport.errors import TooLarge
from transport.protocol.methods import THREAD_START, TURN_INTERRUPT, TURN_START
from transport.protocol.threads import ThreadStartParams, ThreadStartResult
from transport.protocol.turns import (
    InputPart,
    TextInput,
    TurnInterruptParams,
    TurnResult,
    TurnStartParams,
    TurnStartResult,
)


class Admission:
    """`turn/start`, `thread/start` and `turn/interrupt`, from any caller."""

    def __init__(self, way: Way, *, locks: ThreadLocks | None = None) -> None:
        self._sight = way.sight
        self._ledger = way.ledger
        self._inputs = way.inputs
        self._locks = ThreadLocks() if locks is None else locks
        self._patience = Patience(keeper=way.keeper, watch=way.watch)
        self._turn_start = TurnStart(way)
        self._thread_start = ThreadStart(way)
        self._turn_interrupt = TurnInterrupt(way)

    async def start_turn(
        self, caller: Caller, params: TurnStartParams
    ) -> TurnStartResult:
        """Continue a thread. Raises: Refusal."""
        check_access(caller, TURN_START)
        _check_size(params.input)
        thread = await self._sight.thread(caller, params.thread_id)

        async def attempt(flight: Flight) -> TurnStartResult:
            # Before a writer is started; once more when it has said where it works.
            await self._inputs.prepare(caller, params.input, thread.cwd)
            async with self._locks.holding(params.thread_id):
                return await self._turn_start.run(caller, params, flight)

        async def act(flight: Flight) -> TurnStartResult:
            return await self._patience.attempting(
                params.wait_ms, params.thread_id, lambda: attempt(flight)
            )

        return await self._ledger.once(
            caller,
            TURN_START.name,
            params,
            key=params.request_key,
            result=TurnStartResult,
            act=act,
        )

    async def start_thread(
        self, caller: Caller, params: ThreadStartParams
    ) -> ThreadStartResult:
        """Make a thread with its first turn, as one act. Raises: Refusal."""
        check_access(caller, THREAD_START)
        _check_size(params.input)
        check_wishes(caller, sandbox=params.sandbox, policy=params.approval_policy)
        folder = await self._sight.folder(caller, params.cwd)

        async def act(flight: Flight) -> ThreadStartResult:
            return await self._patience.attempting(
                params.wait_ms,
                None,
                lambda: self._thread_start.run(caller, params, folder, flight),
            )

        return await self._ledger.once(
            caller,
            THREAD_START.name,
            params,
            key=params.request_key,
            result=ThreadStartResult,
            act=act,
        )

    async def interrupt(
        self, caller: Caller, params: TurnInterruptParams
    ) -> TurnResult:
        """Stop a turn that a writer of ours runs; the gate may be closed."""
        check_access(caller, TURN_INTERRUPT)
        await self._sight.thread(caller, params.thread_id)

        async def act(flight: Flight) -> TurnResult:
            return await self._turn_interrupt.run(caller, params, flight)

        return await self._ledger.once(
            caller,
            TURN_INTERRUPT.name,
            params,
            key=params.request_key,
            result=TurnResult,
            act=act,
        )

    async def stop_turns_of(self, device_id: str) -> list[str]:
        """Interrupt what this device started (`revoke --stop`); return the turns."""
        return await self._turn_interrupt.run_for(device_id)


def _check_size(given: Sequence[InputPart]) -> None:
    texts = (one.text for one in given if isinstance(one, TextInput))
    if sum(len(text.encode()) for text in texts) > TEXT_INPUT:
        raise TooLarge(
            f"A message may have at most {TEXT_INPUT} bytes.",
            data={"field": "input", "limit": TEXT_INPUT},
        )
