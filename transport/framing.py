"""Length-prefixed units of a byte stream. Sans-IO. PROTOCOL.md section 1.

Two forms, both big-endian: u16 before each Noise message, u32 before each frame of the
workstation's own door. Storing and parsing are two calls, so that a good unit before a
bad one is still delivered.
"""

import struct
from typing import Final

from transport.errors import LocalProtocolError, RemoteProtocolError, TruncatedError

NOISE_PREFIX: Final = struct.Struct(">H")
PLAIN_PREFIX: Final = struct.Struct(">I")


def encode_unit(unit: bytes, prefix: struct.Struct) -> bytes:
    """Return `unit` with its length before it; one too long for it is our bug."""
    try:
        return prefix.pack(len(unit)) + unit
    except struct.error as exc:
        raise LocalProtocolError(f"a unit of {len(unit)} bytes") from exc


class UnitDecoder:
    """Cuts a byte stream into units, however the stream was chunked.

    `maximum` is checked on the declared length, before the body is kept; it may be
    changed between units. An error repeats on every further call.
    """

    def __init__(self, prefix: struct.Struct, *, minimum: int, maximum: int) -> None:
        self._prefix = prefix
        self._minimum = minimum
        self.maximum = maximum
        self._buffer = bytearray()
        self._ended = False

    @property
    def ended(self) -> bool:
        """The stream has ended and every whole unit was taken."""
        return self._ended and not self._buffer

    def receive_data(self, data: bytes | bytearray) -> None:
        """Take in what was read; `b""` means end of stream."""
        if not data:
            self._ended = True
        self._buffer += data

    def next_unit(self) -> bytes | None:
        """Return the next whole unit, or `None` when there is none (yet).

        Raises:
            RemoteProtocolError: a declared length outside the bounds.
            TruncatedError: the stream ended inside a unit.
        """
        start = self._prefix.size
        if len(self._buffer) >= start:
            length: int = self._prefix.unpack_from(self._buffer)[0]
            if not self._minimum <= length <= self.maximum:
                raise RemoteProtocolError(f"a unit of {length} bytes")
            end = start + length
            if len(self._buffer) >= end:
                unit = bytes(self._buffer[start:end])
                del self._buffer[:end]
                return unit
        if self._ended and self._buffer:
            raise TruncatedError("the stream ended inside a unit")
        return None
