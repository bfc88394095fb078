"""Requests to one app-server, and what it says by itself. Trio shell.

Every request has a slot, a deadline, and one of three ends that the admission door
tells apart: answered, refused or not sent (no effect), not answered (unknown). What the
process says is handed over in its order by plain calls.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, cast

import trio

from adapter.approvals.replies import Reply
from adapter.calls.jsonrpc import (
    Answered,
    Asked,
    Failed,
    Json,
    JsonRpc,
    Notified,
    TooLong,
    TooManyInFlightError,
    Unread,
)
from adapter.errors import (
    AnswerShapeError,
    AnswerTooLongError,
    CodexOverloadedError,
    CodexRefusedError,
    DiedUnansweredError,
    NoAnswerError,
    NotDeliveredError,
)
from adapter.limits import REPLY_BYTES, REQUESTS_IN_FLIGHT, WRITE_S
from adapter.runtime.acts import Guard

OVERLOADED: Final = -32001
Line = Callable[[], bytes | None]
"""What is to be written, by a last look that may raise; `None`: nothing any more."""


class Input(Protocol):
    """Where lines are written: `adapter.processes.input_pipe.InputPipe`."""

    def write_now(self, data: bytes | memoryview) -> int:
        """Write what fits; 0 when full; trio.BrokenResourceError when gone."""
        ...

    async def wait_writable(self) -> None:
        """Return when something may fit again."""
        ...

    def close_input(self) -> None:
        """Give it up: the process ends."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Who is told: plain calls that must not block."""

    notified: Callable[[str, Json], None]
    asked: Callable[[Asked], None]
    unread: Callable[[Unread], None]


@dataclass(slots=True, eq=False)
class _Waiting:
    """One request on its way. `sent`: a byte of it was written."""

    method: str
    sent: bool = False
    gone: bool = False
    outcome: Answered | Failed | TooLong | None = None
    settled: trio.Event = field(default_factory=trio.Event)

    def note_sent(self) -> None:
        """From now on it may have been read."""
        self.sent = True


