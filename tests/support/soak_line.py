"""A line from a device to agent.sock: it stalls, is slow, and breaks."""

import random
from contextlib import suppress
from pathlib import Path

import trio


class Line:
    """A line from a device to agent.sock: it stalls, is slow, and breaks."""

    def __init__(self, socket: Path, rng: random.Random) -> None:
        self._socket = socket
        self._rng = rng
        self._calls: set[trio.CancelScope] = set()
        self._stalled = trio.Event()
        self._stalled.set()
        self.calm = False

    def cut(self) -> None:
        for scope in self._calls:
            scope.cancel()

    async def stall(self, seconds: float) -> None:
        self._stalled = trio.Event()
        await trio.sleep(seconds)
        self._stalled.set()

    async def carry(self, near: trio.SocketStream) -> None:
        async with near:
            try:
                far = await trio.open_unix_socket(str(self._socket))
            except OSError:
                return
            async with far, trio.open_nursery() as nursery:
                scope = nursery.cancel_scope
                self._calls.add(scope)
                nursery.start_soon(self._copy, near, far, scope)
                nursery.start_soon(self._copy, far, near, scope)
            self._calls.discard(scope)

    async def _copy(
        self,
        source: trio.SocketStream,
        sink: trio.SocketStream,
        scope: trio.CancelScope,
    ) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while True:
                chunk = await source.receive_some(self._rng.choice([1, 700, 65_536]))
                if not chunk:
                    break
                await self._stalled.wait()
                if not self.calm and self._rng.random() < 0.05:
                    await trio.sleep(self._rng.random() * 0.05)
                await sink.send_all(chunk)
        scope.cancel()
