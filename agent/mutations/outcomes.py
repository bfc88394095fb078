"""Whether an act of unknown outcome has happened after all, as far as it shows. Trio shell.

PROTOCOL.md section 3 (Request keys). It settles one way only: a message that is in the
thread was sent, a state that is as wished is done. What does not show stays unknown, since
a message can be lost, or still on its way. Nothing is ever sent again here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from agent.access.scopes import Caller
from agent.limits import SETTLE_PAGES, SETTLE_TURNS
from agent.mutations.way import Way
from agent.records.flight import Settled
from agent.records.key_row import KeyRow
from transport.protocol.background import BackgroundStopParams, BackgroundStopResult
from transport.protocol.goals import (
    Goal,
    GoalClearParams,
    GoalPauseParams,
    GoalResult,
    GoalSetParams,
    GoalStatus,
)
from transport.protocol.items import UserMessage
from transport.protocol.thread_acts import ThreadForkParams, ThreadForkResult
from transport.protocol.threads import (
    Thread,
    ThreadResult,
    ThreadSettingsParams,
    ThreadStartParams,
    ThreadStartResult,
)
from transport.protocol.turns import (
    Turn,
    TurnInterruptParams,
    TurnResult,
    TurnStartParams,
    TurnStartResult,
    TurnStatus,
    TurnSteerParams,
    TurnSteerResult,
)

Begun = TypeVar("Begun", ThreadStartResult, ThreadForkResult)
_PAGE: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A message of ours. `first`: its turn began with it."""

    turn: Turn
    first: bool


