"""One app-server for one thread that we write to. Trio shell. PROTOCOL.md section 3.

Every act takes a `guard`: a last look, made when all waiting is over, right before the
first byte is written. What happened after that is answered, refused, or unknown.
"""

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import trio

from adapter.approvals.approvals import Reply
from adapter.calls import goals, store_commands, thread_commands, turn_commands
from adapter.calls.goals import answered_goal
from adapter.calls.proof import TurnProof
from adapter.calls.refusals import no_goal_is_fine
from adapter.errors import (
    AdapterError,
    AnswerShapeError,
    NoAnswerError,
    NotDeliveredError,
)
from adapter.limits import (
    CONFIRM_S,
    PROOF_S,
    SHELL_LOOK_S,
    SHELL_WAIT_S,
)
from adapter.runtime.acts import NOTHING_FILLED, Filled, Guard, InputPart, Steered
from adapter.runtime.program import RuntimeInfo
from adapter.runtime.threads import (
    NO_WISHES,
    EffectiveSettings,
    Loaded,
    NewThread,
    Wishes,
)
from adapter.servers.app_server import AppServer
from adapter.servers.background import Background
from adapter.servers.forking import take_fork
from adapter.servers.interrupt import Interrupt
from adapter.servers.loading import adopt, id_of, inner, newest_turns, take_lock
from adapter.servers.steering import Steering
from adapter.servers.thread_settings import LoadedSettings
from adapter.servers.whole_thread import WholeThread
from adapter.shapes.turns import turn_from
from transport.errors import NotFound
from transport.protocol.approvals import Approval, ApprovalState
from transport.protocol.background import BackgroundCommand
from transport.protocol.goals import Goal, GoalStatus
from transport.protocol.reviews import ReviewTarget
from transport.protocol.threads import ThreadStatus
from transport.protocol.turns import Turn, TurnStatus

OPEN_STATES = frozenset({ApprovalState.PENDING, ApprovalState.ANSWERING})


