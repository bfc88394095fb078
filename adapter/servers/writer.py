"""One app-server for one thread that we write to. Trio shell. PROTOCOL.md section 3.

Here is what is loaded, and that it is busy while we act on it; how each act is done is a
module of its own. Every act takes a `guard`: a last look, made when all waiting is over,
right before the first byte is written. What happened after that is answered, refused, or
unknown.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import trio

from adapter.calls import thread_commands
from adapter.errors import AnswerShapeError, NotDeliveredError
from adapter.runtime.acts import NOTHING_FILLED, Filled, Guard, InputPart, Steered
from adapter.runtime.program import RuntimeInfo
from adapter.runtime.threads import (
    NO_WISHES,
    EffectiveSettings,
    Loaded,
    NewThread,
    Wishes,
)
from adapter.servers.answering import give_answer
from adapter.servers.app_server import AppServer
from adapter.servers.background import Background
from adapter.servers.busy import Busy
from adapter.servers.forking import take_fork
from adapter.servers.goals import LoadedGoals
from adapter.servers.interrupt import Interrupt
from adapter.servers.loading import adopt, id_of, inner, read_loaded, take_lock
from adapter.servers.starting import Starting
from adapter.servers.steering import Steering
from adapter.servers.thread_settings import LoadedSettings
from adapter.servers.whole_thread import WholeThread
from transport.protocol.approvals import Approval
from transport.protocol.background import BackgroundCommand
from transport.protocol.goals import Goal
from transport.protocol.reviews import ReviewTarget
from transport.protocol.threads import ThreadStatus
from transport.protocol.turns import Turn


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
        self._busy = Busy(server)
        self._settings = LoadedSettings(server)
        self._starting = Starting(server, self._settings)
        self._steering = Steering(server)
        self._background = Background(server)
        self._whole = WholeThread(server)
        self._goals = LoadedGoals(server)

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

    def has_ended(self, turn_id: str) -> bool:
        """Whether this turn of the last ones ended here."""
        return self._server.normalizer.ended_turn(turn_id) is not None

    def live_turn(self, turn_id: str) -> Turn | None:
        """Return a turn that runs here, with its items so far."""
        return self._server.normalizer.live_turn(turn_id)

    @property
    def busy(self) -> bool:
        """Whether ending it now would cut something short."""
        return self._busy.now

    @property
    def at_work(self) -> bool:
        """Whether anything of the thread or its sub-agents runs, or waits for an answer."""
        return self._busy.at_work

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
        with self._busy.acting():
            answer = await take_lock(
                self._server,
                thread_id,
                guard=guard,
                released_lately=self._released_lately,
            )
            self._note_loaded(thread_id)
            raw = inner(answer, "thread/resume", "thread")
            return await read_loaded(self._server, thread_id, raw, answer)

    async def start_thread(self, new: NewThread, *, guard: Guard) -> Loaded:
        """Make a new thread. Its name waits for the first turn."""
        with self._busy.acting():
            command = thread_commands.start_thread(new)
            answer = await self._server.call(command, guard=guard)
            raw = inner(answer, "thread/start", "thread")
            self._note_loaded(id_of(raw, "thread/start"))
            self._starting.name = new.name
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
        with self._busy.acting():
            answer = await take_fork(
                self._server, thread_id, through=through, before=before, guard=guard
            )
            raw = inner(answer, "thread/fork", "thread")
            fork_id = id_of(raw, "thread/fork")
            self._note_loaded(fork_id)
            await stored(fork_id)
            return await read_loaded(self._server, fork_id, raw, answer)

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
        with self._busy.acting():
            return await self._starting.run(
                thread_id,
                parts,
                client_key=client_key,
                guard=guard,
                wishes=wishes,
                output_schema=output_schema,
            )

    async def steer(
        self, turn_id: str, parts: Sequence[InputPart], *, client_key: str, guard: Guard
    ) -> Steered:
        """Put more words into the running turn of that id, and into no other."""
        thread_id = self._root("turn/steer")
        with self._busy.acting():
            return await self._steering.run(
                thread_id, turn_id, parts, client_key=client_key, guard=guard
            )

    async def compact(self, *, guard: Guard) -> Turn:
        """Have a summary take the place of what the model has read."""
        thread_id = self._root("thread/compact/start")
        with self._busy.acting():
            return await self._whole.compact(thread_id, guard=guard)

    async def review(self, target: ReviewTarget, *, guard: Guard) -> Turn:
        """Have changes reviewed in a turn of the loaded thread."""
        thread_id = self._root("review/start")
        with self._busy.acting():
            return await self._whole.review(thread_id, target, guard=guard)

    async def revert(self, before: str, *, left: str, guard: Guard) -> None:
        """Take a turn and all behind it back."""
        thread_id = self._root("thread/revert")
        with self._busy.acting():
            await self._whole.revert(thread_id, before, left=left, guard=guard)

    async def change_settings(
        self, wishes: Wishes, *, guard: Guard
    ) -> EffectiveSettings:
        """Change the loaded thread's settings; return them as they are then."""
        thread_id = self._root("thread/settings/update")
        with self._busy.acting():
            now = await self._settings.change(thread_id, wishes, guard=guard)
        if now is None:
            raise AnswerShapeError("thread/settings/update", "no settings were told")
        return now

    async def interrupt(self, turn_id: str, *, background: bool = False) -> Turn:
        """Stop this turn and its sub-agents' turns; return it, ended.

        Raises: NotFound (no such turn here), AdapterError.
        """
        with self._busy.acting():
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
        with self._busy.acting():
            await self._background.stop(thread_id, item_id)

    async def goal(self) -> Goal | None:
        """Return the loaded thread's goal."""
        return await self._goals.get(self._root("thread/goal/get"))

    async def set_goal(self, objective: str, *, guard: Guard) -> Goal:
        """Give the loaded thread an active goal."""
        thread_id = self._root("thread/goal/set")
        with self._busy.acting():
            return await self._goals.set(thread_id, objective, guard=guard)

    async def pause_goal(self, *, guard: Guard | None = None) -> None:
        """Pause the loaded thread's active goal."""
        thread_id = self._root("thread/goal/get")
        with self._busy.acting():
            await self._goals.pause(thread_id, guard=guard)

    async def clear_goal(self, *, guard: Guard) -> None:
        """Take the loaded thread's goal away."""
        thread_id = self._root("thread/goal/clear")
        with self._busy.acting():
            await self._goals.clear(thread_id, guard=guard)

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
        return await give_answer(
            self._server,
            approval_id,
            digest=digest,
            choice=choice,
            decided_by=decided_by,
            filled=filled,
            guard=guard,
        )

    async def watch_shell(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Be busy while the login shell runs that loading a thread started (≤ 10 s)."""
        await self._busy.watch_shell(task_status=task_status)

    def _note_loaded(self, thread_id: str) -> None:
        self._thread_id = thread_id
        self._busy.note_loaded()

    def _root(self, method: str) -> str:
        """Return the thread that is loaded. Raises: NotDeliveredError."""
        if self._thread_id is None:
            raise NotDeliveredError(method)
        return self._thread_id
