"""An in-memory runtime that a test can steer at every step. No process, no clock.

It implements `adapter.runtime` (Runtime, Reader, ThreadWriter) over a small store of
threads. Steps are named: `reader.open`, `list_threads`, `read_thread`, `list_turns`,
`pending_work`, `writer.open`, `resume`, `start_thread`, `start_turn`, `interrupt`,
`answer`, `writer.close`, `steer`, `change_settings`, `background`, `stop_background`, `goal`,
`set_goal`, `pause_goal`, `clear_goal`, `fork_thread`, `compact`, `review`, `revert`; those of the store: see
`fake_store`. `runtime.at(step, action)` runs an action when the step is
reached, before its guard; `runtime.at(step + ":done", action)` when its effect has
happened and the answer is still on the way. An action may raise, block, or change the
world. `runtime.log` holds every step that was reached.

The test plays the model: `writer.begin_item`, `writer.delta`, `writer.end_item`,
`writer.finish_turn`, `writer.ask`, `runtime.writers[n].die()`.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import isawaitable
from typing import Any

import trio

from adapter.errors import (
    ChildExitedError,
    CodexRefusedError,
    NoAnswerError,
    NotDeliveredError,
    ThreadLockedError,
    ThreadUnknownError,
    TurnUnknownError,
)
from adapter.runtime.acts import NOTHING_FILLED, Filled, Guard, InputPart, Steered
from adapter.runtime.events import Emit, Emitted, ItemClosed, ItemDelta, ItemOpened
from adapter.runtime.program import RuntimeInfo
from adapter.runtime.reader import PendingWork, ThreadPage, ThreadQuery, TurnPage
from adapter.runtime.store import HeldText, TextName
from adapter.runtime.threads import (
    NO_WISHES,
    EffectiveSettings,
    Loaded,
    NewThread,
    Wishes,
)
from tests.support.fake_store import FakeStore
from transport.background import open_background
from transport.errors import ApprovalClosed, Conflict, InvalidParams, NotFound
from transport.protocol.approvals import (
    Approval,
    ApprovalDetail,
    ApprovalKind,
    ApprovalState,
    AskedQuestion,
    Choice,
    ChoiceEffect,
)
from transport.protocol.background import BackgroundCommand
from transport.protocol.capabilities import (
    Capability,
    CapabilityStatus,
    ModelInfo,
)
from transport.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    DeltaChannel,
    EventData,
    GoalChanged,
    ThreadReverted,
    ThreadStarted,
    TurnCompleted,
    TurnStarted,
)
from transport.protocol.gateway import LeaseState
from transport.protocol.goals import Goal, GoalStatus
from transport.protocol.items import AgentMessage, Item, ItemStatus, UserMessage
from transport.protocol.reviews import ReviewTarget
from transport.protocol.threads import Thread, ThreadMode, ThreadStatus
from transport.protocol.turns import Turn, TurnStatus

Action = Callable[[], Awaitable[object] | object]
AT = 1_796_058_499_000
LAST_WORDS = "what a process logs: a prompt, a command"
MODELS = (
    ModelInfo(
        id="m-1", name="M 1", efforts=["low"], default_effort="low", is_default=True
    ),
)
CAPABILITIES = (
    Capability(
        feature="thread/list", status=CapabilityStatus.SUPPORTED, evidence="played"
    ),
    Capability(
        feature="not/here", status=CapabilityStatus.SUPPORTED, evidence="played"
    ),
    Capability(
        feature="threadLocks", status=CapabilityStatus.SUPPORTED, evidence="played"
    ),
)
CHOICES = [
    Choice(id="accept", label="Allow", effect=ChoiceEffect.ALLOW),
    Choice(
        id="acceptForSession",
        label="Allow until unloaded",
        effect=ChoiceEffect.ALLOW_FOR_SESSION,
    ),
    Choice(id="decline", label="Decline", effect=ChoiceEffect.DENY),
    Choice(id="cancel", label="Decline and stop", effect=ChoiceEffect.CANCEL),
]
ANSWERS = [
    Choice(id="answer", label="Answer", effect=ChoiceEffect.ANSWER),
    Choice(id="decline", label="Answer nothing", effect=ChoiceEffect.DENY),
]


def make_thread(thread_id: str, *, cwd: str = "/work/app", at: int = AT) -> Thread:
    """Return a thread as the reader tells it: nobody's, idle."""
    return Thread(
        id=thread_id,
        title=None,
        preview=f"preview of {thread_id}",
        cwd=cwd,
        source="cli",
        status=ThreadStatus.IDLE,
        mode=ThreadMode.STILL,
        lease=LeaseState.NONE,
        created_at=at,
        updated_at=at,
    )