class CodexWriter:
    """`ThreadWriter` over one app-server.

    `released_lately`: whether we ourselves gave this thread's lock back a moment ago.
    """

    def __init__(
        self, server: AppServer, *, released_lately: Callable[[str], bool]
    ) -> None:
        self.info: RuntimeInfo = server.info
        self._server = server
        self._released_lately = released_lately
        self._thread_id: str | None = None
        self._name: str | None = None
        self._acts = 0
        self._loaded = trio.Event()
        self._shell_runs = False
        self._settings = LoadedSettings(server)
        self._steering = Steering(server, self._turn)
        self._background = Background(server)
        self._whole = WholeThread(server, self._turn)

    @property
    def thread_id(self) -> str | None:
        """The thread that is loaded, once it is."""
        return self._thread_id

    @property
    def status(self) -> ThreadStatus:
        """What the loaded thread does now."""
        if self._thread_id is None:
            return ThreadStatus.UNKNOWN
        return self._server.normalizer.status(self._thread_id)

    @property
    def running_turn_id(self) -> str | None:
        """The root thread's running turn."""
        if self._thread_id is None:
            return None
        return self._server.normalizer.running_turn(self._thread_id)

    def status_of(self, thread_id: str) -> ThreadStatus:
        """Return what this thread does: the loaded one, or a sub-agent's below it."""
        return self._server.normalizer.status(thread_id)

    def running_turn_of(self, thread_id: str) -> str | None:
        """Return the running turn of the loaded thread, or of a sub-agent's below it."""
        return self._server.normalizer.running_turn(thread_id)

    @property
    def last_turn_id(self) -> str | None:
        """The newest turn that this writer loaded or ran."""
        if self._thread_id is None:
            return None
        return self._server.normalizer.last_turn(self._thread_id)

    @property
    def settings(self) -> EffectiveSettings | None:
        """The loaded thread's settings as they are now."""
        return None if self._thread_id is None else self._settings.now(self._thread_id)

    def knows_turn(self, turn_id: str) -> bool:
        """Whether this writer loaded or ran that turn."""
        return self._server.normalizer.knows_turn(turn_id)

    def live_turn(self, turn_id: str) -> Turn | None:
        """Return a turn that runs here, with its items so far."""
        return self._server.normalizer.live_turn(turn_id)

    @property
    def busy(self) -> bool:
        """Whether ending it now would cut something short."""
        server = self._server
        if server.gone:
            return False
        return (
            self._acts > 0
            or self._shell_runs
            or server.peer.in_flight > 0
            or server.normalizer.busy
            or bool(server.ledger.pending())
        )

    @property
    def at_work(self) -> bool:
        """Whether anything of the thread or its sub-agents runs, or waits for an answer."""
        server = self._server
        return server.normalizer.busy or bool(server.ledger.pending())

    async def wait_idle(self) -> None:
        """Return when not busy."""
        await self._server.wait_until(lambda: not self.busy)

    async def wait_busy(self) -> None:
        """Return when busy."""
        await self._server.wait_until(lambda: self.busy)

    def hurry(self) -> None:
        """End without waiting for the login shell."""
        self._server.child.hurry()

    async def resume(self, thread_id: str, *, guard: Guard) -> Loaded:
        """Load the thread, then read its newest turn through this process."""
        with self._acting():
            answer = await take_lock(
                self._server,
                thread_id,
                guard=guard,
                released_lately=self._released_lately,
            )
            self._note_loaded(thread_id)
            raw = inner(answer, "thread/resume", "thread")
            newest = await newest_turns(self._server, thread_id)
            loaded = adopt(self._server, raw, answer, newest)
            legacy = raw.get("historyMode") != "paginated"
            turns = [turn_from(turn, thread_id, legacy=legacy) for turn in newest]
            return Loaded(
                thread=loaded[0],
                settings=loaded[1],
                last_turn=turns[0] if turns else None,
            )

    async def start_thread(self, new: NewThread, *, guard: Guard) -> Loaded:
        """Make a new thread.

        Its name waits for the first turn: naming it now would store a thread without
        a turn, which a refused turn would leave behind.
        """
        with self._acting():
            answer = await self._server.call(
                thread_commands.start_thread(new), guard=guard
            )
            raw = inner(answer, "thread/start", "thread")
            self._note_loaded(id_of(raw, "thread/start"))
            self._name = new.name
            thread, settings = adopt(self._server, raw, answer, [])
            return Loaded(thread=thread, settings=settings, last_turn=None)

    async def fork_thread(
        self,
        thread_id: str,
        *,
        through: str | None,
        before: str | None,
        guard: Guard,
        stored: Callable[[str], Awaitable[None]],
    ) -> Loaded:
        """Make a copy of a thread; it is loaded here."""
        with self._acting():
            answer = await take_fork(
                self._server, thread_id, through=through, before=before, guard=guard
            )
            raw = inner(answer, "thread/fork", "thread")
            fork_id = id_of(raw, "thread/fork")
            self._note_loaded(fork_id)
            await stored(fork_id)
            newest = await newest_turns(self._server, fork_id)
            thread, settings = adopt(self._server, raw, answer, newest)
            legacy = raw.get("historyMode") != "paginated"
            turns = [turn_from(turn, fork_id, legacy=legacy) for turn in newest]
            last = turns[0] if turns else None
            return Loaded(thread=thread, settings=settings, last_turn=last)

    async def start_turn(
        self,
        parts: Sequence[InputPart],
        *,
        client_key: str,
        guard: Guard,
        wishes: Wishes = NO_WISHES,
        output_schema: Mapping[str, Any] | None = None,
    ) -> Turn:
        """Start a turn and wait until it is proved to run."""
        thread_id = self._root("turn/start")
        proof = TurnProof(thread_id, client_key)
        command = turn_commands.start_turn(
            thread_id,
            parts,
            client_key,
            wishes=wishes,
            collaboration=self._settings.collaboration(thread_id, wishes),
            output_schema=output_schema,
        )
        with self._acting(), self._server.watching(proof.notified):
            # An odd answer is no refusal: the stream tells whether the turn runs.
            with suppress(AnswerShapeError):
                proof.accepted(await self._server.call(command, guard=guard))
            with trio.move_on_after(PROOF_S):
                await self._server.wait_until(
                    lambda: proof.turn_id is not None or self._server.gone
                )
            if proof.turn_id is None:
                raise NoAnswerError(command.method)
            await self._give_name(thread_id)
            return self._turn(proof.turn_id) or Turn(
                id=proof.turn_id, thread_id=thread_id, status=TurnStatus.IN_PROGRESS
            )

    async def steer(
        self, turn_id: str, parts: Sequence[InputPart], *, client_key: str, guard: Guard
    ) -> Steered:
        """Put more words into the running turn of that id, and into no other."""
        thread_id = self._root("turn/steer")
        with self._acting():
            return await self._steering.run(
                thread_id, turn_id, parts, client_key=client_key, guard=guard
            )

    async def compact(self, *, guard: Guard) -> Turn:
        """Have a summary take the place of what the model has read."""
        thread_id = self._root("thread/compact/start")
        with self._acting():
            return await self._whole.compact(thread_id, guard=guard)

    async def review(self, target: ReviewTarget, *, guard: Guard) -> Turn:
        """Have changes reviewed in a turn of the loaded thread."""
        thread_id = self._root("review/start")
        with self._acting():
            return await self._whole.review(thread_id, target, guard=guard)

    async def revert(self, before: str, *, left: str, guard: Guard) -> None:
        """Take a turn and all behind it back."""
        thread_id = self._root("thread/revert")
        with self._acting():
            await self._whole.revert(thread_id, before, left=left, guard=guard)

    async def change_settings(
        self, wishes: Wishes, *, guard: Guard
    ) -> EffectiveSettings:
        """Change the loaded thread's settings; return them as they are then."""
        thread_id = self._root("thread/settings/update")
        with self._acting():
            now = await self._settings.change(thread_id, wishes, guard=guard)
        if now is None:
            raise AnswerShapeError("thread/settings/update", "no settings were told")
        return now

    async def interrupt(self, turn_id: str, *, background: bool = False) -> Turn:
        """Stop this turn and its sub-agents' turns; return it, ended.

        Raises: NotFound (no such turn here), AdapterError.
        """
        with self._acting():
            turn = await Interrupt(self._server, self._thread_id).run(turn_id)
            if background:
                tree = self._server.normalizer.tree(turn.thread_id)
                await self._background.stop_all(tree)
            return turn

    async def background_commands(self, thread_id: str) -> Sequence[BackgroundCommand]:
        """Return what runs in the background in a thread and those below it."""
        return await self._background.list_below(thread_id)

    async def stop_background(self, thread_id: str, item_id: str) -> None:
        """End one background command."""
        with self._acting():
            await self._background.stop(thread_id, item_id)

    async def goal(self) -> Goal | None:
        """Return the loaded thread's goal."""
        command = goals.get_goal(self._root("thread/goal/get"))
        return answered_goal(await self._server.call(command), command.method)

    async def set_goal(self, objective: str, *, guard: Guard) -> Goal:
        """Give the loaded thread an active goal."""
        command = goals.set_goal(self._root("thread/goal/set"), objective)
        with self._acting():
            answer = await self._server.call(command, guard=guard)
        goal = answered_goal(answer, command.method)
        if goal is None:
            raise AnswerShapeError(command.method, "no goal was told")
        return goal

    async def pause_goal(self, *, guard: Guard | None = None) -> None:
        """Pause the loaded thread's active goal."""
        goal = await self.goal()
        if goal is None or goal.status is not GoalStatus.ACTIVE:
            return
        command = goals.pause_goal(self._root("thread/goal/set"))
        with self._acting():
            await self._server.call(command, guard=guard)

    async def clear_goal(self, *, guard: Guard) -> None:
        """Take the loaded thread's goal away."""
        command = goals.clear_goal(self._root("thread/goal/clear"))
        with self._acting(), no_goal_is_fine():
            await self._server.call(command, guard=guard)

    def approvals(self) -> Sequence[Approval]:
        """Pending approvals, oldest first."""
        return self._server.ledger.pending()

    def check_answer(
        self,
        approval_id: str,
        *,
        digest: str,
        choice: str,
        filled: Filled = NOTHING_FILLED,
    ) -> None:
        """Raise what is wrong with an answer, whoever gives it."""
        self._server.ledger.check(
            approval_id, digest=digest, choice=choice, filled=filled
        )

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
        """Answer once; return when Codex confirmed, or after 15 s still answering."""
        ledger, server = self._server.ledger, self._server

        def decide() -> Reply | None:
            if guard is not None:
                guard()
            return ledger.answer(
                approval_id,
                digest=digest,
                choice=choice,
                decided_by=decided_by,
                at=server.now_ms(),
                filled=filled,
            )

        # Where the process is going, its end withdraws what was sent.
        with suppress(NotDeliveredError, NoAnswerError):
            await server.peer.reply(decide)
        with trio.move_on_after(CONFIRM_S):
            await server.wait_until(lambda: not self._is_open(approval_id))
        approval = ledger.get(approval_id)
        if approval is None:
            raise NotFound("This approval is gone.", data={"id": approval_id})
        return approval

    async def watch_shell(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Be busy while the login shell runs that loading a thread started (≤ 10 s)."""
        task_status.started()
        await self._loaded.wait()
        with trio.move_on_after(SHELL_WAIT_S):
            # Nothing tells when a grandchild ends.
            while self._server.child.shells_alive():  # noqa: ASYNC110
                await trio.sleep(SHELL_LOOK_S)
        self._shell_runs = False
        self._server.tell()

    @contextmanager
    def _acting(self) -> Generator[None]:
        self._acts += 1
        self._server.tell()
        try:
            yield
        finally:
            self._acts -= 1
            self._server.tell()

    def _note_loaded(self, thread_id: str) -> None:
        self._thread_id = thread_id
        self._shell_runs = not self._loaded.is_set()
        self._loaded.set()

    def _root(self, method: str) -> str:
        """Return the thread that is loaded. Raises: NotDeliveredError."""
        if self._thread_id is None:
            raise NotDeliveredError(method)
        return self._thread_id

    def _turn(self, turn_id: str) -> Turn | None:
        known = self._server.normalizer
        return known.live_turn(turn_id) or known.ended_turn(turn_id)

    async def _give_name(self, thread_id: str) -> None:
        name, self._name = self._name, None
        if name is None:
            return
        try:
            await self._server.call(store_commands.rename(thread_id, name))
        except AdapterError as exc:  # the turn runs: that is what was asked for
            self._server.notice("notNamed", f"The thread has no name: {exc}", thread_id)

    def _is_open(self, approval_id: str) -> bool:
        approval = self._server.ledger.get(approval_id)
        return approval is not None and approval.state in OPEN_STATES
