"""Commands that outlived their turn: listed and ended. Trio shell. PROTOCOL.md section 4."""

from collections.abc import Callable

from adapter.errors import AdapterError
from agent.access.scopes import Caller, check_alive
from agent.mutations.carry import Sent
from agent.mutations.way import Way
from agent.records.flight import Flight
from transport.errors import NotFound
from transport.protocol.background import (
    BackgroundListParams,
    BackgroundListResult,
    BackgroundStopParams,
    BackgroundStopResult,
)


class BackgroundCommands:
    """`background/list` and `background/stop`. They live in writers of ours."""

    def __init__(self, way: Way, *, head: Callable[[], int]) -> None:
        self._way = way
        self._head = head

    async def list(
        self, caller: Caller, params: BackgroundListParams
    ) -> BackgroundListResult:
        """Return those of a thread and its sub-agents. Raises: Refusal."""
        head = self._head()
        await self._way.sight.thread(caller, params.thread_id)
        lease = self._way.leases.lease_of(params.thread_id)
        if lease is None:
            return BackgroundListResult(commands=[], head=head)
        with lease.used() as writer:
            try:
                found = await writer.background_commands(params.thread_id)
            except AdapterError as exc:
                raise self._way.failed_before(exc, params.thread_id) from exc
        return BackgroundListResult(commands=[*found], head=head)

    async def stop(
        self, caller: Caller, params: BackgroundStopParams, flight: Flight
    ) -> BackgroundStopResult:
        """End one; the gate may be closed. Raises: Refusal."""
        check_alive(caller)
        lease = self._way.leases.lease_of(params.thread_id)
        if lease is None:
            raise self._way.not_ours(params.thread_id, _not_there(params.item_id))

        async def steps(sent: Sent) -> BackgroundStopResult:
            await self._way.ledger.hand(flight)
            check_alive(caller)
            sent.is_out = True
            await lease.started_writer.stop_background(params.thread_id, params.item_id)
            result = BackgroundStopResult()
            await self._way.ledger.done(flight, result, None)
            return result

        with lease.used():
            return await self._way.carrier.carry(
                flight, lease, steps, ends_writer=False
            )


def _not_there(item_id: str) -> NotFound:
    return NotFound(
        "This command does not run in the background (any more).",
        data={"kind": "command", "id": item_id},
    )
