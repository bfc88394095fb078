"""Turns of Codex's own making: a compaction, a review. Trio shell. PROTOCOL.md section 4.

They start like a turn, with nothing of the person in them. Codex interrupts whatever runs
for them, without a word: so nothing may run, and no goal may be about to start a turn.
"""

from agent.access.scopes import Caller, check_review
from agent.mutations.carry import Sent
from agent.mutations.newest_turn import check_no_goal
from agent.mutations.sizes import check_target
from agent.mutations.taking import Taking, Wanted
from agent.mutations.way import Way
from agent.records.flight import Flight
from transport.protocol.reviews import ReviewStartParams
from transport.protocol.thread_acts import ThreadCompactParams, ThreadCompactResult
from transport.protocol.turns import TurnResult


def check_review_start(_caller: Caller, params: ReviewStartParams) -> None:
    """Raise `TooLarge` for what can be reviewed nowhere."""
    check_target(params.target)


class ThreadRuns:
    """`thread/compact` and `review/start`, under the lock of their thread."""

    def __init__(self, way: Way, taking: Taking) -> None:
        self._way = way
        self._taking = taking

    async def compact(
        self, caller: Caller, params: ThreadCompactParams, flight: Flight
    ) -> ThreadCompactResult:
        """Have a summary written, and return the turn that does it. Raises: Refusal."""
        async with self._taking.taken(caller, _wanted(params), flight) as lease:
            check_no_goal(lease, allowed=params.allow_pending)

            async def steps(sent: Sent) -> ThreadCompactResult:
                await self._way.ledger.hand(flight)
                turn = await lease.started_writer.compact(
                    guard=sent.behind(self._taking.guard(caller, lease))
                )
                result = ThreadCompactResult(thread=self._way.now(lease), turn=turn)
                await self._way.record(caller, flight, result, turn)
                return result

            return await self._way.carrier.carry(flight, lease, steps)

    async def review(
        self, caller: Caller, params: ReviewStartParams, flight: Flight
    ) -> TurnResult:
        """Have changes reviewed, and return the turn that does it. Raises: Refusal."""
        async with self._taking.taken(caller, _wanted(params), flight) as lease:
            check_no_goal(lease, allowed=params.allow_pending)
            check_review(caller, lease.settings, self._way.inside(caller))

            async def steps(sent: Sent) -> TurnResult:
                await self._way.ledger.hand(flight)
                turn = await lease.started_writer.review(
                    params.target,
                    guard=sent.behind(self._taking.guard(caller, lease)),
                )
                result = TurnResult(turn=turn)
                await self._way.record(caller, flight, result, turn)
                return result

            return await self._way.carrier.carry(flight, lease, steps)


def _wanted(params: ThreadCompactParams | ReviewStartParams) -> Wanted:
    return Wanted(
        thread_id=params.thread_id,
        expected_last_turn_id=params.expected_last_turn_id,
        allow_pending=params.allow_pending,
    )
