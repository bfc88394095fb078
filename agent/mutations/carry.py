"""From `handed` to a recorded end. Trio shell. PROTOCOL.md sections 3 and 4.

What has begun is finished and written down under a shield with a deadline: the client
may be gone. The one question after a failure is whether the act's bytes can have reached
Codex. If not, the row goes; if so, the row says unknown, and nothing is sent again.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

from adapter.errors import AdapterError, CodexRefusedError, NotDeliveredError
from adapter.runtime.acts import Guard
from agent.app_servers.lease import Lease
from agent.app_servers.lease_pool import LeasePool
from agent.limits import ACT_S, ROOM_S
from agent.mutations.refusals import failed_before, outcome_unknown
from agent.records.flight import Flight
from agent.records.ledger import Ledger
from transport.errors import Refusal, Timeout
from transport.protocol.base import WireModel

R = TypeVar("R", bound=WireModel)
_NO_EFFECT: Final = (Refusal, CodexRefusedError, NotDeliveredError)


class Sent:
    """Whether the act's bytes can be out."""

    def __init__(self) -> None:
        self.is_out = False

    def behind(self, guard: Guard) -> Guard:
        """Return the guard; when it has said yes, bytes may be out."""

        def last_look() -> None:
            guard()
            self.is_out = True

        return last_look

    def can_be_undone(self) -> None:
        """It was answered, and what it made is known: to be without it, delete it."""
        self.is_out = False


Steps = Callable[[Sent], Awaitable[R]]


class Carrier:
    """Carries acts to their end."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        pool: LeasePool,
        begun: Callable[[str, str], None],
        now_ms: Callable[[], int],
    ) -> None:
        """`begun`: told a device and a turn that it may have started, unseen."""
        self._ledger = ledger
        self._pool = pool
        self._begun = begun
        self._now_ms = now_ms

    async def carry(
        self,
        flight: Flight,
        lease: Lease | None,
        steps: Steps[R],
        *,
        ends_writer: bool = True,
    ) -> R:
        """Run `steps`; they hand the flight in, act and record.

        `lease`: None where the act goes through the reader. A failure ends the writer
        too unless it runs something, or `ends_writer` is False. A cancellation from
        outside is told after the act's end. Raises: Refusal.
        """
        sent = Sent()
        failure: Exception | None = None
        with trio.move_on_after(ACT_S, shield=True):
            try:
                return await steps(sent)
            except Exception as exc:  # noqa: BLE001 - settled and raised below
                failure = exc
        unknown = sent.is_out and not isinstance(failure, _NO_EFFECT)
        with trio.move_on_after(ROOM_S, shield=True):
            await self._settle(flight, unknown=unknown)
        if ends_writer and lease is not None:
            await self.leave_nothing(lease)  # noqa: ASYNC120 - shields itself
            if unknown:
                self._note_turn(flight, lease)
        raise self._verdict(flight, failure, unknown=unknown) from failure

    async def _settle(self, flight: Flight, *, unknown: bool) -> None:
        if not flight.handed:
            return
        if unknown:
            await self._ledger.unknown(flight)
        else:
            await self._ledger.drop(flight)

    def _note_turn(self, flight: Flight, lease: Lease) -> None:
        """What runs there now, and nobody is known to have begun, is the act's."""
        turn_id = lease.started_writer.running_turn_id
        if turn_id is not None:
            self._begun(flight.row.device, turn_id)

    async def leave_nothing(self, lease: Lease, *, lost: bool = False) -> None:
        """End a writer after a failure, unless others' work runs in it."""
        with trio.move_on_after(ROOM_S, shield=True):
            await self._pool.settle(lease)
            if lease.runs_nothing:
                await self._pool.end(lease, lost=lost)
            else:
                lease.leave()

    def _verdict(
        self, flight: Flight, failure: Exception | None, *, unknown: bool
    ) -> Exception:
        row = flight.row
        if unknown:
            return outcome_unknown(row.key, row.method, row.thread)
        if isinstance(failure, AdapterError):
            thread_id = row.thread or ""
            return failed_before(failure, thread_id=thread_id, at_ms=self._now_ms())
        if failure is None:
            return Timeout("Codex was too slow; nothing was done. Try again.")
        return failure
