"""Plain frames over a Trio stream: the workstation's own door. Trio shell.

PROTOCOL.md section 1: u32 length, then a packed map.
"""

from collections.abc import Sequence
from typing import Any

import trio

from transport.codec import unpack
from transport.errors import (
    CloseCode,
    LocalProtocolError,
    PeerClosedError,
    RemoteProtocolError,
)
from transport.framing import PLAIN_PREFIX, UnitDecoder, encode_unit
from transport.limits import ADMIN_FRAME, RECEIVE_CHUNK
from transport.stream_io import StreamIO


class PlainChannel:
    """The workstation's own door: a length and a packed map, nothing else.

    No encryption and no CLOSE record: both ends are processes of one user, and an end
    of stream between two frames is a proper end.
    """

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._io = StreamIO(stream)
        self._decoder = UnitDecoder(PLAIN_PREFIX, minimum=1, maximum=ADMIN_FRAME)
        self._error: RemoteProtocolError | None = None

    @property
    def heard_at(self) -> float:
        """When bytes last came, in `trio.current_time()`."""
        return self._io.heard_at

    @property
    def sent_at(self) -> float:
        """When bytes were last sent, in `trio.current_time()`."""
        return self._io.sent_at

    async def send(self, frames: Sequence[bytes]) -> None:
        """See `MessageChannel.send`."""
        if any(len(frame) > ADMIN_FRAME for frame in frames):
            raise LocalProtocolError(f"a frame above {ADMIN_FRAME} bytes")
        data = b"".join(encode_unit(frame, PLAIN_PREFIX) for frame in frames)
        await self._io.send(data)

    async def receive(self) -> dict[str, Any]:
        """See `MessageChannel.receive`; a proper end is `PeerClosedError` done."""
        if self._error is not None:
            raise self._error
        try:
            while (unit := self._decoder.next_unit()) is None:
                if self._decoder.ended:
                    raise PeerClosedError(CloseCode.DONE, 0)
                self._decoder.receive_data(await self._io.read(RECEIVE_CHUNK))
            return unpack(unit)
        except RemoteProtocolError as exc:
            self._error = exc
            raise

    async def aclose(self, code: CloseCode = CloseCode.DONE) -> None:
        """Close the stream; there is no way to tell a code on this door."""
        del code
        await self._io.close_now()
