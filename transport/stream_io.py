"""A Trio stream with one writer at a time, watched, whose errors are ours. Trio shell."""

import trio

from transport.errors import ChannelClosedError, StalledError, TruncatedError
from transport.limits import SEND_SLICE, STALLED_SEND_S


class StreamIO:
    """The stream itself: one writer at a time, watched; errors become ours."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._lock = trio.StrictFIFOLock()
        self._closed = False
        self._broken = False
        self.heard_at = self.sent_at = trio.current_time()

    async def take_turn(self) -> None:
        """Wait to be the writer; where nobody else writes, without giving way.

        Whoever is cancelled already is told here, before anything is sealed: then the
        channel stays good, and can still say CLOSE.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            self._lock.acquire_nowait()
        except trio.WouldBlock:
            await self._lock.acquire()
        if self._closed or self._broken:
            self._lock.release()
            if self._closed:
                raise ChannelClosedError("the channel is closed")
            raise TruncatedError("the peer is gone")

    def end_turn(self) -> None:
        self._lock.release()

    async def send(self, data: bytes) -> None:
        """Wait for the turn, write all, and give the turn back."""
        await self.take_turn()
        try:
            await self.write(data)
        finally:
            self.end_turn()

    async def write(self, data: bytes) -> None:
        """Write all, or close. The caller has the turn."""
        try:
            if len(data) <= SEND_SLICE:
                await self._write_slice(data)
            else:
                view = memoryview(data)
                for start in range(0, len(data), SEND_SLICE):
                    await self._write_slice(view[start : start + SEND_SLICE])
        except trio.BrokenResourceError as exc:
            # Not closed yet: the reader may still find the peer's CLOSE in the stream.
            self._broken = True
            raise TruncatedError("the peer is gone") from exc
        except trio.ClosedResourceError as exc:
            raise ChannelClosedError("the channel was closed while sending") from exc
        except BaseException:
            await self.close_now()  # noqa: ASYNC102 - forcefully, without waiting
            raise

    async def _write_slice(self, data: bytes | memoryview) -> None:
        with trio.move_on_after(STALLED_SEND_S) as patience:
            await self._stream.send_all(data)
        if patience.cancelled_caught:
            raise StalledError(f"the peer took nothing for {STALLED_SEND_S:g} s")
        self.sent_at = trio.current_time()

    async def read(self, size: int) -> bytes | bytearray:
        try:
            data = await self._stream.receive_some(size)
        except trio.BrokenResourceError as exc:
            raise TruncatedError("the connection broke") from exc
        except trio.ClosedResourceError as exc:
            raise ChannelClosedError("the channel is closed") from exc
        self.heard_at = trio.current_time()
        return data

    async def close_now(self) -> None:
        self._closed = True
        await trio.aclose_forcefully(self._stream)
