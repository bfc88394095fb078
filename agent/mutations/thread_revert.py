"""Turns of a thread are taken back. Trio shell. PROTOCOL.md section 4.

What goes is gone: so it has to be there, something has to be left, and nothing may run,
for Codex would interrupt it, end background commands with it, and say nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from adapter.errors import AdapterError, TurnUnknownError
from agent.access.scopes import Caller
from agent.app_servers.lease import Lease
from agent.limits import REVERT_PAGE, REVERT_PAGES
from agent.mutations.carry import Sent
from agent.mutations.newest_turn import check_no_goal
from agent.mutations.refusals import running, turn_not_found
from agent.mutations.taking import Taking, Wanted
from agent.mutations.way import Way
from agent.records.flight import Flight, Settled
from agent.records.key_row import KeyRow
from transport.errors import InvalidParams
from transport.protocol.thread_acts import ThreadRevertParams
from transport.protocol.threads import Thread, ThreadResult


class _Lacking(Enum):
    """Why a turn was not found: the thread has none, or not among so many."""

    ALL_SEEN = auto()
    TOO_FAR_BACK = auto()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a turn is: behind `left`, or first of all."""

    left: str | None


class ThreadRevert:
    """`thread/revert`, under the lock of its thread. `judged`: threads as they stand."""

    def __init__(
        self, way: Way, taking: Taking, *, judged: Callable[[Thread], Thread]
    ) -> None:
        self._way = way
        self._taking = taking
        self._judged = judged

    async def run(
        self, caller: Caller, params: ThreadRevertParams, flight: Flight
    ) -> ThreadResult:
        """Take them back; return the thread as it is then. Raises: Refusal."""
        self._way.keeper.check(params.thread_id)
        await self._left(params)
        wanted = Wanted(
            thread_id=params.thread_id,
            expected_last_turn_id=params.expected_last_turn_id,
        )
        async with self._taking.taken(caller, wanted, flight) as lease:
            check_no_goal(lease, allowed=False)
            _check_at_rest(lease)
            left = await self._left(params)

            async def steps(sent: Sent) -> ThreadResult:
                await self._way.ledger.hand(flight)
                await self._send(caller, params, lease, left, sent)
                now = self._way.now(lease).model_copy(update={"last_turn_id": left})
                result = ThreadResult(thread=now)
                await self._way.ledger.done(flight, result, None)
                return result

            return await self._way.carrier.carry(flight, lease, steps)

    async def settled(
        self, caller: Caller, params: ThreadRevertParams, _row: KeyRow
    ) -> Settled[ThreadResult]:
        """Return the result where a revert of unknown outcome has happened after all."""
        if await self._place(params) is not _Lacking.ALL_SEEN:
            return Settled()
        newest = await self._way.newest.read(params.thread_id)
        thread = await self._way.sight.thread(caller, params.thread_id)
        if newest is None:
            return Settled()
        self._way.tell_reverted(params.thread_id, newest.id)
        last = {"last_turn_id": newest.id}
        thread = self._judged(thread).model_copy(update=last)
        return Settled(result=ThreadResult(thread=thread))

    async def _send(
        self,
        caller: Caller,
        params: ThreadRevertParams,
        lease: Lease,
        left: str,
        sent: Sent,
    ) -> None:
        guard = self._way.guard(caller, params.thread_id)

        def last_look() -> None:
            guard()
            _check_at_rest(lease)

        try:
            await lease.started_writer.revert(
                params.before_turn_id, left=left, guard=sent.behind(last_look)
            )
        except TurnUnknownError as exc:
            raise turn_not_found(params.before_turn_id) from exc

    async def _left(self, params: ThreadRevertParams) -> str:
        """Return the turn that becomes the newest. Raises: NotFound, InvalidParams."""
        match await self._place(params):
            case _Place(left=str() as left):
                return left
            case _Place():
                reason = "the first turn of the thread"
                raise InvalidParams(
                    "This is the thread's first turn: nothing would be left of it. Start "
                    "a new thread, or delete this one.",
                    data={"field": "beforeTurnId", "reason": reason},
                )
            case _:
                raise turn_not_found(params.before_turn_id)

    async def _place(self, params: ThreadRevertParams) -> _Place | _Lacking:
        """Look for the turn in the thread's history, newest first. Raises: Refusal."""
        cursor: str | None = None
        found = False
        for _ in range(REVERT_PAGES):
            try:
                page = await self._way.supervisor.reader.list_turns(
                    params.thread_id,
                    cursor=cursor,
                    limit=REVERT_PAGE,
                    order="desc",
                    items="none",
                )
            except AdapterError as exc:
                raise self._way.failed_before(exc, params.thread_id) from exc
            for turn in page.turns:
                if found:
                    return _Place(turn.id)
                found = turn.id == params.before_turn_id
            cursor = page.next_cursor
            if cursor is None:
                return _Place(None) if found else _Lacking.ALL_SEEN
        return _Lacking.TOO_FAR_BACK


def _check_at_rest(lease: Lease) -> None:
    if lease.started_writer.at_work:
        raise running(
            None,
            "Something still runs in this thread (a sub-agent, a command in the "
            "background, or a question that waits); nothing was taken back. Stop it, or "
            "wait.",
        )
