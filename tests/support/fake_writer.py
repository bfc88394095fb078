"""A writer of the fake runtime: what `adapter.runtime.ThreadWriter` wants. Steps as in `fake_runtime`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import trio

from adapter.errors import (
    CodexRefusedError,
    NoAnswerError,
    NotDeliveredError,
    ThreadLockedError,
    ThreadUnknownError,
    TurnUnknownError,
)
from adapter.runtime.acts import Guard, InputPart, Steered
from adapter.runtime.events import Emit
from adapter.runtime.threads import (
    NO_WISHES,
    EffectiveSettings,
    Loaded,
    NewThread,
    Wishes,
)
from tests.support.fake_approvals import FakeApprovals
from tests.support.fake_threads import AT, Stored, make_thread
from transport.errors import NotFound
from transport.protocol.approvals import (
    ApprovalState,
)
from transport.protocol.background import BackgroundCommand
from transport.protocol.events import (
    GoalChanged,
    ThreadReverted,
    ThreadStarted,
)
from transport.protocol.goals import Goal, GoalStatus
from transport.protocol.reviews import ReviewTarget
from transport.protocol.threads import ThreadStatus
from transport.protocol.turns import Turn, TurnStatus

if TYPE_CHECKING:
    from tests.support.fake_runtime import FakeRuntime


class FakeWriter(FakeApprovals):
    """One writer process."""

    def __init__(self, runtime: FakeRuntime, emit: Emit, *, pid: int) -> None:
        super().__init__(runtime, emit)
        self.info = replace(runtime.info, pid=pid)
        self.died = trio.Event()
        self.reaped = False
        self.hurried = False
        self.busy_too = False  # a background command, as far as the test says
        self.hangs = False  # start_turn, steer and interrupt are never answered
        self.thinks = False  # what is steered waits for the model's next call
        self.background: list[BackgroundCommand] = []
        self.schemas: list[Mapping[str, Any] | None] = []
        self.reviewed: list[ReviewTarget] = []

    def die(self) -> None:
        """End the process by itself: what was open is closed, then the block ends."""
        for approval in self.approvals():
            self.resolve(approval.id, ApprovalState.WITHDRAWN)
        if self._turn is not None:
            self.finish_turn(TurnStatus.INTERRUPTED)
        self.died.set()

    def reap(self) -> None:
        """The process is gone; its lock with it."""
        if self._stored is not None and self._stored.locked_by == self.info.pid:
            self._stored.locked_by = None
        self.reaped = True

    @property
    def status(self) -> ThreadStatus:
        if any(one.state is ApprovalState.PENDING for one in self._approvals.values()):
            return ThreadStatus.WAITING_ON_APPROVAL
        return ThreadStatus.RUNNING if self._turn else ThreadStatus.IDLE

    def status_of(self, thread_id: str) -> ThreadStatus:
        return self.status if thread_id == self.thread_id else ThreadStatus.UNKNOWN

    def running_turn_of(self, thread_id: str) -> str | None:
        return self.running_turn_id if thread_id == self.thread_id else None

    @property
    def settings(self) -> EffectiveSettings | None:
        return self._stored.settings if self._stored else None

    @property
    def busy(self) -> bool:
        goal = self._stored.goal if self._stored else None
        pursues = goal is not None and goal.status is GoalStatus.ACTIVE
        return (
            self._turn is not None
            or bool(self.approvals())
            or bool(self.background)
            or pursues
            or self.busy_too
        )

    @property
    def at_work(self) -> bool:
        return self.busy

    async def wait_idle(self) -> None:
        while self.busy:
            await self._news.wait()

    async def wait_busy(self) -> None:
        while not self.busy:
            await self._news.wait()

    def hurry(self) -> None:
        self.hurried = True

    async def resume(self, thread_id: str, *, guard: Guard) -> Loaded:
        await self._runtime.reach("resume")
        guard()
        stored = self._runtime.threads.get(thread_id)
        if stored is None:
            message = f"no rollout found for thread id {thread_id}"
            raise ThreadUnknownError("thread/resume", -32600, message)
        locks = self.info.locks_threads
        if locks and stored.locked_by not in (None, self.info.pid):
            message = f"thread {thread_id} already has an active writer"
            raise ThreadLockedError("thread/resume", -32600, message)
        stored.locked_by = self.info.pid
        stored.hidden.clear()
        self._load(stored)
        await self._runtime.reach("resume:done")
        return self._loaded(stored)

    async def start_thread(self, new: NewThread, *, guard: Guard) -> Loaded:
        await self._runtime.reach("start_thread")
        guard()
        thread_id = self._runtime.next_id("thr")
        stored = Stored(make_thread(thread_id, cwd=new.cwd))
        stored.settings = replace(
            stored.settings,
            cwd=new.cwd,
            sandbox=new.sandbox or stored.settings.sandbox,
            approval_policy=new.approval_policy or stored.settings.approval_policy,
        )
        stored.locked_by = self.info.pid
        self._load(stored)  # on the disk only with its first turn
        await self._runtime.reach("start_thread:done")
        self._tell(ThreadStarted(thread=stored.thread))
        return self._loaded(stored)

    async def fork_thread(
        self,
        thread_id: str,
        *,
        through: str | None,
        before: str | None,
        guard: Guard,
        stored: Callable[[str], Awaitable[None]],
    ) -> Loaded:
        await self._runtime.reach("fork_thread")
        guard()
        source = self._runtime.threads[thread_id]
        ids = [turn.id for turn in source.turns]
        wanted = through or before
        if wanted is not None and wanted not in ids:
            raise TurnUnknownError("thread/fork", -32600, f"turn not found: {wanted}")
        end = len(ids) if wanted is None else ids.index(wanted) + (before is None)
        fork_id = self._runtime.next_id("fork")
        copy = Stored(
            source.thread.model_copy(
                update={"id": fork_id, "forked_from_id": thread_id, "title": None}
            )
        )
        copy.settings = source.settings
        copy.turns = list(source.turns[:end])
        copy.locked_by = self.info.pid
        self._runtime.threads[fork_id] = copy
        await self._runtime.reach("fork_thread:made")
        await stored(fork_id)
        self._load(copy)
        await self._runtime.reach("fork_thread:done")
        return self._loaded(copy)

    def _loaded(self, stored: Stored) -> Loaded:
        last = stored.turns[-1] if stored.turns else None
        return Loaded(thread=stored.thread, settings=stored.settings, last_turn=last)

    async def start_turn(
        self,
        parts: Sequence[InputPart],
        *,
        client_key: str,
        guard: Guard,
        wishes: Wishes = NO_WISHES,
        output_schema: Mapping[str, Any] | None = None,
    ) -> Turn:
        await self._runtime.reach("start_turn")
        if self.reaped:
            raise NotDeliveredError("turn/start")
        guard()
        if self.hangs:
            raise NoAnswerError("turn/start")
        self.schemas.append(output_schema)
        self._wish(wishes)
        turn = self.begin_turn(parts, client_key=client_key)
        await self._runtime.reach("start_turn:done")
        return turn

    async def steer(
        self, turn_id: str, parts: Sequence[InputPart], *, client_key: str, guard: Guard
    ) -> Steered:
        await self._runtime.reach("steer")
        if self.reaped:
            raise NotDeliveredError("turn/steer")
        guard()
        if self.hangs:
            raise NoAnswerError("turn/steer")
        if self._turn is None or self._turn.id != turn_id:
            message = f"expected active turn id `{turn_id}` but found another"
            raise CodexRefusedError("turn/steer", -32600, message)
        self.parts.append(tuple(parts))
        self.sent.extend((part, client_key) for part in parts if isinstance(part, str))
        turn = self._turn
        await self._runtime.reach("steer:done")
        return Steered(turn=turn, pending=self.thinks)

    async def compact(self, *, guard: Guard) -> Turn:
        await self._runtime.reach("compact")
        guard()
        if self.hangs:
            raise NoAnswerError("thread/compact/start")
        turn = self.begin_turn([], client_key="")
        await self._runtime.reach("compact:done")
        return turn

    async def review(self, target: ReviewTarget, *, guard: Guard) -> Turn:
        await self._runtime.reach("review")
        guard()
        if self.hangs:
            raise NoAnswerError("review/start")
        self.reviewed.append(target)
        turn = self.begin_turn([], client_key="")
        await self._runtime.reach("review:done")
        return turn

    async def revert(self, before: str, *, left: str, guard: Guard) -> None:
        await self._runtime.reach("revert")
        assert self._stored is not None
        guard()
        if self.hangs:
            raise NoAnswerError("thread/revert")
        ids = [turn.id for turn in self._stored.turns]
        if before not in ids:
            raise TurnUnknownError("thread/revert", -32600, f"turn not found: {before}")
        del self._stored.turns[ids.index(before) :]
        self._load(self._stored)
        assert self._last == left
        thread_id = self._stored.thread.id
        self._tell(ThreadReverted(thread_id=thread_id, last_turn_id=left))
        await self._runtime.reach("revert:done")

    async def change_settings(
        self, wishes: Wishes, *, guard: Guard
    ) -> EffectiveSettings:
        await self._runtime.reach("change_settings")
        guard()
        self._wish(wishes)
        await self._runtime.reach("change_settings:done")
        assert self._stored is not None
        return self._stored.settings

    def _wish(self, wishes: Wishes) -> None:
        assert self._stored is not None
        named = {
            name: value
            for name in ("model", "effort", "mode", "cwd", "sandbox", "approval_policy")
            if (value := getattr(wishes, name)) is not None
        }
        self._stored.settings = replace(self._stored.settings, **named)

    async def interrupt(self, turn_id: str, *, background: bool = False) -> Turn:
        await self._runtime.reach("interrupt")
        if self.hangs:
            raise NoAnswerError("turn/interrupt")
        if self.running_turn_id != turn_id:
            message = "no active turn to interrupt"
            raise CodexRefusedError("turn/interrupt", -32600, message)
        for approval in self.approvals():
            self.resolve(approval.id, ApprovalState.WITHDRAWN)
        turn = self.finish_turn(TurnStatus.INTERRUPTED)
        if background:
            self.background = []
        await self._runtime.reach("interrupt:done")
        return turn

    async def background_commands(self, thread_id: str) -> Sequence[BackgroundCommand]:
        await self._runtime.reach("background")
        return [*self.background]

    async def stop_background(self, thread_id: str, item_id: str) -> None:
        await self._runtime.reach("stop_background")
        kept = [one for one in self.background if one.item_id != item_id]
        if len(kept) == len(self.background):
            raise NotFound("no such command", data={"kind": "command", "id": item_id})
        self.background = kept
        self.stir()

    def put_in_background(self, item_id: str, command: str = "sleep 600") -> None:
        """A command outlives its turn."""
        assert self.thread_id is not None
        self.background.append(
            BackgroundCommand(
                item_id=item_id,
                thread_id=self.thread_id,
                command=command,
                cwd="/work/app",
                started_at=AT,
            )
        )
        self.stir()

    async def goal(self) -> Goal | None:
        await self._runtime.reach("goal")
        return self._stored.goal if self._stored else None

    async def set_goal(self, objective: str, *, guard: Guard) -> Goal:
        await self._runtime.reach("set_goal")
        guard()
        assert self._stored is not None
        self._stored.goal = Goal(objective=objective, status=GoalStatus.ACTIVE)
        self._tell(GoalChanged(goal=self._stored.goal))
        return self._stored.goal

    async def pause_goal(self, *, guard: Guard | None = None) -> None:
        await self._runtime.reach("writer.pause_goal")
        if guard is not None:
            guard()
        assert self._stored is not None
        self._stored.pending = replace(self._stored.pending, goal=None)
        if self._stored.goal is not None:
            paused = {"status": GoalStatus.PAUSED}
            self._stored.goal = self._stored.goal.model_copy(update=paused)
        self._tell(GoalChanged(goal=self._stored.goal))

    async def clear_goal(self, *, guard: Guard) -> None:
        await self._runtime.reach("writer.clear_goal")
        guard()
        assert self._stored is not None
        self._stored.goal = None
        self._tell(GoalChanged(goal=None))