def make_turn(
    turn_id: str, thread_id: str, status: TurnStatus = TurnStatus.COMPLETED
) -> Turn:
    """Return a turn of history; only a running one has no end."""
    ended = status in (TurnStatus.COMPLETED, TurnStatus.FAILED)
    return Turn(
        id=turn_id,
        thread_id=thread_id,
        status=status,
        started_at=AT,
        completed_at=AT + 1_000 if ended else None,
        items=[
            UserMessage(
                id=f"u-{turn_id}",
                turn_id=turn_id,
                status=ItemStatus.COMPLETED,
                text=f"question of {turn_id}",
            )
        ],
    )


@dataclass(slots=True)
class Stored:
    """One thread on the fake's disk. `turns` oldest first."""

    thread: Thread
    turns: list[Turn] = field(default_factory=list[Turn])
    settings: EffectiveSettings = field(
        default_factory=lambda: EffectiveSettings(
            cwd="/work/app",
            sandbox="workspace-write",
            approval_policy="on-request",
            model="gpt",
            effort=None,
        )
    )
    pending: PendingWork = field(default_factory=PendingWork)
    goal: Goal | None = None
    locked_by: int | None = None  # a foreign pid, or a writer's of ours
    hidden: set[str] = field(default_factory=set[str])  # turns only a resume shows
    texts: dict[str, dict[TextName, HeldText]] = field(
        default_factory=dict[str, dict[TextName, HeldText]]
    )  # whole, by item


class FakeRuntime:
    """Runtime over `threads`. One writer per open block, in `writers`, dead ones too."""

    def __init__(self, *, version: str = "0.163.0", locks_threads: bool = True) -> None:
        self.threads: dict[str, Stored] = {}
        self.writers: list[FakeWriter] = []
        self.readers: list[FakeReader] = []
        self.log: list[str] = []
        self.info = RuntimeInfo(
            name="codex",
            version=version,
            pid=1_000,
            home="/home/u/.codex",
            locks_threads=locks_threads,
        )
        self.keeps_keys = True  # history shows which message came with which key
        self.capabilities: tuple[Capability, ...] = CAPABILITIES
        self.decided_alone: tuple[str, ...] = ()
        self.sandbox_fault: str | None = None
        self._actions: dict[str, list[Action]] = {}
        self._count = 0

    # the test's side

    def add(self, thread_id: str, *turn_ids: str, cwd: str = "/work/app") -> Stored:
        """Put a thread with completed turns on the fake's disk."""
        stored = Stored(make_thread(thread_id, cwd=cwd))
        stored.settings = replace(stored.settings, cwd=cwd)
        stored.turns = [make_turn(turn_id, thread_id) for turn_id in turn_ids]
        self.threads[thread_id] = stored
        return stored

    def at(self, step: str, action: Action) -> None:
        """Run `action` the next time that `step` is reached; several queue up."""
        self._actions.setdefault(step, []).append(action)

    def forget_actions(self) -> None:
        """Nothing that was planned with `at` happens any more."""
        self._actions.clear()

    @property
    def live(self) -> "list[FakeWriter]":
        """Writers whose process has not been reaped."""
        return [writer for writer in self.writers if not writer.reaped]

    def own_pids(self) -> set[int]:
        """Processes of ours now alive."""
        return {writer.info.pid for writer in self.live}

    def next_id(self, prefix: str) -> str:
        """Return a fresh id."""
        self._count += 1
        return f"{prefix}-{self._count}"

    async def reach(self, step: str) -> None:
        """Log a step and run what the test put there."""
        self.log.append(step)
        actions = self._actions.get(step, [])
        if actions:
            result = actions.pop(0)()
            if isawaitable(result):
                await result

    # the Agent's side

    @asynccontextmanager
    async def open_reader(self, emit: Emit) -> "AsyncGenerator[FakeReader]":
        """Start the reader."""
        await self.reach("reader.open")
        reader = FakeReader(self, emit)
        self.readers.append(reader)
        async with open_background(partial(_until_dead, reader.died, "codex reader")):
            yield reader

    @asynccontextmanager
    async def open_writer(
        self, emit: Emit, *, guard: Guard
    ) -> "AsyncGenerator[FakeWriter]":
        """Start a writer; a process exists from the guard's yes on."""
        await self.reach("writer.open")
        guard()
        writer = FakeWriter(self, emit, pid=2_000 + len(self.writers))
        self.writers.append(writer)
        try:
            await self.reach("writer.open:done")
            ending = partial(_until_dead, writer.died, "codex writer")
            async with open_background(ending):
                yield writer
        finally:
            with trio.move_on_after(60, shield=True):
                await self.reach("writer.close")
            writer.reap()