class Outcomes:
    """Looks for what became of acts. `judged`: a stored thread as it stands."""

    def __init__(self, way: Way, *, judged: Callable[[Thread], Thread]) -> None:
        self._way = way
        self._judged = judged

    # messages

    async def started(
        self, _caller: Caller, _params: TurnStartParams, row: KeyRow
    ) -> Settled[TurnStartResult]:
        """A `turn/start`, whichever way it went in."""
        found = await self._message(row)
        if found is None:
            return await self._still_unknown(row)
        delivery = "started" if found.first else "steered"
        result = TurnStartResult(turn=found.turn, delivery=delivery)
        return Settled(result=result, turn_id=found.turn.id)

    async def steered(
        self, _caller: Caller, _params: TurnSteerParams, row: KeyRow
    ) -> Settled[TurnSteerResult]:
        """A `turn/steer`."""
        found = await self._message(row)
        if found is None:
            return await self._still_unknown(row)
        result = TurnSteerResult(turn=found.turn)
        return Settled(result=result, turn_id=found.turn.id)

    async def begun(
        self, caller: Caller, _params: ThreadStartParams, row: KeyRow
    ) -> Settled[ThreadStartResult]:
        """A new thread."""
        return await self._new_thread(caller, row, ThreadStartResult)

    async def forked(
        self, caller: Caller, params: ThreadForkParams, row: KeyRow
    ) -> Settled[ThreadForkResult]:
        """A copy of a thread."""
        if row.thread == params.thread_id:
            return Settled()  # the row still names the source: no copy was told
        return await self._new_thread(caller, row, ThreadForkResult)

    async def _new_thread(
        self, caller: Caller, row: KeyRow, kind: type[Begun]
    ) -> Settled[Begun]:
        """There is one only once Codex has told its id."""
        found = None if row.thread is None else await self._message(row)
        if found is None or row.thread is None:
            return Settled()
        thread = self._judged(await self._way.sight.thread(caller, row.thread))
        thread = thread.model_copy(update={"last_turn_id": found.turn.id})
        return Settled(
            result=kind(thread=thread, turn=found.turn), turn_id=found.turn.id
        )

    # states

    async def stopped(
        self, _caller: Caller, params: TurnInterruptParams, _row: KeyRow
    ) -> Settled[TurnResult]:
        """An interrupt: the turn has ended, however it came to that."""
        thread_id, turn_id = params.thread_id, params.turn_id
        lease = self._way.leases.lease_of(thread_id)
        if lease is not None and lease.writer is not None:
            if lease.writer.live_turn(turn_id) is not None:
                return Settled()
        elif self._way.watch.holders([thread_id]):
            return Settled()  # history calls a turn that runs elsewhere interrupted
        turn = await self._turn(thread_id, turn_id)
        if turn is None or turn.status is TurnStatus.IN_PROGRESS:
            return Settled()
        return Settled(result=TurnResult(turn=turn), turn_id=turn.id)

    async def ended(
        self, _caller: Caller, params: BackgroundStopParams, _row: KeyRow
    ) -> Settled[BackgroundStopResult]:
        """A background command: it lives in a writer of ours, or nowhere."""
        lease = self._way.leases.lease_of(params.thread_id)
        if lease is not None:
            with lease.used() as writer:
                left = await writer.background_commands(params.thread_id)
            if any(one.item_id == params.item_id for one in left):
                return Settled()
        return Settled(result=BackgroundStopResult())

    async def goal_set(
        self, _caller: Caller, params: GoalSetParams, _row: KeyRow
    ) -> Settled[GoalResult]:
        """A goal: it is the one that was wished for."""
        goal = await self._goal(params.thread_id)
        if goal is None or goal.objective != params.objective:
            return Settled()
        return Settled(result=GoalResult(goal=goal))

    async def goal_paused(
        self, _caller: Caller, params: GoalPauseParams, _row: KeyRow
    ) -> Settled[GoalResult]:
        """It starts no turns any more."""
        goal = await self._goal(params.thread_id)
        if goal is not None and goal.status is GoalStatus.ACTIVE:
            return Settled()
        return Settled(result=GoalResult(goal=goal))

    async def goal_cleared(
        self, _caller: Caller, params: GoalClearParams, _row: KeyRow
    ) -> Settled[GoalResult]:
        """It is gone."""
        if await self._goal(params.thread_id) is not None:
            return Settled()
        return Settled(result=GoalResult(goal=None))

    async def set(
        self, caller: Caller, params: ThreadSettingsParams, _row: KeyRow
    ) -> Settled[ThreadResult]:
        """Settings: only a writer that has the thread loaded tells them."""
        folder = await self._way.folder(caller, params.cwd)
        lease = self._way.leases.lease_of(params.thread_id)
        if lease is None or lease.thread is None or lease.key != params.thread_id:
            return Settled()
        now = lease.settings
        wished = {
            "model": params.model,
            "effort": params.effort,
            "mode": params.mode,
            "sandbox": params.sandbox,
            "approval_policy": params.approval_policy,
            "cwd": folder,
        }
        if any(
            value is not None and getattr(now, name) != value
            for name, value in wished.items()
        ):
            return Settled()
        return Settled(result=ThreadResult(thread=self._judged(lease.thread)))

    async def _goal(self, thread_id: str) -> Goal | None:
        return await self._way.supervisor.reader.goal(thread_id)

    # history

    async def _still_unknown(self, row: KeyRow) -> Settled[Any]:
        """Say at least how many turns there are since (`newTurns`)."""
        if row.thread is None or row.last_turn is None:
            return Settled()
        ids = [turn.id for turn in await self._newest(row.thread)]
        known = row.last_turn in ids
        return Settled(new_turns=ids.index(row.last_turn) if known else None)

    async def _message(self, row: KeyRow) -> _Found | None:
        """Return the turn that has the row's message."""
        if row.thread is None or await self._way.ledger.key_is_shared(row):
            return None  # two devices have used one key: whose message is it?
        contents = self._way.supervisor.reader.contents
        cursor: str | None = None
        for _ in range(SETTLE_PAGES):
            page = await contents.list_items(
                row.thread, turn_id=None, cursor=cursor, limit=_PAGE, order="desc"
            )
            for item in page.items:
                if isinstance(item, UserMessage) and item.client_key == row.key:
                    return await self._with_turn(row, item)
            if (cursor := page.next_cursor) is None:
                break
        return None

    async def _with_turn(self, row: KeyRow, item: UserMessage) -> _Found | None:
        assert row.thread is not None
        turn = await self._turn(row.thread, item.turn_id)
        if turn is None:
            return None
        contents = self._way.supervisor.reader.contents
        page = await contents.list_items(
            row.thread, turn_id=turn.id, cursor=None, limit=_PAGE, order="asc"
        )
        words = [one for one in page.items if isinstance(one, UserMessage)]
        first = not words or words[0].client_key == row.key
        return _Found(turn=turn, first=first)

    async def _turn(self, thread_id: str, turn_id: str) -> Turn | None:
        """Return a turn without its items: as it runs, else as history has it."""
        lease = self._way.leases.lease_of(thread_id)
        if lease is not None and lease.writer is not None:
            live = lease.writer.live_turn(turn_id)
            if live is not None:
                return live.model_copy(update={"items": None})
        for turn in await self._newest(thread_id):
            if turn.id == turn_id:
                cut = turn.completed_at is None
                return turn.model_copy(update={"inferred": True}) if cut else turn
        return None

    async def _newest(self, thread_id: str) -> list[Turn]:
        page = await self._way.supervisor.reader.list_turns(
            thread_id, cursor=None, limit=SETTLE_TURNS, order="desc", items="none"
        )
        return [*page.turns]
