"""A writer for each thread that we write to: every act on it. Sans-IO (protocol).

PROTOCOL.md section 3. What an act raises is in `adapter/errors.py`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from adapter.runtime.acts import NOTHING_FILLED, Filled, Guard, InputPart, Steered
from adapter.runtime.program import RuntimeInfo
from adapter.runtime.threads import (
    NO_WISHES,
    EffectiveSettings,
    Loaded,
    NewThread,
    Wishes,
)
from transport.protocol.approvals import Approval
from transport.protocol.background import BackgroundCommand
from transport.protocol.goals import Goal
from transport.protocol.reviews import ReviewTarget
from transport.protocol.threads import ThreadStatus
from transport.protocol.turns import Turn


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

    def has_ended(self, turn_id: str) -> bool:
        """Whether this turn of the last ones ended here: history has its end by now."""
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

        Raises: what `guard` raises, NotFound, Conflict (digest), InvalidParams (choice
        not offered, or what goes with it does not fit), ApprovalClosed.
        """
        ...