async def _until_dead(
    died: trio.Event, name: str, *, task_status: trio.TaskStatus[None]
) -> None:
    task_status.started()
    await died.wait()
    raise ChildExitedError(name, -9, LAST_WORDS)


class FakeReader:
    """Reads the fake's disk."""

    def __init__(self, runtime: FakeRuntime, emit: Emit) -> None:
        self.info = runtime.info
        self.emit = emit
        self.died = trio.Event()
        self._runtime = runtime
        self._store = FakeStore(runtime, emit)

    @property
    def contents(self) -> FakeStore:
        return self._store

    @property
    def acts(self) -> FakeStore:
        return self._store

    def die(self) -> None:
        """End the reader's process."""
        self.died.set()

    def _stored(self, method: str, thread_id: str) -> Stored:
        try:
            return self._runtime.threads[thread_id]
        except KeyError:
            message = f"thread not loaded: {thread_id}"
            raise ThreadUnknownError(method, -32600, message) from None

    async def list_threads(self, query: ThreadQuery) -> ThreadPage:
        await self._runtime.reach("list_threads")
        rows = [stored.thread for stored in self._runtime.threads.values()]
        rows = [row for row in rows if row.archived == query.archived]
        start = _offset(query.cursor)
        end = start + query.limit
        cursor = f"c{end}" if end < len(rows) else None
        return ThreadPage(threads=tuple(rows[start:end]), next_cursor=cursor)

    async def read_thread(self, thread_id: str) -> Thread:
        await self._runtime.reach("read_thread")
        return self._stored("thread/read", thread_id).thread

    async def list_turns(
        self, thread_id: str, *, cursor: str | None, limit: int, order: str, items: str
    ) -> TurnPage:
        await self._runtime.reach("list_turns")
        stored = self._stored("thread/turns/list", thread_id)
        turns = [turn for turn in stored.turns if turn.id not in stored.hidden]
        if order == "desc":
            turns.reverse()
        if items == "none":
            turns = [turn.model_copy(update={"items": None}) for turn in turns]
        start = _offset(cursor)
        end = start + limit
        following = f"c{end}" if end < len(turns) else None
        return TurnPage(turns=tuple(turns[start:end]), next_cursor=following)

    async def pending_work(self, thread_id: str) -> PendingWork:
        await self._runtime.reach("pending_work")
        return self._stored("queue/list", thread_id).pending

    async def goal(self, thread_id: str) -> Goal | None:
        await self._runtime.reach("reader.goal")
        return self._stored("goal/get", thread_id).goal

    async def pause_goal(self, thread_id: str, *, guard: Guard | None = None) -> None:
        await self._runtime.reach("pause_goal")
        if guard is not None:
            guard()
        stored = self._stored("goal/set", thread_id)
        stored.pending = replace(stored.pending, goal=None)
        if stored.goal is not None:
            paused = {"status": GoalStatus.PAUSED}
            stored.goal = stored.goal.model_copy(update=paused)

    async def clear_goal(self, thread_id: str, *, guard: Guard) -> None:
        await self._runtime.reach("clear_goal")
        guard()
        stored = self._stored("goal/clear", thread_id)
        stored.pending = replace(stored.pending, goal=None)
        stored.goal = None

    async def list_models(self) -> tuple[ModelInfo, ...]:
        await self._runtime.reach("list_models")
        return MODELS

    async def capabilities(self) -> tuple[Capability, ...]:
        await self._runtime.reach("capabilities")
        return self._runtime.capabilities

    async def decided_alone(self) -> tuple[str, ...]:
        return self._runtime.decided_alone

    async def sandbox_fault(self) -> str | None:
        return self._runtime.sandbox_fault


