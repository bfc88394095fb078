"""A connection in memory that ends after so many bytes, in the middle of whatever they are."""

import math

import trio
from trio.testing import (
    MemoryReceiveStream,
    MemorySendStream,
)


class Cuttable(trio.abc.Stream):
    """A stream that can be cut, at once or in the middle of what it carries."""

    def __init__(
        self, inner: trio.StapledStream[MemorySendStream, MemoryReceiveStream]
    ) -> None:
        self._inner = inner
        self._left: float = math.inf

    def cut(self, after: int) -> None:
        """End it when so many more bytes have passed."""
        self._left = after
        if after == 0:
            self._inner.receive_stream.put_eof()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._inner.send_all(bytes(data)[: self._take(len(data))])
        await self._end_if_cut()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await self._end_if_cut()
        data = bytes(await self._inner.receive_some(max_bytes))
        part = data[: self._take(len(data))]
        if not part:
            await self._end_if_cut()
        return part

    def _take(self, count: int) -> int:
        taken = int(min(count, self._left))
        self._left -= taken
        return taken

    async def _end_if_cut(self) -> None:
        if self._left <= 0:
            await trio.aclose_forcefully(self._inner)
            raise trio.BrokenResourceError

    async def wait_send_all_might_not_block(self) -> None:
        await self._inner.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._inner.aclose()
