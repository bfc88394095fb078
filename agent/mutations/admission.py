"""The one door for every mutation. Trio shell. PROTOCOL.md section 3, "The way".

Scope and ceiling → request key → look → newest turn by the reader → writer: start, look,
load → effective settings → newest turn again through the writer → `handed` on the disk →
look → act → outcome on the disk → answer. Every no is typed, and leaves nothing behind:
no row, no writer. From `handed` on the act is carried to its recorded end (`carry`).

What all have in common up to the look is `passage`. From there on a module for each:
`turn_start`, `turn_steer`, `thread_start`, …, with what they share in `taking` and `way`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from agent.access.scopes import Caller
from agent.mutations.background_commands import BackgroundCommands
from agent.mutations.outcomes import Outcomes
from agent.mutations.passage import Mutation, Passage
from agent.mutations.thread_acts import ThreadActs
from agent.mutations.thread_fork import ThreadFork, check_thread_fork
from agent.mutations.thread_goal import ThreadGoal
from agent.mutations.thread_revert import ThreadRevert
from agent.mutations.thread_runs import ThreadRuns, check_review_start
from agent.mutations.thread_settings import SettingsChange, check_settings_change
from agent.mutations.thread_start import ThreadStart, check_thread_start
from agent.mutations.thread_wishes import Wish
from agent.mutations.turn_interrupt import TurnInterrupt
from agent.mutations.turn_start import TurnStart, check_turn_start
from agent.mutations.turn_steer import TurnSteer, check_turn_steer
from agent.queue.message_queue import MessageQueue
from transport.protocol import background, goals, methods, queue, reviews, thread_acts
from transport.protocol.base import ThreadMutationParams, WireModel
from transport.protocol.threads import (
    ThreadResult,
    ThreadSettingsParams,
    ThreadStartParams,
    ThreadStartResult,
)
from transport.protocol.turns import (
    TurnInterruptParams,
    TurnResult,
    TurnStartParams,
    TurnStartResult,
    TurnSteerParams,
    TurnSteerResult,
)

P = TypeVar("P", bound=ThreadMutationParams)
R = TypeVar("R", bound=WireModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Acts:
    """What each mutation does, from the look on."""

    turn_start: TurnStart
    turn_steer: TurnSteer
    turn_interrupt: TurnInterrupt
    thread_start: ThreadStart
    thread_fork: ThreadFork
    thread_acts: ThreadActs
    settings: SettingsChange
    runs: ThreadRuns
    revert: ThreadRevert
    goal: ThreadGoal
    background: BackgroundCommands
    queue: MessageQueue


class Admission:
    """Every mutation, from any caller. All of them raise `Refusal`."""

    def __init__(self, passage: Passage, acts: Acts, outcomes: Outcomes) -> None:
        self._passage = passage
        self._acts = acts
        self._outcomes = outcomes

    async def start_turn(
        self, caller: Caller, params: TurnStartParams
    ) -> TurnStartResult:
        """Continue a thread: with a turn, in the one that runs, or when it is free."""
        if params.delivery == "queue":
            return await self._queue_turn(caller, params)
        mutation = Mutation(
            method=methods.TURN_START,
            check=check_turn_start,
            look=self._acts.turn_start.look,
            run=self._acts.turn_start.run,
            settled=self._outcomes.started,
        )
        return await self._passage.go(caller, params, mutation)

    async def _queue_turn(
        self, caller: Caller, params: TurnStartParams
    ) -> TurnStartResult:
        mutation = Mutation(
            method=methods.TURN_START,
            check=check_turn_start,
            look=self._acts.turn_start.look,
            run=self._acts.queue.put,
            waits=False,
            locks=False,
        )
        return await self._passage.go(caller, params, mutation)

    async def steer(self, caller: Caller, params: TurnSteerParams) -> TurnSteerResult:
        """Put more words into a turn that a writer of ours runs."""
        mutation = Mutation(
            method=methods.TURN_STEER,
            check=check_turn_steer,
            look=self._acts.turn_steer.look,
            run=self._acts.turn_steer.run,
            settled=self._outcomes.steered,
        )
        return await self._passage.go(caller, params, mutation)

    async def start_thread(
        self, caller: Caller, params: ThreadStartParams
    ) -> ThreadStartResult:
        """Make a thread with its first turn, as one act."""
        mutation = Mutation(
            method=methods.THREAD_START,
            check=check_thread_start,
            run=self._acts.thread_start.run,
            settled=self._outcomes.begun,
        )
        return await self._passage.go(caller, params, mutation)

    async def fork(
        self, caller: Caller, params: thread_acts.ThreadForkParams
    ) -> thread_acts.ThreadForkResult:
        """Go on from a copy of a thread, as one act."""
        mutation = Mutation(
            method=methods.THREAD_FORK,
            check=check_thread_fork,
            look=self._acts.thread_fork.look,
            run=self._acts.thread_fork.run,
            settled=self._outcomes.forked,
            locks=False,
        )
        return await self._passage.go(caller, params, mutation)

    async def fulfil(self, caller: Caller, wish: Wish[P, R], params: P) -> R:
        """Rename, archive, unarchive or delete a thread."""
        act = self._acts.thread_acts.act(wish)
        mutation = Mutation(
            method=wish.method,
            check=act.check,
            run=act.run,
            settled=act.settled,
            leaves_nothing=wish.leaves_nothing,
        )
        return await self._passage.go(caller, params, mutation)

    async def change_settings(
        self, caller: Caller, params: ThreadSettingsParams
    ) -> ThreadResult:
        """Change what a thread's later turns run with."""
        mutation = Mutation(
            method=methods.THREAD_SETTINGS,
            check=check_settings_change,
            run=self._acts.settings.run,
            settled=self._outcomes.set,
        )
        return await self._passage.go(caller, params, mutation)

    async def compact(
        self, caller: Caller, params: thread_acts.ThreadCompactParams
    ) -> thread_acts.ThreadCompactResult:
        """Have a summary take the place of what the model has read so far."""
        runs = self._acts.runs
        mutation = Mutation(method=methods.THREAD_COMPACT, run=runs.compact)
        return await self._passage.go(caller, params, mutation)

    async def review(
        self, caller: Caller, params: reviews.ReviewStartParams
    ) -> TurnResult:
        """Have changes reviewed in a turn of the thread."""
        mutation = Mutation(
            method=methods.REVIEW_START,
            check=check_review_start,
            run=self._acts.runs.review,
        )
        return await self._passage.go(caller, params, mutation)

    async def revert(
        self, caller: Caller, params: thread_acts.ThreadRevertParams
    ) -> ThreadResult:
        """Take a turn and all behind it back."""
        mutation = Mutation(
            method=methods.THREAD_REVERT,
            run=self._acts.revert.run,
            settled=self._acts.revert.settled,
        )
        return await self._passage.go(caller, params, mutation)

    async def interrupt(
        self, caller: Caller, params: TurnInterruptParams
    ) -> TurnResult:
        """Stop a turn that a writer of ours runs; the gate may be closed."""
        mutation = Mutation(
            method=methods.TURN_INTERRUPT,
            run=self._acts.turn_interrupt.run,
            settled=self._outcomes.stopped,
            waits=False,
            locks=False,
            only_ends=True,
        )
        return await self._passage.go(caller, params, mutation)

    async def stop_background(
        self, caller: Caller, params: background.BackgroundStopParams
    ) -> background.BackgroundStopResult:
        """End a background command of a writer of ours; the gate may be closed."""
        mutation = Mutation(
            method=methods.BACKGROUND_STOP,
            run=self._acts.background.stop,
            settled=self._outcomes.ended,
            waits=False,
            locks=False,
            only_ends=True,
        )
        return await self._passage.go(caller, params, mutation)

    async def delete_queued(
        self, caller: Caller, params: queue.QueueDeleteParams
    ) -> queue.QueueDeleteResult:
        """Take a queued message back; the gate may be closed."""
        mutation = Mutation(
            method=methods.QUEUE_DELETE,
            run=self._acts.queue.delete,
            settled=self._acts.queue.deleted,
            waits=False,
            only_ends=True,
        )
        return await self._passage.go(caller, params, mutation)

    async def set_goal(
        self, caller: Caller, params: goals.GoalSetParams
    ) -> goals.GoalResult:
        """Give a thread an active goal."""
        mutation = Mutation(
            method=methods.GOAL_SET,
            run=self._acts.goal.set,
            settled=self._outcomes.goal_set,
        )
        return await self._passage.go(caller, params, mutation)

    async def pause_goal(
        self, caller: Caller, params: goals.GoalPauseParams
    ) -> goals.GoalResult:
        """Pause a thread's goal; where our writer has it, the gate may be closed."""
        mutation = Mutation(
            method=methods.GOAL_PAUSE,
            run=self._acts.goal.pause,
            settled=self._outcomes.goal_paused,
            ends_work=True,
        )
        return await self._passage.go(caller, params, mutation)

    async def clear_goal(
        self, caller: Caller, params: goals.GoalClearParams
    ) -> goals.GoalResult:
        """Take a thread's goal away."""
        mutation = Mutation(
            method=methods.GOAL_CLEAR,
            run=self._acts.goal.clear,
            settled=self._outcomes.goal_cleared,
        )
        return await self._passage.go(caller, params, mutation)

    def goals_of(self, device_id: str) -> dict[str, Callable[[], Awaitable[None]]]:
        """Return the goals of this device that would begin turns, each with its end."""
        return self._acts.turn_interrupt.goals_of(device_id)

    def stops_of(self, device_id: str) -> dict[str, Callable[[], Awaitable[None]]]:
        """Return the turns that this device started and that run, each with its end."""
        return self._acts.turn_interrupt.stops_of(device_id)
