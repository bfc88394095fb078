"""A line between a device and the Agent that a test can cut. Plain TCP, byte for byte."""

import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

import trio

from transport.client import Target


@dataclass
class Call:
    """One connection. `left`: bytes that it still carries, of both ways together."""

    left: int
    scope: trio.CancelScope

    def take(self, chunk: bytes) -> bytes:
        """Return what of a chunk gets through."""
        part = chunk[: max(0, min(self.left, len(chunk)))]
        self.left -= len(part)
        return part


@dataclass
class Relay:
    """A line to the Agent that a test can cut. `up`: whether it takes new callers.

    `lasts`: says of each new connection after how many bytes it is cut.
    """

    host: str
    port: int
    up: bool = True
    lasts: Callable[[], int] = lambda: sys.maxsize
    carried: int = 0  # connections so far
    _calls: list[Call] = field(default_factory=list[Call])

    def cut(self) -> None:
        """Lose every connection, and take no new one."""
        self.up = False
        self.lose()

    def lose(self) -> None:
        """Lose every connection; new ones are taken."""
        for call in self._calls:
            call.scope.cancel()

    def _length(self) -> int:
        return self.lasts() if self.up else 0

    async def carry(self, near: trio.SocketStream) -> None:
        """Copy both ways until one side ends."""
        async with near:
            if not self.up:
                return
            async with (
                await trio.open_tcp_stream(self.host, self.port) as far,
                trio.open_nursery() as nursery,
            ):
                call = Call(self._length(), nursery.cancel_scope)
                self._calls.append(call)
                self.carried += 1
                nursery.start_soon(self._copy, near, far, call)
                nursery.start_soon(self._copy, far, near, call)
            self._calls.remove(call)

    async def _copy(
        self, source: trio.SocketStream, sink: trio.SocketStream, call: Call
    ) -> None:
        with suppress(trio.BrokenResourceError):
            async for chunk in source:
                await sink.send_all(call.take(bytes(chunk)))
                if call.left <= 0:
                    break
        call.scope.cancel()


@asynccontextmanager
async def open_line(target: Target) -> AsyncGenerator[tuple[Relay, Target]]:
    """Lay a line to this Agent; what comes with it is dialled instead."""
    host, _, port = target.url.removeprefix("tcp://").rpartition(":")
    relay = Relay(host, int(port))
    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, relay.carry, 0, host="127.0.0.1")
        listeners = await nursery.start(serve)
        near = f"tcp://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        yield relay, replace(target, url=near)
        nursery.cancel_scope.cancel(reason="the test is over")
