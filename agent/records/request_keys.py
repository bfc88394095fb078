"""One act a request key, one outcome for all who ask with it. Trio shell over `ledger`.

PROTOCOL.md section 3 (Request keys). Repeats of a running call wait for it and get what
it got; later ones get what is on record.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

import trio
from pydantic import ValidationError

from adapter.errors import AdapterError
from agent.access.scopes import Caller
from agent.errors import StoreUnavailableError
from agent.limits import SETTLE_S
from agent.mutations.refusals import outcome_unknown
from agent.records.flight import Flight, Settled
from agent.records.key_row import Key, KeyRow, RowState, new_row
from agent.records.ledger import Ledger
from transport.errors import Conflict, OutcomeUnknown, Refusal
from transport.protocol.base import MutationParams, WireModel
from transport.protocol.methods import Method

R = TypeVar("R", bound=WireModel)
Act = Callable[[Flight], Awaitable[R]]
Settle = Callable[[KeyRow], Awaitable[Settled[R]]]

_NOT_SEEN: Final = (AdapterError, Refusal, StoreUnavailableError)


class RequestKeys:
    """The keyed calls that run now."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._flights: dict[Key, Flight] = {}

    async def once(
        self,
        caller: Caller,
        method: Method[Any, R],
        params: MutationParams,
        *,
        act: Act[R],
        ending: bool = False,
        settle: Settle[R] | None = None,
        shown: Callable[[KeyRow], Awaitable[None]] | None = None,
    ) -> R:
        """Run `act` unless its key has run already; return the one outcome.

        `settle`: looks whether an act of unknown outcome has happened after all, which
        is then its outcome. `shown`: raises where its thread does not exist (any more)
        for who asks; nothing else stands between a repeat and its answer.

        Raises: Conflict (requestKey) for other params, OutcomeUnknown, Overloaded where
        the device has no room for one more row (but `ending`), what `act` raises.
        """
        at = self._ledger.ages().least
        row = new_row(caller.device_id, method.name, params, at=at)
        while (other := self._flights.get((row.device, row.key))) is not None:
            _check_same(other.row, row)
            await other.landed.wait()
            if (landed := other.outcome(method.result)) is not None:
                return landed
        flight = self._flights[row.device, row.key] = Flight(row, ending)
        try:
            result = await self._flown(flight, method.result, act, settle, shown)
        except Refusal as refusal:
            flight.refusal = refusal
            raise
        else:
            flight.result = result
            return result
        finally:
            del self._flights[flight.key]
            flight.landed.set()

    async def catch_up(self) -> None:
        """Write what a full disk did not take, but of calls that run now: they have
        their own outcome soon."""
        await self._ledger.catch_up(self._flights)

    async def _flown(
        self,
        flight: Flight,
        result: type[R],
        act: Act[R],
        settle: Settle[R] | None,
        shown: Callable[[KeyRow], Awaitable[None]] | None,
    ) -> R:
        known = await self._ledger.find(flight)
        if known is None:
            await self._ledger.check_room(flight)
            return await self._acted(flight, act, settle)
        _check_same(known, flight.row)
        if shown is not None:
            await shown(known)
        return await self._repeated(flight, known, result, settle)

    async def _acted(self, flight: Flight, act: Act[R], settle: Settle[R] | None) -> R:
        try:
            return await act(flight)
        except OutcomeUnknown:
            if settle is None or flight.row.state is not RowState.UNKNOWN:
                raise
        return await self._settled(flight, flight.row, settle)

    async def _repeated(
        self,
        flight: Flight,
        known: KeyRow,
        result: type[R],
        settle: Settle[R] | None,
    ) -> R:
        if known.state is RowState.DONE and known.outcome is not None:
            with suppress(
                ValidationError
            ):  # another version wrote it: what shows tells
                return result.model_validate_json(known.outcome)
        if settle is None:
            raise outcome_unknown(known.key, known.method, known.thread)
        return await self._settled(flight, known, settle)

    async def _settled(self, flight: Flight, known: KeyRow, settle: Settle[R]) -> R:
        """Look once, and write down what shows. Raises: OutcomeUnknown."""
        found: Settled[R] = Settled()
        with trio.move_on_after(SETTLE_S), suppress(*_NOT_SEEN):
            found = await settle(known)
        if found.result is None:
            raise outcome_unknown(
                known.key, known.method, known.thread, new_turns=found.new_turns
            )
        flight.row = known
        await self._ledger.done(flight, found.result, found.turn_id)
        return found.result


def _check_same(one: KeyRow, other: KeyRow) -> None:
    if one.digest != other.digest:
        raise Conflict(
            "This request key was used for something else. Use a new key for a new act.",
            data={"what": "requestKey"},
        )
