"""The one door for every mutation. Trio shell. PROTOCOL.md section 3, "The way".

Scope and ceiling → request key → look → newest turn by the reader → writer: start, look,
load → effective settings → newest turn again through the writer → `handed` on the disk →
look → act → outcome on the disk → answer. Every no is typed, and leaves nothing behind:
no row, no writer. From `handed` on the act is carried to its recorded end (`carry`).

The beginning is here; from the look on, a module for each mutation: `turn_start`,
`turn_steer`, `thread_start`, …, with what they share in `taking` and `way`.
"""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from agent.access.scopes import Caller, check_access, check_wishes
from agent.limits import SCHEMA_BYTES, TEXT_INPUT
from agent.mutations.background_commands import BackgroundCommands
from agent.mutations.patience import Patience
from agent.mutations.settling import Settling
from agent.mutations.thread_goal import ThreadGoal
from agent.mutations.thread_locks import ThreadLocks
from agent.mutations.thread_revert import ThreadRevert
from agent.mutations.thread_runs import ThreadRuns
from agent.mutations.thread_settings import SettingsChange
from agent.mutations.thread_start import ThreadStart
from agent.mutations.turn_interrupt import TurnInterrupt
from agent.mutations.turn_start import TurnStart
from agent.mutations.turn_steer import TurnSteer
from agent.mutations.way import Way
from agent.queue.message_queue import MessageQueue
from agent.records.ledger import Flight, Settle, Settled
from agent.records.store import KeyRow
from transport.errors import InvalidParams, TooLarge
from transport.protocol import background, goals, queue, reviews, thread_acts
from transport.protocol import methods as rows
from transport.protocol.base import Params, WireModel
from transport.protocol.methods import Method
from transport.protocol.threads import (
    ThreadResult,
    ThreadSettingsParams,
    ThreadStartParams,
    ThreadStartResult,
)
from transport.protocol.turns import (
    InputPart,
    TextInput,
    TurnInterruptParams,
    TurnResult,
    TurnStartParams,
    TurnStartResult,
    TurnSteerParams,
    TurnSteerResult,
)

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=WireModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Acts:
    """What each mutation does, from the look on."""

    turn_start: TurnStart
    turn_steer: TurnSteer
    turn_interrupt: TurnInterrupt
    thread_start: ThreadStart
    settings: SettingsChange
    runs: ThreadRuns
    revert: ThreadRevert
    goal: ThreadGoal
    background: BackgroundCommands
    queue: MessageQueue


@dataclass(slots=True)
class _Place:
    """Where a turn is to work, once that was looked at; None: where its thread does."""

    folder: str | None = None


