"""One connection of a client: requests and their answers, keepalive. Trio shell.

PROTOCOL.md section 1. `serve` reads; a second task writes, so that a cancelled request
never cuts a record in half, and requests that come together leave in one write.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, NoReturn, cast

import trio

from transport.background import open_background
from transport.channel import MessageChannel
from transport.codec import pack, unpack
from transport.errors import (
    InvalidParams,
    LinkLostError,
    LocalProtocolError,
    Refusal,
    RemoteProtocolError,
    TooLarge,
    TruncatedError,
    refusal_from_wire,
)
from transport.limits import CLOSE_S, SESSION_LIMITS
from transport.protocol.gateway import Limits

Frame = dict[str, Any]
_U32: Final = 2**32


@dataclass(eq=False, slots=True)
class Answer:
    """What a request comes to. `take`: told the result before what follows it."""

    take: Callable[[Frame], None] | None
    done: trio.Event = field(default_factory=trio.Event)
    sent: bool = False
    result: Frame | None = None
    error: Refusal | LinkLostError | None = None

    async def wait(self) -> Frame:
        """Return the result, or raise the error, once there is one."""
        await self.done.wait()
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result


class Link:
    """Lives as long as its channel."""

    def __init__(self, channel: MessageChannel) -> None:
        self._channel = channel
        self._limits: Limits = SESSION_LIMITS
        self._ids = count(1)
        self._pings = count(1)
        self._room = trio.CapacityLimiter(SESSION_LIMITS.in_flight)
        self._pending: dict[int, Answer] = {}
        self._outbox: list[tuple[bytes, Answer | None]] = []
        self._work = trio.Event()
        self.lost = False

    def adopt(self, limits: Limits) -> None:
        """Keep to the limits that the Agent named."""
        self._limits = limits
        self._room.total_tokens = max(1, limits.in_flight)
        self._work.set()

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        take: Callable[[Frame], None] | None = None,
        leaves: Callable[[], None] = lambda: None,
    ) -> Frame:
        """Return the result. Waits while as many as allowed are in flight.

        `take` is called with the result before any later frame is looked at, `leaves`
        when that wait is over: from then on it may arrive.

        Raises:
            Refusal: the Agent's answer; TooLarge also where it was not even sent.
            LinkLostError: the connection ended first.
        """
        number = next(self._ids)
        await self._room.acquire_on_behalf_of(number)
        leaves()
        return await self._post(number, method, params, take).wait()

    def request_nowait(self, method: str, params: Mapping[str, Any]) -> Answer:
        """Send a request and return its answer to be.

        Raises:
            trio.WouldBlock: as many as allowed are in flight.
            LinkLostError, TooLarge: as `request`.
        """
        number = next(self._ids)
        self._room.acquire_on_behalf_of_nowait(number)
        return self._post(number, method, params, None)

    async def serve(
        self,
        on_frame: Callable[[Frame], None],
        *,
        task_status: trio.TaskStatus[None],
    ) -> NoReturn:
        """Read until the connection ends, which is always an error: it says why.

        `on_frame` gets every frame that is no answer and no ping (a pong too).

        Raises:
            PeerClosedError, TruncatedError, RemoteProtocolError, StalledError.
        """
        try:
            async with open_background(self._write):
                task_status.started()
                while True:
                    self._dispatch(await self._channel.receive(), on_frame)
        finally:
            self._lose()

    def _post(
        self,
        number: int,
        method: str,
        params: Mapping[str, Any],
        take: Callable[[Frame], None] | None,
    ) -> Answer:
        """Queue a request; its place in flight is taken, and given back if it fails."""
        try:
            frame = self._encoded(number, method, params)
        except BaseException:
            self._room.release_on_behalf_of(number)
            raise
        waiting = self._pending[number] = Answer(take)
        self._queue(frame, waiting)
        return waiting

    def _encoded(self, number: int, method: str, params: Mapping[str, Any]) -> bytes:
        if self.lost:
            raise LinkLostError(sent=False)
        try:
            frame = pack({"id": number, "method": method, "params": params})
        except LocalProtocolError as exc:
            raise _unfit(method, exc) from exc
        if len(frame) > (limit := self._limits.frame_in):
            raise TooLarge(
                f"{method}: a request of {len(frame)} bytes; at most {limit} are taken.",
                data={"field": "params", "limit": limit},
            )
        try:
            unpack(frame)  # the peer would end the session, at each try anew
        except RemoteProtocolError as exc:
            raise _unfit(method, exc) from exc
        return frame

    def _queue(self, frame: bytes, waiting: Answer | None) -> None:
        self._outbox.append((frame, waiting))
        self._work.set()

    async def _write(self, *, task_status: trio.TaskStatus[None]) -> NoReturn:
        task_status.started()
        while True:
            await self._wait_work()
            batch, self._outbox = self._outbox, []
            for _, waiting in batch:
                if waiting is not None:
                    waiting.sent = True
            try:
                await self._channel.send([frame for frame, _ in batch])
            except TruncatedError:
                # The reader may find out why, and end this.
                await trio.sleep(CLOSE_S)  # noqa: ASYNC120
                raise

    async def _wait_work(self) -> None:
        """Return when there is something to send: a ping, where nothing else was."""
        while not self._outbox:
            self._work = trio.Event()
            dead_s, ping_s = self._limits.dead_ms / 1000, self._limits.ping_ms / 1000
            heard_at, sent_at = self._channel.heard_at, self._channel.sent_at
            with trio.move_on_at(min(heard_at + dead_s, sent_at + ping_s)):
                await self._work.wait()
            now = trio.current_time()
            if now >= self._channel.heard_at + dead_s:
                raise TruncatedError("nothing was heard: the connection is dead")
            if not self._outbox and now >= self._channel.sent_at + ping_s:
                self._queue(pack({"ping": next(self._pings) % _U32}), None)

    def _dispatch(self, frame: Frame, on_frame: Callable[[Frame], None]) -> None:
        if "id" in frame:
            self._answer(frame)
        elif "ping" in frame:
            self._queue(pack({"pong": frame["ping"]}), None)
        else:
            on_frame(frame)

    def _answer(self, frame: Frame) -> None:
        number = frame["id"]
        waiting = self._pending.get(number) if isinstance(number, int) else None
        if waiting is None:
            raise RemoteProtocolError("an answer to nothing")
        result, error = _outcome(frame)
        if result is not None and waiting.take is not None:
            waiting.take(result)
        # Only now: who asked is told of the loss where the answer was none.
        del self._pending[number]
        waiting.result, waiting.error = result, error
        waiting.done.set()
        self._room.release_on_behalf_of(number)

    def _lose(self) -> None:
        self.lost = True
        for number, waiting in self._pending.items():
            waiting.error = LinkLostError(sent=waiting.sent)
            waiting.done.set()
            self._room.release_on_behalf_of(number)
        self._pending.clear()


def _outcome(frame: Frame) -> tuple[Frame | None, Refusal | None]:
    result, error = frame.get("result"), frame.get("error")
    if isinstance(result, dict) and error is None:
        return cast("Frame", result), None
    if isinstance(error, dict) and result is None:
        return None, refusal_from_wire(cast("Frame", error))
    raise RemoteProtocolError("an answer is a result or an error")


def _unfit(method: str, exc: Exception) -> InvalidParams:
    return InvalidParams(
        f"{method}: a request that no Agent takes: {exc}.",
        data={"field": "params", "reason": str(exc)},
    )
