"""A line between a device and the Agent that a test can cut. Plain TCP, byte for byte."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

import trio

from transport.client import Target


@dataclass
class Relay:
    """A line to the Agent that a test can cut. `up`: whether it takes new callers."""

    host: str
    port: int
    up: bool = True
    _calls: set[trio.CancelScope] = field(default_factory=set[trio.CancelScope])

    def cut(self) -> None:
        """Lose every connection, and take no new one."""
        self.up = False
        for scope in self._calls:
            scope.cancel()

    async def carry(self, near: trio.SocketStream) -> None:
        """Copy both ways until one side ends."""
        async with near:
            if not self.up:
                return
            async with (
                await trio.open_tcp_stream(self.host, self.port) as far,
                trio.open_nursery() as nursery,
            ):
                self._calls.add(nursery.cancel_scope)
                nursery.start_soon(self._copy, near, far, nursery.cancel_scope)
                nursery.start_soon(self._copy, far, near, nursery.cancel_scope)

    async def _copy(
        self,
        source: trio.SocketStream,
        sink: trio.SocketStream,
        scope: trio.CancelScope,
    ) -> None:
        with suppress(trio.BrokenResourceError):
            async for chunk in source:
                await sink.send_all(chunk)
        scope.cancel()


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