class Admission:
    """Every mutation, from any caller. All of them raise `Refusal`."""

    def __init__(
        self,
        way: Way,
        acts: Acts,
        settling: Settling,
        *,
        locks: ThreadLocks | None = None,
    ) -> None:
        self._way = way
        self._settling = settling
        self._sight = way.sight
        self._ledger = way.ledger
        self._inputs = way.inputs
        self._locks = ThreadLocks() if locks is None else locks
        self._patience = Patience(keeper=way.keeper, watch=way.watch)
        self._acts = acts

    async def start_turn(
        self, caller: Caller, params: TurnStartParams
    ) -> TurnStartResult:
        """Continue a thread: with a turn, in the one that runs, or when it is free."""
        check_access(caller, rows.TURN_START)
        check_size(params.input)
        check_schema(params.output_schema)
        if params.delivery == "steer":
            _check_steers(params)
        place = _Place()

        async def prepare() -> None:
            # Before a writer is started; once more when it has said where it works.
            thread = await self._sight.thread(caller, params.thread_id)
            place.folder = await self._folder(caller, params.cwd)
            where = place.folder or thread.cwd
            await self._inputs.prepare(caller, params.input, where)

        async def attempt(flight: Flight) -> TurnStartResult:
            if params.delivery == "steer":
                steer = self._acts.turn_steer
                if (turn_id := steer.running_turn_id(params.thread_id)) is not None:
                    return await steer.run_start(caller, params, turn_id, flight)
            return await self._acts.turn_start.run(caller, params, place.folder, flight)

        async def wait(flight: Flight) -> TurnStartResult:
            await prepare()
            return await self._acts.queue.put(caller, params, flight)

        if params.delivery == "queue":
            return await self._once(caller, rows.TURN_START, params, wait)
        return await self._on_thread(
            caller,
            rows.TURN_START,
            params,
            attempt,
            prepare=prepare,
            settle=self._settling.started,
        )

    async def steer(self, caller: Caller, params: TurnSteerParams) -> TurnSteerResult:
        """Put more words into a turn that a writer of ours runs."""
        check_access(caller, rows.TURN_STEER)
        check_size(params.input)

        async def attempt(flight: Flight) -> TurnSteerResult:
            return await self._acts.turn_steer.run(caller, params, flight)

        async def prepare() -> None:
            thread = await self._sight.thread(caller, params.thread_id)
            await self._inputs.prepare(caller, params.input, thread.cwd)

        return await self._on_thread(
            caller,
            rows.TURN_STEER,
            params,
            attempt,
            prepare=prepare,
            settle=self._settling.steered,
        )

    async def start_thread(
        self, caller: Caller, params: ThreadStartParams
    ) -> ThreadStartResult:
        """Make a thread with its first turn, as one act."""
        check_access(caller, rows.THREAD_START)
        check_size(params.input)
        check_schema(params.output_schema)
        check_wishes(caller, sandbox=params.sandbox, policy=params.approval_policy)

        async def act(flight: Flight) -> ThreadStartResult:
            folder = await self._sight.folder(caller, params.cwd)
            return await self._patience.attempting(
                params.wait_ms,
                None,
                lambda: self._acts.thread_start.run(caller, params, folder, flight),
            )

        async def settle(row: KeyRow) -> Settled[ThreadStartResult]:
            return await self._settling.begun(caller, row, ThreadStartResult)

        return await self._once(caller, rows.THREAD_START, params, act, settle)

    async def change_settings(
        self, caller: Caller, params: ThreadSettingsParams
    ) -> ThreadResult:
        """Change what a thread's later turns run with."""
        check_access(caller, rows.THREAD_SETTINGS)
        _check_names_something(params)
        check_wishes(caller, sandbox=params.sandbox, policy=params.approval_policy)
        place = _Place()

        async def prepare() -> None:
            await self._sight.thread(caller, params.thread_id)
            place.folder = await self._folder(caller, params.cwd)

        async def attempt(flight: Flight) -> ThreadResult:
            return await self._acts.settings.run(caller, params, place.folder, flight)

        async def settle(row: KeyRow) -> Settled[ThreadResult]:
            folder = await self._folder(caller, params.cwd)
            return await self._settling.set(row, params, folder)

        return await self._on_thread(
            caller,
            rows.THREAD_SETTINGS,
            params,
            attempt,
            prepare=prepare,
            settle=settle,
        )

    async def compact(
        self, caller: Caller, params: thread_acts.ThreadCompactParams
    ) -> thread_acts.ThreadCompactResult:
        """Have a summary take the place of what the model has read so far."""
        check_access(caller, rows.THREAD_COMPACT)

        async def attempt(flight: Flight) -> thread_acts.ThreadCompactResult:
            return await self._acts.runs.compact(caller, params, flight)

        return await self._on_thread(
            caller,
            rows.THREAD_COMPACT,
            params,
            attempt,
            prepare=self._seen(caller, params),
        )

    async def review(
        self, caller: Caller, params: reviews.ReviewStartParams
    ) -> TurnResult:
        """Have changes reviewed in a turn of the thread."""
        check_access(caller, rows.REVIEW_START)
        _check_target(params.target)

        async def attempt(flight: Flight) -> TurnResult:
            return await self._acts.runs.review(caller, params, flight)

        return await self._on_thread(
            caller,
            rows.REVIEW_START,
            params,
            attempt,
            prepare=self._seen(caller, params),
        )

    async def revert(
        self, caller: Caller, params: thread_acts.ThreadRevertParams
    ) -> ThreadResult:
        """Take a turn and all behind it back."""
        check_access(caller, rows.THREAD_REVERT)

        async def attempt(flight: Flight) -> ThreadResult:
            return await self._acts.revert.run(caller, params, flight)

        async def settle(row: KeyRow) -> Settled[ThreadResult]:
            del row
            return Settled(result=await self._acts.revert.settled(caller, params))

        return await self._on_thread(
            caller,
            rows.THREAD_REVERT,
            params,
            attempt,
            prepare=self._seen(caller, params),
            settle=settle,
        )

    async def interrupt(
        self, caller: Caller, params: TurnInterruptParams
    ) -> TurnResult:
        """Stop a turn that a writer of ours runs; the gate may be closed."""
        check_access(caller, rows.TURN_INTERRUPT)

        async def act(flight: Flight) -> TurnResult:
            await self._sight.thread(caller, params.thread_id)
            return await self._acts.turn_interrupt.run(caller, params, flight)

        async def settle(row: KeyRow) -> Settled[TurnResult]:
            return await self._settling.stopped(row, params)

        return await self._once(caller, rows.TURN_INTERRUPT, params, act, settle)

    async def stop_background(
        self, caller: Caller, params: background.BackgroundStopParams
    ) -> background.BackgroundStopResult:
        """End a background command of a writer of ours; the gate may be closed."""
        check_access(caller, rows.BACKGROUND_STOP)

        async def act(flight: Flight) -> background.BackgroundStopResult:
            await self._sight.thread(caller, params.thread_id)
            return await self._acts.background.stop(caller, params, flight)

        async def settle(
            row: KeyRow,
        ) -> Settled[background.BackgroundStopResult]:
            return await self._settling.ended(row, params)

        return await self._once(caller, rows.BACKGROUND_STOP, params, act, settle)

    async def delete_queued(
        self, caller: Caller, params: queue.QueueDeleteParams
    ) -> queue.QueueDeleteResult:
        """Take a queued message back; the gate may be closed."""
        check_access(caller, rows.QUEUE_DELETE)

        async def act(flight: Flight) -> queue.QueueDeleteResult:
            return await self._acts.queue.delete(caller, params, flight)

        async def settle(row: KeyRow) -> Settled[queue.QueueDeleteResult]:
            return await self._acts.queue.deleted(row, params)

        return await self._once(caller, rows.QUEUE_DELETE, params, act, settle)

    async def set_goal(
        self, caller: Caller, params: goals.GoalSetParams
    ) -> goals.GoalResult:
        """Give a thread an active goal."""
        check_access(caller, rows.GOAL_SET)

        async def attempt(flight: Flight) -> goals.GoalResult:
            return await self._acts.goal.set(caller, params, flight)

        async def settle(row: KeyRow) -> Settled[goals.GoalResult]:
            return await self._settling.goal_set(row, params.objective)

        return await self._on_thread(
            caller,
            rows.GOAL_SET,
            params,
            attempt,
            prepare=self._seen(caller, params),
            settle=settle,
        )

    async def pause_goal(
        self, caller: Caller, params: goals.GoalPauseParams
    ) -> goals.GoalResult:
        """Pause a thread's goal."""
        check_access(caller, rows.GOAL_PAUSE)

        async def attempt(flight: Flight) -> goals.GoalResult:
            return await self._acts.goal.pause(caller, params, flight)

        return await self._on_thread(
            caller,
            rows.GOAL_PAUSE,
            params,
            attempt,
            prepare=self._seen(caller, params),
            settle=self._settling.goal_paused,
            ends_work=True,
        )

    async def clear_goal(
        self, caller: Caller, params: goals.GoalClearParams
    ) -> goals.GoalResult:
        """Take a thread's goal away."""
        check_access(caller, rows.GOAL_CLEAR)

        async def attempt(flight: Flight) -> goals.GoalResult:
            return await self._acts.goal.clear(caller, params, flight)

        return await self._on_thread(
            caller,
            rows.GOAL_CLEAR,
            params,
            attempt,
            prepare=self._seen(caller, params),
            settle=self._settling.goal_cleared,
        )

    async def stop_turns_of(self, device_id: str) -> list[str]:
        """Interrupt what this device started (`revoke --stop`); return the turns."""
        return await self._acts.turn_interrupt.run_for(device_id)

    def _seen(self, caller: Caller, params: Any) -> Callable[[], Awaitable[None]]:
        """Return the look whether the thread exists for the caller."""

        async def look() -> None:
            await self._sight.thread(caller, params.thread_id)

        return look

    async def _folder(self, caller: Caller, cwd: str | None) -> str | None:
        return None if cwd is None else await self._sight.folder(caller, cwd)

    async def _on_thread(
        self,
        caller: Caller,
        method: Method[P, R],
        params: Any,
        attempt: Callable[[Flight], Awaitable[R]],
        *,
        prepare: Callable[[], Awaitable[None]],
        settle: Settle[R] | None = None,
        ends_work: bool = False,
    ) -> R:
        """Run `attempt` under the lock of its thread, again while the client waits.

        `ends_work`: the gate may be closed. Else a closed one is told before the lock is
        waited for: who has it may wait for an outcome for long.
        """

        async def locked(flight: Flight) -> R:
            await prepare()
            if not ends_work and self._locks.is_taken(params.thread_id):
                self._way.guard(caller, params.thread_id)()
            async with self._locks.holding(params.thread_id):
                return await attempt(flight)

        async def act(flight: Flight) -> R:
            return await self._patience.attempting(
                params.wait_ms, params.thread_id, lambda: locked(flight)
            )

        return await self._once(caller, method, params, act, settle)

    async def _once(
        self,
        caller: Caller,
        method: Method[P, R],
        params: Any,
        act: Callable[[Flight], Awaitable[R]],
        settle: Settle[R] | None = None,
    ) -> R:
        # Before the ledger nothing may refuse what was done already: all looks are acts.
        return await self._ledger.once(
            caller,
            method.name,
            params,
            key=params.request_key,
            result=method.result,
            act=act,
            settle=settle,
            shown=self._way.shown(caller),
        )


