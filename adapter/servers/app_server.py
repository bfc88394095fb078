"""One codex app-server: child, peer, normalizer and approval ledger joined. Trio shell.

PROTOCOL.md section 3. All that it says is taken in where its output is read, in order,
and handed on by plain calls; nobody can hold that back.
"""

from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import trio

from adapter.approvals.approvals import ApprovalLedger
from adapter.approvals.replies import Asked as Taken
from adapter.calls.commands import Command
from adapter.calls.handshake import check_home, greet
from adapter.calls.jsonrpc import Asked, Json, Unread
from adapter.calls.peer import Listener, Peer
from adapter.calls.proof import PROCESS_ENDED
from adapter.calls.reading_commands import loaded_threads
from adapter.calls.refusals import refined
from adapter.calls.versions import Traits, traits_of
from adapter.errors import (
    AdapterError,
    ChildExitedError,
    CodexRefusedError,
    DiedUnansweredError,
    NoAnswerError,
    NotDeliveredError,
)
from adapter.events.intake import Intake
from adapter.events.normalize import Normalizer
from adapter.events.notices import event_of, notice
from adapter.limits import DEADLINES_S, PROBE_S
from adapter.processes.launch import Ears
from adapter.processes.process import Child, open_child
from adapter.runtime.acts import Guard
from adapter.runtime.events import Emit, RuntimeEvent
from adapter.runtime.program import RuntimeInfo
from adapter.servers.setup import Setup
from transport.background import open_background
from transport.protocol.events import NoticeLevel

RUNTIME: Final = "codex"
Watch = Callable[[str, Json], None]