class Peer:
    """Our side of one app-server's stdio. Not usable before `attach`."""

    def __init__(
        self, listener: Listener, *, max_in_flight: int = REQUESTS_IN_FLIGHT
    ) -> None:
        self._listener = listener
        self._rpc = JsonRpc(max_in_flight=max_in_flight)
        self._waiting: dict[int, _Waiting] = {}
        self._lock = trio.Lock()
        self._input: Input | None = None
        self._replies: deque[bytes] = deque()
        self._reply_bytes = 0
        self._has_replies = trio.Event()
        self.garbled = 0  # lines so far that made no sense

    def attach(self, stdin: Input) -> None:
        """Say where requests go."""
        self._input = stdin

    @property
    def in_flight(self) -> int:
        """Requests without an answer."""
        return self._rpc.in_flight

    def receive(self, data: bytes) -> None:
        """Take in a chunk of output and tell whom it concerns; `b""` is the end."""
        self._rpc.receive_data(data)
        while (event := self._rpc.next_event()) is not None:
            if isinstance(event, Notified):
                self._listener.notified(event.method, event.params)
            elif isinstance(event, Asked):
                self._listener.asked(event)
            elif isinstance(event, Unread):
                self._listener.unread(event)
            elif isinstance(event, Answered | Failed | TooLong):
                self._settle(event)
            else:
                self.garbled += 1

    def _settle(self, event: Answered | Failed | TooLong) -> None:
        if (waiting := self._waiting.pop(event.request_id, None)) is not None:
            waiting.outcome = event
            waiting.settled.set()

    def close(self) -> None:
        """The process is gone: whoever waits learns it, and nothing is sent any more."""
        self._input = None
        for waiting in self._waiting.values():
            waiting.gone = True
            waiting.settled.set()

    async def call(
        self,
        method: str,
        params: Json,
        *,
        timeout_s: float,
        guard: Guard | None = None,
        spare: bool = False,
    ) -> dict[str, Any]:
        """Send a request and return its result; `spare`: one more than the bound.

        `guard` is called right before the first byte is written, slot and write lock
        already held, with no checkpoint in between, and again after each wait for a full
        pipe; what it raises passes through and nothing was sent. A line that has begun
        is finished, or its process is given up. The deadline covers the waiting for the
        lock too.

        Raises: CodexOverloadedError (ours: at once), CodexRefusedError,
        NotDeliveredError, NoAnswerError, AnswerShapeError, AnswerTooLongError.
        """
        try:
            request_id, line = self._rpc.request(method, params, spare=spare)
        except TooManyInFlightError:
            text = f"{REQUESTS_IN_FLIGHT} requests wait for codex already; try again"
            raise CodexOverloadedError(method, OVERLOADED, text) from None
        waiting = self._waiting[request_id] = _Waiting(method)
        try:
            with trio.move_on_after(timeout_s):
                await self._send(line, waiting, guard)
                await waiting.settled.wait()
        finally:
            self._rpc.forget(request_id)
            self._waiting.pop(request_id, None)
        return _result(waiting)

    async def notify(self, method: str) -> None:
        """Send a notification. Raises: NotDeliveredError, NoAnswerError (half sent)."""
        await self._send(self._rpc.notification(method), _Waiting(method), None)

    async def reply(
        self, decide: Callable[[], Reply | None], *, sent: Callable[[], None]
    ) -> None:
        """Answer a request of Codex: `decide` looks, and changes nothing.

        It runs each time that the pipe may take something, and `sent` right after the
        first byte, with no checkpoint in between. Until then nothing was answered,
        whatever ends the waiting: what `decide` raises, NotDeliveredError, Cancelled.
        After it: NoAnswerError, where the process just went.
        """

        def line() -> bytes | None:
            reply = decide()
            return None if reply is None else self._line(reply)

        async with self._lock:
            await self._write("answer", line, sent)

    def reply_soon(self, reply: Reply) -> None:
        """Answer from a plain call: `serve_replies` writes it.

        A process that asks on and on and reads no answer is given up.
        """
        line = self._line(reply)
        if self._reply_bytes + len(line) > REPLY_BYTES:
            self._give_up()
            return
        self._reply_bytes += len(line)
        self._replies.append(line)
        self._has_replies.set()

    def _line(self, reply: Reply) -> bytes:
        if reply.error is not None:
            return self._rpc.error(reply.request_id, *reply.error)
        return self._rpc.result(reply.request_id, reply.result or {})

    async def serve_replies(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Write what `reply_soon` left, until cancelled or the process is gone."""
        task_status.started()
        while True:
            await self._has_replies.wait()
            self._has_replies = trio.Event()
            while self._replies:
                try:
                    line = self._replies[0]
                    await self._send(line, _Waiting("answer"), None)
                    self._replies.popleft()
                    self._reply_bytes -= len(line)
                except (NotDeliveredError, NoAnswerError):
                    self._replies.clear()  # nobody is there to read them
                    self._reply_bytes = 0

    async def _send(self, line: bytes, waiting: _Waiting, guard: Guard | None) -> None:
        def guarded() -> bytes:
            if guard is not None:
                guard()
            return line

        async with self._lock:
            await self._write(waiting.method, guarded, waiting.note_sent)

    async def _write(self, method: str, line: Line, sent: Callable[[], None]) -> None:
        rest = await self._begin(method, line, sent)
        if rest:
            await self._finish(rest, method)

    async def _begin(
        self, method: str, line: Line, sent: Callable[[], None]
    ) -> memoryview:
        """Write the first bytes, return the others; `line` looks anew at each try.

        A pipe takes a short line (PIPE_BUF, 4 KiB on Linux) whole or not at all.
        """
        while True:
            if self._input is None:
                raise NotDeliveredError(method)
            if (whole := line()) is None:
                return memoryview(b"")
            try:
                if written := self._input.write_now(whole):
                    sent()
                    return memoryview(whole)[written:]
                await self._input.wait_writable()
            except trio.BrokenResourceError as exc:
                raise NotDeliveredError(method) from exc

    async def _finish(self, rest: memoryview, method: str) -> None:
        """Write the rest of a line, cancelled or not: half a line would eat the next.

        A process that takes nothing for 5 s is given up.
        """
        with trio.move_on_after(WRITE_S, shield=True):
            try:
                while rest and self._input is not None:
                    await self._input.wait_writable()
                    rest = rest[self._input.write_now(rest) :]
            except trio.BrokenResourceError as exc:
                raise NoAnswerError(method) from exc
        if rest:
            self._give_up()
            raise NoAnswerError(method)

    def _give_up(self) -> None:
        """Close its input: it ends by that, or is found to hang at the next request."""
        if self._input is not None:
            self._input.close_input()


def _result(waiting: _Waiting) -> dict[str, Any]:
    outcome = waiting.outcome
    if outcome is None:
        if not waiting.sent:
            raise NotDeliveredError(waiting.method)
        raise (DiedUnansweredError if waiting.gone else NoAnswerError)(waiting.method)
    if isinstance(outcome, Failed):
        overloaded = outcome.code == OVERLOADED
        error = CodexOverloadedError if overloaded else CodexRefusedError
        raise error(waiting.method, outcome.code, outcome.message)
    if isinstance(outcome, TooLong):
        raise AnswerTooLongError(waiting.method)
    if not isinstance(outcome.result, dict):
        raise AnswerShapeError(waiting.method, "the result is no object")
    return cast("dict[str, Any]", outcome.result)
