"""The seam: what every runtime offers the Agent, in v2 vocabulary. Sans-IO (protocols).

One *reader* that never loads a thread, and a *writer* for each thread that we write to
(PROTOCOL.md section 3). Both tell what happens through `Emit`: a plain call that must
not block, so that a slow client never holds back the runtime's output.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from adapter.runtime_store import HeldText, StoreActs, StoreContents, TextName
from transport.protocol.approvals import Approval
from transport.protocol.background import BackgroundCommand
from transport.protocol.capabilities import Capability, ModelInfo
from transport.protocol.events import DeltaChannel, EventData
from transport.protocol.goals import Goal
from transport.protocol.items import Item
from transport.protocol.reviews import ReviewTarget
from transport.protocol.threads import Thread, ThreadStatus
from transport.protocol.turns import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """A whole-object event. `at` in ms; `root_thread_id` only for sub-agents.

    `public`: what devices are told instead of `data`, where that is for the workstation.
    """

    at: int
    thread_id: str | None
    root_thread_id: str | None = None
    data: EventData
    public: EventData | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemOpened:
    """An item began. The journal gives it its `ref`."""

    at: int
    thread_id: str
    root_thread_id: str | None = None
    item: Item


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemClosed:
    """An item ended. `whole`: those of its texts that are cut in `item`."""

    at: int
    thread_id: str
    root_thread_id: str | None = None
    item: Item
    whole: Mapping[TextName, HeldText] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDelta:
    """More text of an open item. `part`: summary or content index, else 0."""

    at: int
    thread_id: str
    root_thread_id: str | None = None
    item_id: str
    channel: DeltaChannel
    part: int
    text: str


RuntimeEvent = Emitted | ItemOpened | ItemClosed | ItemDelta
Emit = Callable[[RuntimeEvent], None]

Guard = Callable[[], None]
"""Called right before an act's bytes are written, with no checkpoint in between.

It looks at the world once more and raises (a `Refusal`) to stop the act; then nothing
has been sent and the exception passes through unchanged.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeInfo:
    """Which program runs. `locks_threads`: it takes Codex's per-thread writer lock."""

    name: str
    version: str
    pid: int
    home: str
    locks_threads: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveSettings:
    """A loaded thread's settings as the runtime answered, compared with the ceiling.

    `sandbox`: read-only, workspace-write, danger-full-access, or the runtime's own word
    where it is none of these (which no ceiling contains).
    """

    cwd: str
    sandbox: str
    approval_policy: str
    model: str | None
    effort: str | None
    mode: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """Settings that a client asks for, from now on. What is `None` is not sent at all."""

    model: str | None = None
    effort: str | None = None
    mode: str | None = None
    cwd: str | None = None
    sandbox: str | None = None
    approval_policy: str | None = None


