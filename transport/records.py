"""Records: what one Noise message holds after the handshake. Sans-IO. PROTOCOL.md 1.

Plaintext: `type:u8 len:u16 body zeros`. A frame is one or more parts; CLOSE ends the
stream in a way that a cut line cannot fake. Padding hides how long a token was: sizes
and timing of streamed text tell much of it through any encryption.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from transport.errors import RemoteProtocolError
from transport.noise import MAX_PLAINTEXT

_HEADER: Final = struct.Struct(">BH")
MAX_BODY: Final = MAX_PLAINTEXT - _HEADER.size
_BUCKET: Final = 128  # bytes; up to 1 KiB
_FINE_UP_TO: Final = 1024


class RecordType(IntEnum):
    """4 and 5 were other projects' keepalive and are not used; keepalive is a message."""

    LAST = 0
    PART = 1
    CLOSE = 2
    WINDOW = 3  # reserved: taken, ignored


@dataclass(frozen=True, slots=True)
class Record:
    """One record without its padding."""

    type: RecordType
    body: bytes


def encode_record(kind: RecordType, body: bytes, *, padded: bool) -> bytes:
    """Return the plaintext of one record; `body` is at most `MAX_BODY` bytes."""
    plain = _HEADER.pack(kind, len(body)) + body
    return plain.ljust(padded_size(len(plain)), b"\0") if padded else plain


def decode_record(plain: bytes) -> Record:
    """Return the record in a plaintext.

    Raises:
        RemoteProtocolError: unknown type, a length beyond the plaintext, or padding
            that is not zero (it could carry something past the reader).
    """
    if len(plain) < _HEADER.size:
        raise RemoteProtocolError("a record without a header")
    number, length = _HEADER.unpack_from(plain)
    end = _HEADER.size + length
    if end > len(plain):
        raise RemoteProtocolError("a record longer than its message")
    if plain.count(0, end) != len(plain) - end:
        raise RemoteProtocolError("padding that is not zero")
    try:
        kind = RecordType(number)
    except ValueError:
        raise RemoteProtocolError(f"a record of type {number}") from None
    return Record(kind, plain[_HEADER.size : end])


def split_frame(frame: bytes) -> Iterator[tuple[RecordType, bytes]]:
    """Cut a frame into the bodies of its records."""
    last = max(0, len(frame) - 1) // MAX_BODY * MAX_BODY
    for start in range(0, last, MAX_BODY):
        yield RecordType.PART, frame[start : start + MAX_BODY]
    yield RecordType.LAST, frame[last:]


def padded_size(size: int) -> int:
    """Return the plaintext's size with padding: buckets of 128 bytes up to 1 KiB, then
    of 1/16 of the next power of two, never over one message.
    """
    step = _BUCKET if size <= _FINE_UP_TO else (1 << (size - 1).bit_length()) >> 4
    return min(-(-size // step) * step, MAX_PLAINTEXT)


class FrameJoiner:
    """Joins parts to frames under a limit that is checked before a part is kept."""

    def __init__(self, *, max_frame: int, max_parts: int) -> None:
        self._max_frame = max_frame
        self._max_parts = max_parts
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, record: Record) -> bytes | None:
        """Take a LAST or PART record; return the frame that it completes."""
        self._size += len(record.body)
        if self._size > self._max_frame or len(self._parts) >= self._max_parts:
            raise RemoteProtocolError("a frame above the limit")
        self._parts.append(record.body)
        if record.type is RecordType.PART:
            return None
        frame = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return frame