class AppServer:
    """A running app-server of ours. `open_app_server` makes and ends it."""

    info: RuntimeInfo
    traits: Traits
    child: Child

    def __init__(self, setup: Setup, emit: Emit, pids: set[int]) -> None:
        self._setup = setup
        self._emit = emit
        self._pids = pids
        self._pid: int | None = None
        self._watches: set[Watch] = set()
        self._news = trio.lowlevel.ParkingLot()
        self._questions = trio.Event()
        self.normalizer = Normalizer(provenance=RUNTIME, slept_ms=self._slept_ms)
        self.ledger = ApprovalLedger(
            mint=setup.mint, approval_ms=setup.approval_ms, up_ms=setup.up_ms
        )
        self._intake = Intake(self.normalizer, self.ledger)
        self.peer = Peer(
            Listener(notified=self._notified, asked=self._asked, unread=self._unread)
        )
        self.gone = False
        self._probing = trio.Lock()

    @property
    def ears(self) -> Ears:
        """What the child's output and end are told to."""
        return Ears(started=self._started, output=self._output, ended=self._ended)

    def now_ms(self) -> int:
        """Return milliseconds since the epoch."""
        return self._setup.now_ms()

    def _slept_ms(self) -> int:
        """Trio's clock stands still while the computer sleeps."""
        return self._setup.up_ms() - round(trio.current_time() * 1_000)

    def tell(self) -> None:
        """Let every waiter look at its condition again."""
        self._news.unpark_all()

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Return when `condition` holds; it is looked at after all that happens here."""
        await trio.lowlevel.checkpoint()
        while not condition():
            await self._news.park()

    @contextmanager
    def watching(self, watch: Watch) -> Generator[None]:
        """Show every notification to `watch`, raw, in order; `PROCESS_ENDED` is the last."""
        self._watches.add(watch)
        try:
            yield
        finally:
            self._watches.discard(watch)

    async def call(
        self, command: Command, *, guard: Guard | None = None
    ) -> dict[str, Any]:
        """Send a command; return its result. Raises what `Peer.call` raises, refined.

        A deadline that passes is followed by a question that costs nothing; without an
        answer to that one the process hangs and is ended, before this raises
        DiedUnansweredError. One thread that hangs is no dead process: NoAnswerError.
        """
        try:
            return await self.peer.call(
                command.method,
                command.params,
                timeout_s=command.timeout_s,
                guard=guard,
            )
        except CodexRefusedError as exc:
            raise refined(exc) from None
        except (NoAnswerError, NotDeliveredError) as exc:
            if not self.gone:
                await self._end_if_hung()  # noqa: ASYNC120 - cancelled: nobody asks any more
            if self.gone and isinstance(exc, NoAnswerError):
                raise DiedUnansweredError(exc.method) from exc
            raise
        finally:
            self.tell()

    async def _end_if_hung(self) -> None:
        async with self._probing:
            if self.gone or await self._answers(loaded_threads()):
                return
            self.child.give_up()
            with trio.move_on_after(PROBE_S):
                await self.wait_until(lambda: self.gone)

    async def _answers(self, command: Command) -> bool:
        try:
            await self.peer.call(
                command.method, command.params, timeout_s=command.timeout_s, spare=True
            )
        except (NoAnswerError, NotDeliveredError):
            return False
        except AdapterError:
            return True  # whatever it said, it spoke
        return True

    async def serve_deadlines(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Decline what nobody answered in time, until cancelled."""
        task_status.started()
        while True:
            due = self.ledger.next_deadline()
            left_s = float("inf")
            if due is not None:  # no timer goes on while the machine sleeps: look again
                left_s = min(max(0, due - self._setup.up_ms()) / 1_000, DEADLINES_S)
            with trio.move_on_after(left_s):
                await self._questions.wait()
            self._questions = trio.Event()
            replies, events = self.ledger.expire(self.now_ms())
            for reply in replies:
                self.peer.reply_soon(reply)
            self._hand_on(events)

    def withdraw(self, threads: frozenset[str]) -> None:
        """End the open approvals of these threads: their turns were stopped."""
        self._hand_on(self.ledger.withdraw(thread_ids=threads, at=self.now_ms()))

    def notice(self, code: str, message: str, thread_id: str) -> None:
        """Say a warning about a thread."""
        said = notice(NoticeLevel.WARNING, code, message, thread_id)
        root = self.normalizer.root_of(thread_id)
        self._hand_on([event_of(said, root=root, at=self.now_ms())])

    def reverted(self, thread_id: str, left: str) -> None:
        """Turns were taken back at our wish; `left`: the newest that stays."""
        self._hand_on(self.normalizer.reverted(thread_id, left, self.now_ms()))

    def _hand_on(self, events: Sequence[RuntimeEvent]) -> None:
        for event in events:
            self._emit(event)
        self.tell()

    def _started(self, pid: int) -> None:
        self._pid = pid
        self._pids.add(pid)

    def _output(self, data: bytes) -> None:
        self.peer.receive(data)

    def _notified(self, method: str, params: Json) -> None:
        events = self._intake.notification(method, params, self.now_ms())
        self._show(method, params)
        self._hand_on(events)

    def _show(self, method: str, params: Json) -> None:
        for watch in tuple(self._watches):
            watch(method, params)

    def _asked(self, asked: Asked) -> None:
        self._take(
            self._intake.request(
                asked.request_id, asked.method, asked.params, self.now_ms()
            )
        )

    def _unread(self, line: Unread) -> None:
        ended = None
        if line.method == "turn/completed":
            ended = self.normalizer.running_turn(line.thread_id or "")
        self._take(self._intake.unread(line, self.now_ms()))
        if ended is not None:
            turn = {"id": self.normalizer.codex_turn(ended)}
            self._show(line.method, {"threadId": line.thread_id, "turn": turn})

    def _take(self, taken: Taken) -> None:
        for reply in taken.replies:
            self.peer.reply_soon(reply)
        self._questions.set()
        self._hand_on(taken.events)

    def _ended(self, error: ChildExitedError | None) -> None:
        """It is reaped: close what was open, fail what waits. In this order."""
        if self._pid is not None:
            self._pids.discard(self._pid)
        now = self.now_ms()
        if error is None:
            events = self._intake.ended(now)
        else:
            events = self._intake.died(now, str(error))
        self.gone = True
        self._hand_on(events)
        self._show(PROCESS_ENDED, {})
        self.peer.close()


@asynccontextmanager
async def open_app_server(
    setup: Setup,
    emit: Emit,
    *,
    name: str,
    pids: set[int],
    guard: Guard | None = None,
) -> AsyncGenerator[AppServer]:
    """Run an app-server for the length of the block; inside, it is initialized.

    Leaving it ends and reaps the process. `pids` holds its pid exactly while it lives.
    `guard`: looks right before it is started; without one it only reads.

    Raises: what `guard` raises (nothing was started), BinaryNotFoundError,
    HandshakeFailedError (OtherHomeError), ChildExitedError (also later: it leaves the
    block).
    """
    server = AppServer(setup, emit, pids)
    launch = setup.launch(name, only_reads=guard is None)
    async with open_child(launch, server.ears, guard=guard) as child:
        server.child = child
        server.peer.attach(child.input)
        async with (
            open_background(server.peer.serve_replies),
            open_background(server.serve_deadlines),
        ):
            greeting = await greet(server.peer)
            check_home(setup.environ.get("CODEX_HOME"), greeting.home)
            server.traits = traits_of(greeting.version)
            server.info = RuntimeInfo(
                name=RUNTIME,
                version=greeting.version,
                pid=child.pid,
                home=greeting.home,
                locks_threads=server.traits.locks_threads,
            )
            yield server