def check_size(given: Sequence[InputPart]) -> None:
    """Raise `TooLarge` for a message above `limits.textInput`."""
    texts = (one.text for one in given if isinstance(one, TextInput))
    if sum(len(text.encode()) for text in texts) > TEXT_INPUT:
        raise TooLarge(
            f"A message may have at most {TEXT_INPUT} bytes.",
            data={"field": "input", "limit": TEXT_INPUT},
        )


def _check_target(target: reviews.ReviewTarget) -> None:
    if isinstance(target, reviews.CustomTarget) and (
        len(target.text.encode()) > TEXT_INPUT
    ):
        raise TooLarge(
            f"What to review may be said in at most {TEXT_INPUT} bytes.",
            data={"field": "target", "limit": TEXT_INPUT},
        )


def check_schema(schema: Mapping[str, Any] | None) -> None:
    """Raise `TooLarge` for an output schema above 32 KiB."""
    if schema is not None and len(json.dumps(schema)) > SCHEMA_BYTES:
        raise TooLarge(
            f"An output schema may have at most {SCHEMA_BYTES} bytes of JSON.",
            data={"field": "outputSchema", "limit": SCHEMA_BYTES},
        )


def _check_steers(params: TurnStartParams) -> None:
    """A turn that runs takes words and nothing else: what it runs with is settled."""
    for name in ("mode", "model", "effort", "cwd", "output_schema"):
        if getattr(params, name) is not None:
            raise InvalidParams(
                "What goes into a running turn is a message alone; settings go with a "
                "turn of their own.",
                data={"field": name, "reason": "not with delivery steer"},
            )


def _check_names_something(params: ThreadSettingsParams) -> None:
    named = (
        params.model,
        params.effort,
        params.mode,
        params.sandbox,
        params.approval_policy,
        params.cwd,
    )
    if not any(named):
        raise InvalidParams(
            "Name at least one setting to change.",
            data={"field": "model", "reason": "nothing is named"},
        )