def _offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor[1:].isdigit():
        raise CodexRefusedError("list", -32600, f"invalid cursor: {cursor}")
    return int(cursor[1:])


class FakeWriter:
    """One writer process. `sent`: texts that reached the model, with their key."""

    def __init__(self, runtime: FakeRuntime, emit: Emit, *, pid: int) -> None:
        self.info = replace(runtime.info, pid=pid)
        self.emit = emit
        self.died = trio.Event()
        self.reaped = False
        self.hurried = False
        self.sent: list[tuple[str, str]] = []
        self.parts: list[tuple[InputPart, ...]] = []  # of each message, whole
        self.busy_too = False  # a background command, as far as the test says
        self.hangs = False  # start_turn, steer and interrupt are never answered
        self.thinks = False  # what is steered waits for the model's next call
        self.background: list[BackgroundCommand] = []
        self.schemas: list[Mapping[str, Any] | None] = []
        self.reviewed: list[ReviewTarget] = []
        self._runtime = runtime
        self._stored: Stored | None = None
        self._known: set[str] = set()
        self._last: str | None = None
        self._turn: Turn | None = None
        self._open: dict[str, Item] = {}
        self._approvals: dict[str, Approval] = {}
        self.given: list[Filled] = []  # what went with each answer
        self.pipe = trio.Lock()
        self._filled: dict[str, Filled] = {}
        self._news = trio.Event()

    # what a test does

    def _tell(self, data: EventData) -> None:
        self.emit(Emitted(at=AT, thread_id=self.thread_id, data=data))
        self._news.set()
        self._news = trio.Event()

    def begin_item(self, item: Item) -> None:
        """Open an item of the running turn."""
        self._open[item.id] = item
        self._tell_open(item)

    def _tell_open(self, item: Item) -> None:
        assert self.thread_id is not None
        self.emit(ItemOpened(at=AT, thread_id=self.thread_id, item=item))

    def delta(
        self, item_id: str, text: str, channel: DeltaChannel = DeltaChannel.TEXT
    ) -> None:
        """Stream text of an open item."""
        assert self.thread_id is not None
        item = self._open[item_id]
        if isinstance(item, AgentMessage):
            self._open[item_id] = item.model_copy(update={"text": item.text + text})
        self.emit(
            ItemDelta(
                at=AT,
                thread_id=self.thread_id,
                item_id=item_id,
                channel=channel,
                part=0,
                text=text,
            )
        )

    def end_item(self, item: Item) -> None:
        """Close an item, whole; the disk has it from now on."""
        assert self.thread_id is not None
        self._open.pop(item.id, None)
        if self._turn is not None:
            self._turn = self._turn.model_copy(
                update={"items": [*(self._turn.items or ()), item]}
            )
        self.emit(ItemClosed(at=AT, thread_id=self.thread_id, item=item))

    def say(self, text: str) -> None:
        """Play a whole agent message: started, one delta, completed."""
        assert self._turn is not None
        message = AgentMessage(
            id=self._runtime.next_id("item"),
            turn_id=self._turn.id,
            status=ItemStatus.IN_PROGRESS,
            text="",
        )
        self.begin_item(message)
        self.delta(message.id, text)
        done = {"status": ItemStatus.COMPLETED, "text": text}
        self.end_item(message.model_copy(update=done))

    def finish_turn(self, status: TurnStatus = TurnStatus.COMPLETED) -> Turn:
        """End the running turn: open items first, then turn/completed."""
        assert self._turn is not None
        assert self._stored is not None
        for item in list(self._open.values()):
            self.end_item(item.model_copy(update={"status": ItemStatus.INTERRUPTED}))
        turn = self._turn.model_copy(
            update={"status": status, "completed_at": AT + 1_000}
        )
        self._turn = None
        began = [old for old in self._stored.turns if old.id == turn.id]
        kept = [old for old in self._stored.turns if old.id != turn.id]
        said = [item for old in began for item in old.items or ()]
        whole = turn.model_copy(update={"items": [*said, *(turn.items or ())]})
        self._stored.turns = [*kept, whole]
        self._tell(TurnCompleted(turn=turn.model_copy(update={"items": None})))
        return turn

    def ask(
        self, *, command: str = "rm -r build", expires_at: int = AT * 2
    ) -> Approval:
        """Ask for a command's approval, as Codex would."""
        detail = ApprovalDetail(command=command, cwd="/work/app")
        return self._ask(ApprovalKind.COMMAND, command, detail, CHOICES, expires_at)

    def ask_question(self, *, secret: bool = False) -> Approval:
        """Ask the person something, as Codex's model would."""
        question = AskedQuestion(
            id="q1", header="Name", text="Whose name?", secret=secret, other=True
        )
        detail = ApprovalDetail(questions=[question])
        return self._ask(ApprovalKind.QUESTION, "Whose name?", detail, ANSWERS, AT * 2)

    def _ask(
        self,
        kind: ApprovalKind,
        title: str,
        detail: ApprovalDetail,
        choices: list[Choice],
        expires_at: int,
    ) -> Approval:
        assert self.thread_id is not None
        approval = Approval(
            id=self._runtime.next_id("apr"),
            kind=kind,
            thread_id=self.thread_id,
            root_thread_id=self.thread_id,
            turn_id=self.running_turn_id,
            title=title,
            detail=detail,
            choices=choices,
            digest=self._runtime.next_id("digest"),
            created_at=AT,
            expires_at=expires_at,
            state=ApprovalState.PENDING,
        )
        self._approvals[approval.id] = approval
        self._tell(ApprovalRequested(approval=approval))
        return approval

    def resolve(
        self, approval_id: str, state: ApprovalState, *, by: str | None = None
    ) -> Approval:
        """Give an approval its one end."""
        approval = self._approvals[approval_id].model_copy(
            update={"state": state, "decided_by": by}
        )
        self._approvals[approval_id] = approval
        self._tell(ApprovalResolved(approval=approval))
        return approval

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

    # ThreadWriter

    @property
    def thread_id(self) -> str | None:
        return self._stored.thread.id if self._stored else None

    @property
    def status(self) -> ThreadStatus:
        if any(one.state is ApprovalState.PENDING for one in self._approvals.values()):
            return ThreadStatus.WAITING_ON_APPROVAL
        return ThreadStatus.RUNNING if self._turn else ThreadStatus.IDLE

    @property
    def running_turn_id(self) -> str | None:
        return self._turn.id if self._turn else None

    @property
    def last_turn_id(self) -> str | None:
        return self._last

    def status_of(self, thread_id: str) -> ThreadStatus:
        return self.status if thread_id == self.thread_id else ThreadStatus.UNKNOWN

    def running_turn_of(self, thread_id: str) -> str | None:
        return self.running_turn_id if thread_id == self.thread_id else None

    @property
    def settings(self) -> EffectiveSettings | None:
        return self._stored.settings if self._stored else None

    def knows_turn(self, turn_id: str) -> bool:
        return turn_id in self._known

    def live_turn(self, turn_id: str) -> Turn | None:
        if self._turn is None or self._turn.id != turn_id:
            return None
        items = [*(self._turn.items or ()), *self._open.values()]
        return self._turn.model_copy(update={"items": items})

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

    def stir(self) -> None:
        """Wake who waits for busy or idle, after a change of `busy_too`."""
        self._news.set()
        self._news = trio.Event()

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

    def _load(self, stored: Stored) -> None:
        self._stored = stored
        self._known = {turn.id for turn in stored.turns}
        self._last = stored.turns[-1].id if stored.turns else None

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

    def begin_turn(self, parts: Sequence[InputPart], *, client_key: str) -> Turn:
        """Start a turn at once (a test calls this for others' queued messages too)."""
        assert self._stored is not None
        self.parts.append(tuple(parts))
        self.sent.extend((part, client_key) for part in parts if isinstance(part, str))
        turn_id = self._runtime.next_id("turn")
        turn = make_turn(turn_id, self._stored.thread.id, TurnStatus.IN_PROGRESS)
        self._turn = turn.model_copy(update={"items": []})
        self._known.add(turn_id)
        self._last = turn_id
        key = client_key if self._runtime.keeps_keys else None
        said = [
            item.model_copy(update={"client_key": key}) for item in turn.items or ()
        ]
        interrupted = turn.model_copy(
            update={"status": TurnStatus.INTERRUPTED, "items": said}
        )
        self._stored.turns.append(interrupted)  # how history tells a running turn
        self._runtime.threads.setdefault(self._stored.thread.id, self._stored)
        self._tell(TurnStarted(turn=self._turn.model_copy(update={"items": None})))
        return self._turn

    def _wish(self, wishes: Wishes) -> None:
        assert self._stored is not None
        named = {
            name: value
            for name in ("model", "effort", "mode", "cwd", "sandbox", "approval_policy")
            if (value := getattr(wishes, name)) is not None
        }
        self._stored.settings = replace(self._stored.settings, **named)

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

    @property
    def at_work(self) -> bool:
        return self.busy

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

    def approvals(self) -> Sequence[Approval]:
        return [
            one
            for one in self._approvals.values()
            if one.state in (ApprovalState.PENDING, ApprovalState.ANSWERING)
        ]

    def check_answer(
        self,
        approval_id: str,
        *,
        digest: str,
        choice: str,
        filled: Filled = NOTHING_FILLED,
    ) -> None:
        approval = self._approvals.get(approval_id)
        if approval is None:
            raise NotFound("no such approval", data={"kind": "approval"})
        if approval.digest != digest:
            raise Conflict("another text was shown", data={"what": "digest"})
        effects = {one.id: one.effect for one in approval.choices}
        if choice not in effects:
            raise InvalidParams("not offered", data={"field": "choice"})
        answers = effects[choice] is ChoiceEffect.ANSWER
        if answers is (filled == NOTHING_FILLED):
            raise InvalidParams("it does not fit", data={"field": "answers"})

    async def answer(
        self,
        approval_id: str,
        *,
        digest: str,
        choice: str,
        decided_by: str,
        filled: Filled = NOTHING_FILLED,
        guard: Guard | None = None,
    ) -> Approval:
        async with self.pipe:  # it is waited for, then it is decided
            pass
        if guard is not None:
            guard()
        approval = self._approvals.get(approval_id)
        if approval is not None and approval.state is not ApprovalState.PENDING:
            same = (approval.decided_by, approval.choice) == (decided_by, choice)
            if same and self._filled.get(approval_id) == filled:
                return approval
            raise ApprovalClosed("answered", data={"approval": approval.wire()})
        self.check_answer(approval_id, digest=digest, choice=choice, filled=filled)
        assert approval is not None
        self._filled[approval_id] = filled
        self.given.append(filled)
        state = {"state": ApprovalState.ANSWERING, "choice": choice}
        self._approvals[approval_id] = approval.model_copy(
            update={**state, "decided_by": decided_by, "sent": True}
        )
        await self._runtime.reach("answer")
        if self._approvals[approval_id].state is ApprovalState.ANSWERING:
            self.resolve(approval_id, ApprovalState.ANSWERED, by=decided_by)
        return self._approvals[approval_id]