NO_WISHES: Final = Wishes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Steered:
    """A message that went into a running turn. `pending`: Codex has it, and the model
    takes it with its next call."""

    turn: Turn
    pending: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What loading a thread told: the thread, its settings, its newest turn."""

    thread: Thread
    settings: EffectiveSettings
    last_turn: Turn | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingWork:
    """What a resume would start by itself: others' queued messages, an active goal."""

    queue: tuple[str, ...] = ()
    goal: str | None = None

    def __bool__(self) -> bool:
        return bool(self.queue) or self.goal is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadQuery:
    """What `thread/list` asks for. `sort`: updatedAt or createdAt, newest first."""

    archived: bool = False
    cwd: str | None = None
    query: str | None = None
    sort: str = "updatedAt"
    parent_id: str | None = None
    cursor: str | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadPage:
    """A page of threads; no `next_cursor` is the end."""

    threads: tuple[Thread, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPage:
    """A page of turns; no `next_cursor` is the end."""

    turns: tuple[Turn, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewThread:
    """Parameters of a thread start; what is `None` is not sent at all."""

    cwd: str
    name: str | None = None
    model: str | None = None
    effort: str | None = None
    sandbox: str | None = None
    approval_policy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalImage:
    """A picture of the person, in a file of the Agent's own. `path` is absolute."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMention:
    """A file inside the thread's folder: `name` as the person wrote it, relative."""

    name: str
    path: str


InputPart = str | LocalImage | FileMention
"""One part of a message: text, or what only the Agent may name by its path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """What a person filled in, for a choice whose effect is `answer`.

    `answers`: texts by the id of a question. `content`: a form's values by field.
    """

    answers: Mapping[str, Sequence[str]] | None = None
    content: Mapping[str, Any] | None = None


NOTHING_FILLED: Final = Filled()


class Reader(Protocol):
    """Reads the runtime's store. Loads no thread, takes no lock, runs nothing.

    Every method raises `AdapterError`; `ThreadUnknownError` where the thread is not
    there. A read that fails in a way known to pass is tried again before.
    """

    info: RuntimeInfo

    @property
    def contents(self) -> StoreContents:
        """What threads hold: items, texts, and looking for words."""
        ...

    @property
    def acts(self) -> StoreActs:
        """The acts that need no loaded thread. They are the reader's only writes."""
        ...

    async def list_threads(self, query: ThreadQuery) -> ThreadPage:
        """Return one page of threads of all providers and interactive sources."""
        ...

    async def read_thread(self, thread_id: str) -> Thread:
        """Return one thread without its turns."""
        ...

    async def list_turns(
        self, thread_id: str, *, cursor: str | None, limit: int, order: str, items: str
    ) -> TurnPage:
        """Return one page of turns. `order` desc/asc; `items` none/summary/full."""
        ...

    async def pending_work(self, thread_id: str) -> PendingWork:
        """Return what a resume would start by itself."""
        ...

    async def goal(self, thread_id: str) -> Goal | None:
        """Return the thread's goal."""
        ...

    async def pause_goal(self, thread_id: str, *, guard: Guard | None = None) -> None:
        """Pause the thread's active goal; nothing where there is none."""
        ...

    async def clear_goal(self, thread_id: str, *, guard: Guard) -> None:
        """Take the thread's goal away; nothing where there is none."""
        ...

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """Return the models that the runtime offers, the hidden ones left out."""
        ...

    async def capabilities(self) -> tuple[Capability, ...]:
        """Return what this runtime offers, as it says itself when it is asked."""
        ...

    async def decided_alone(self) -> tuple[str, ...]:
        """Return what in the owner's configuration decides approvals by itself."""
        ...

    async def sandbox_fault(self) -> str | None:
        """Run `true` in a sandbox; return why that failed, `None` where it did not."""
        ...


class ThreadWriter(Protocol):
    """One app-server of our own for one thread; sub-agents live in it too."""

    info: RuntimeInfo

    @property
    def thread_id(self) -> str | None:
        """The thread that is loaded, once it is."""
        ...

    @property
    def status(self) -> ThreadStatus:
        """What the loaded thread does now."""
        ...

    @property
    def running_turn_id(self) -> str | None:
        """The root thread's running turn."""
        ...

    @property
    def last_turn_id(self) -> str | None:
        """The newest turn that this writer loaded or ran."""
        ...

    def status_of(self, thread_id: str) -> ThreadStatus:
        """Return what this thread does: the loaded one, or a sub-agent's below it."""
        ...

    def running_turn_of(self, thread_id: str) -> str | None:
        """Return the running turn of the loaded thread, or of a sub-agent's below it."""
        ...

    @property
    def settings(self) -> EffectiveSettings | None:
        """The loaded thread's settings as they are now, once it is loaded."""
        ...

    def knows_turn(self, turn_id: str) -> bool:
        """Whether this writer loaded or ran that turn."""
        ...

    def live_turn(self, turn_id: str) -> Turn | None:
        """Return a turn that runs here, with its items so far; it overrides history."""
        ...

    @property
    def busy(self) -> bool:
        """A turn, open item, pending approval, active goal, unanswered request, or a
        background command, in children too; or the login shell's snapshot still runs."""
        ...

    @property
    def at_work(self) -> bool:
        """A turn, open item, pending approval, active goal or background command, in
        children too: what an act on the whole thread would cut short."""
        ...

    async def wait_idle(self) -> None:
        """Return when not busy."""
        ...

    async def wait_busy(self) -> None:
        """Return when busy."""
        ...

    def hurry(self) -> None:
        """End fast from now on: leaving the block no longer waits for the login shell
        of Codex's snapshot (else up to 10 s). For a closing gate or a shutdown."""
        ...

    async def resume(self, thread_id: str, *, guard: Guard) -> Loaded:
        """Load the thread: takes Codex's lock.

        Raises: ThreadLockedError, ThreadUnknownError, other AdapterError, what `guard`
        raises.
        """
        ...

    async def start_thread(self, new: NewThread, *, guard: Guard) -> Loaded:
        """Make a new thread (nothing is stored until its first turn)."""
        ...

    async def fork_thread(
        self,
        thread_id: str,
        *,
        through: str | None,
        before: str | None,
        guard: Guard,
        stored: Callable[[str], Awaitable[None]],
    ) -> Loaded:
        """Make a copy of a thread, up to and with a turn, or up to before one.

        The copy is stored at once; the other thread is left as it is. `stored` gets its
        id before anything else can fail. Raises: TurnUnknownError, other AdapterError,
        what `guard` or `stored` raises.
        """
        ...

    async def start_turn(
        self,
        parts: Sequence[InputPart],
        *,
        client_key: str,
        guard: Guard,
        wishes: Wishes = NO_WISHES,
        output_schema: Mapping[str, Any] | None = None,
    ) -> Turn:
        """Start a turn and wait until it is proved to run (10 s).

        `wishes` (model, effort, mode, cwd) hold for later turns too, `output_schema`
        for this one.
        Proof: `turn/started` with the answered id, or our key in a userMessage.
        Raises: CodexRefusedError or NotDeliveredError (no effect), NoAnswerError
        (unknown), what `guard` raises (not sent).
        """
        ...

    async def steer(
        self, turn_id: str, parts: Sequence[InputPart], *, client_key: str, guard: Guard
    ) -> Steered:
        """Put more words into the running turn of that id, and into no other.

        Waits for our key in a userMessage (10 s); after that it is `pending`. Raises:
        as start_turn; CodexRefusedError also where another turn runs, or none.
        """
        ...

    async def compact(self, *, guard: Guard) -> Turn:
        """Have a summary take the place of what the model has read: a turn, seen to run.

        What runs is interrupted by it without a word. Raises: as start_turn.
        """
        ...

    async def review(self, target: ReviewTarget, *, guard: Guard) -> Turn:
        """Have changes reviewed: a turn, seen to run. It runs with the thread's sandbox,
        and asks for no approval: what would need one fails.

        What runs is interrupted by it without a word. Raises: as start_turn;
        UnavailableFeature.
        """
        ...

    async def revert(self, before: str, *, left: str, guard: Guard) -> None:
        """Take a turn and all behind it back; `left` is the newest that stays. What runs
        is interrupted by it without a word.

        Raises: TurnUnknownError and as start_turn.
        """
        ...

    async def change_settings(
        self, wishes: Wishes, *, guard: Guard
    ) -> EffectiveSettings:
        """Change the loaded thread's settings; return them as Codex tells them then."""
        ...

    async def interrupt(self, turn_id: str, *, background: bool = False) -> Turn:
        """Stop this turn and its sub-agents' turns; pause the goal; return it, ended.

        Pending approvals of the tree are withdrawn. `background`: its threads'
        background commands are ended too.
        """
        ...

    async def background_commands(self, thread_id: str) -> Sequence[BackgroundCommand]:
        """Return what runs in the background in a thread and those below it."""
        ...

    async def stop_background(self, thread_id: str, item_id: str) -> None:
        """End one background command. Raises: NotFound, AdapterError."""
        ...

    async def goal(self) -> Goal | None:
        """Return the loaded thread's goal."""
        ...

    async def set_goal(self, objective: str, *, guard: Guard) -> Goal:
        """Give the loaded thread an active goal: turns start by themselves."""
        ...

    async def pause_goal(self, *, guard: Guard | None = None) -> None:
        """Pause the loaded thread's active goal; nothing where there is none."""
        ...

    async def clear_goal(self, *, guard: Guard) -> None:
        """Take the loaded thread's goal away; nothing where there is none."""
        ...

    def approvals(self) -> Sequence[Approval]:
        """Pending approvals, oldest first."""
        ...

    def check_answer(
        self,
        approval_id: str,
        *,
        digest: str,
        choice: str,
        filled: Filled = NOTHING_FILLED,
    ) -> None:
        """Raise what `answer` would raise about this answer, were nobody faster."""
        ...

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
        """Answer once; return when Codex confirmed, or after 15 s still `answering`.

        Raises: what `guard` raises, NotFound, Conflict (digest), InvalidParams (choice not offered, or what
        goes with it does not fit), ApprovalClosed.
        """
        ...


class Runtime(Protocol):
    """One kind of coding agent. Leaving a block ends its process, reaped."""

    def open_reader(self, emit: Emit) -> AbstractAsyncContextManager[Reader]:
        """Start the reader; inside, it is initialized. A dead reader leaves the block
        with `ChildExitedError`."""
        ...

    def open_writer(
        self, emit: Emit, *, guard: Guard
    ) -> AbstractAsyncContextManager[ThreadWriter]:
        """Start a writer; inside, it is initialized, and nothing is loaded. When it dies
        it has closed what was open (items, turn, approvals) and the block is left with
        `ChildExitedError`."""
        ...

    def own_pids(self) -> set[int]:
        """Return our app-servers that live now: they are no foreign writers."""
        ...
