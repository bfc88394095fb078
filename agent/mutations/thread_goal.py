"""A thread's goal: read, set, paused, cleared. Trio shell. PROTOCOL.md sections 3 and 4.

An active goal starts turns by itself, so it needs a writer of ours. Pausing and clearing
end such work: they go through the writer that has the thread (an act behind its back
would leave it busy for ever), else through the reader, and load nothing.
"""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext

from adapter.errors import (
    AdapterError,
    CodexRefusedError,
    NoAnswerError,
    NotDeliveredError,
)
from adapter.runtime.acts import Guard
from agent.access.scopes import Caller, check_alive
from agent.app_servers.lease import Lease
from agent.mutations.carry import Sent
from agent.mutations.refusals import owned_elsewhere
from agent.mutations.taking import Taking, Wanted
from agent.mutations.way import Way
from agent.records.flight import Flight
from transport.errors import Refusal
from transport.protocol.goals import (
    Goal,
    GoalClearParams,
    GoalGetParams,
    GoalGetResult,
    GoalPauseParams,
    GoalResult,
    GoalSetParams,
)


class ThreadGoal:
    """`thread/goal/get`, `set`, `pause` and `clear`."""

    def __init__(
        self,
        way: Way,
        taking: Taking,
        *,
        head: Callable[[], int],
    ) -> None:
        self._way = way
        self._taking = taking
        self._head = head

    async def get(self, caller: Caller, params: GoalGetParams) -> GoalGetResult:
        """Return the goal. Raises: Refusal."""
        head = self._head()
        await self._way.sight.thread(caller, params.thread_id)
        try:
            goal = await self._way.supervisor.reader.goal(params.thread_id)
        except AdapterError as exc:
            raise self._way.failed_before(exc, params.thread_id) from exc
        return GoalGetResult(goal=goal, head=head)

    async def set(
        self, caller: Caller, params: GoalSetParams, flight: Flight
    ) -> GoalResult:
        """Load the thread and give it an active goal. Raises: Refusal."""
        wanted = Wanted(thread_id=params.thread_id, allow_pending=params.allow_pending)
        async with self._taking.taken(caller, wanted, flight) as lease:

            async def steps(sent: Sent) -> GoalResult:
                await self._way.ledger.hand(flight)
                try:
                    goal = await lease.started_writer.set_goal(
                        params.objective,
                        guard=sent.behind(self._way.guard(caller, params.thread_id)),
                    )
                finally:
                    if sent.is_out:
                        lease.goal_by = caller.device_id
                lease.has_goal = True
                result = GoalResult(goal=goal)
                await self._way.ledger.done(flight, result, None)
                return result

            return await self._way.carrier.carry(flight, lease, steps)

    async def pause(
        self, caller: Caller, params: GoalPauseParams, flight: Flight
    ) -> GoalResult:
        """Start no further turn for it. Where our writer has the thread, the gate may
        be closed. Raises: Refusal."""
        lease = self._lease(caller, params.thread_id, ends_work=True)

        async def act(guard: Guard) -> None:
            if lease is not None:
                await lease.started_writer.pause_goal(guard=guard)
                lease.has_goal = False
            else:
                reader = self._way.supervisor.reader
                await reader.pause_goal(params.thread_id, guard=guard)

        guard = self._guard(caller, params.thread_id, lease)
        return await self._carry(flight, lease, guard, act)

    async def clear(
        self, caller: Caller, params: GoalClearParams, flight: Flight
    ) -> GoalResult:
        """Take it away. Raises: Refusal."""
        lease = self._lease(caller, params.thread_id, ends_work=False)

        async def act(guard: Guard) -> None:
            if lease is not None:
                await lease.started_writer.clear_goal(guard=guard)
                lease.has_goal = False
            else:
                reader = self._way.supervisor.reader
                await reader.clear_goal(params.thread_id, guard=guard)

        guard = self._way.guard(caller, params.thread_id)
        return await self._carry(flight, lease, guard, act)

    def _lease(
        self, caller: Caller, thread_id: str, *, ends_work: bool
    ) -> Lease | None:
        """Return our lease of the thread, if any; refuse what is somebody else's."""
        check_alive(caller)
        lease = self._way.leases.lease_of(thread_id)
        if lease is not None and lease.key != thread_id:
            lease = None  # a sub-agent's own goal, which its parent's writer has not
        if lease is None or not ends_work:
            self._way.keeper.check(thread_id)
        if lease is None:
            holder = self._way.holder(thread_id)
            if holder is not None:
                raise owned_elsewhere(thread_id, holder)
        return lease

    def _guard(self, caller: Caller, thread_id: str, lease: Lease | None) -> Guard:
        if lease is None:
            return self._way.guard(caller, thread_id)
        return lambda: check_alive(caller)

    async def _carry(
        self,
        flight: Flight,
        lease: Lease | None,
        guard: Guard,
        act: Callable[[Guard], Awaitable[None]],
    ) -> GoalResult:
        async def steps(sent: Sent) -> GoalResult:
            await self._way.ledger.hand(flight)
            await act(sent.behind(guard))
            result = GoalResult(goal=await self._read_back(flight, lease))
            await self._way.ledger.done(flight, result, None)
            return result

        with lease.used() if lease is not None else nullcontext():
            return await self._way.carrier.carry(flight, None, steps)

    async def _read_back(self, flight: Flight, lease: Lease | None) -> Goal | None:
        try:
            if lease is not None:
                return await lease.started_writer.goal()
            assert flight.row.thread is not None
            return await self._way.supervisor.reader.goal(flight.row.thread)
        except (CodexRefusedError, NotDeliveredError, Refusal) as exc:
            # The act itself was sent, and not refused.
            raise NoAnswerError(flight.row.method) from exc
