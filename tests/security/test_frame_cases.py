"""Attacks with records and frames, through a real channel. Numbers: SECURITY.md's cases.

Every one must end the session: the reader gets `RemoteProtocolError`, the peer a CLOSE
with `protocolError`. What a session does with legal frames is tested with the Agent.
"""

import struct
from collections.abc import Iterator
from typing import Final

import pytest
import trio
from trio.testing import memory_stream_pair

from tests.support.channels import channel_pair
from tests.support.peak_memory import measured
from transport.channel import Channel
from transport.codec import pack
from transport.connection import Connection
from transport.errors import CloseCode, PeerClosedError, RemoteProtocolError
from transport.framing import NOISE_PREFIX, encode_unit
from transport.limits import FRAME_IN, FRAME_OUT, MAX_PARTS
from transport.records import MAX_BODY, RecordType, encode_record, split_frame

MIB: Final = 1024 * 1024
LAST, PART = RecordType.LAST, RecordType.PART


class Forger:
    """A peer with good keys that sends whatever it likes."""

    def __init__(self, stream: object, channel: Channel) -> None:
        self._stream = stream
        connection: Connection = channel._connection  # pyright: ignore[reportPrivateUsage]
        ciphers = connection._ciphers  # pyright: ignore[reportPrivateUsage]
        assert ciphers is not None
        self._sending = ciphers[0]

    def seal(self, plain: bytes) -> bytes:
        return encode_unit(self._sending.encrypt_with_ad(b"", plain), NOISE_PREFIX)

    def frame(self, data: bytes) -> bytes:
        """Seal a frame, however large, as an honest peer would cut it."""
        return b"".join(
            self.seal(encode_record(kind, body, padded=False))
            for kind, body in split_frame(data)
        )


async def ends(
    plains: Iterator[bytes] | list[bytes], *, as_frames: bool = False
) -> None:
    """Send these; the session must end, and say so."""
    near, far = memory_stream_pair()
    device, agent = await channel_pair(near, far)
    forger = Forger(near, device)
    for plain in plains:
        await near.send_all(forger.frame(plain) if as_frames else forger.seal(plain))
    with trio.fail_after(240):
        with pytest.raises(RemoteProtocolError):
            while True:
                await agent.receive()
        await agent.aclose(CloseCode.DONE)
        with pytest.raises(PeerClosedError) as caught:
            await device.receive()
    assert caught.value.code is CloseCode.PROTOCOL_ERROR


@pytest.mark.parametrize("number", [4, 5, 9, 255])
async def test_an_unknown_record_type_ends_the_session(number: int) -> None:
    """Case 25."""
    await ends([struct.pack(">BH", number, 0)])


async def test_a_reserved_record_is_ignored() -> None:
    """Case 25, the other way round: type 3."""
    near, far = memory_stream_pair()
    device, agent = await channel_pair(near, far)
    forger = Forger(near, device)
    await near.send_all(
        forger.seal(encode_record(RecordType.WINDOW, b"\0\1", padded=True))
    )
    await device.send([pack({"n": 1})])
    assert await agent.receive() == {"n": 1}


async def test_parts_above_the_limit_are_not_joined() -> None:
    """Case 26: 256 KiB and one byte."""
    parts = [MAX_BODY] * (FRAME_IN // MAX_BODY)
    last = FRAME_IN + 1 - sum(parts)
    plains = [encode_record(PART, bytes(size), padded=False) for size in parts]
    await ends([*plains, encode_record(LAST, bytes(last), padded=False)])


async def test_an_endless_frame_is_not_kept() -> None:
    """Case 26: it never says LAST."""
    await ends([encode_record(PART, bytes(MAX_BODY), padded=False)] * 5)


async def test_empty_parts_are_counted() -> None:
    """Case 27."""
    await ends([encode_record(PART, b"", padded=False)] * (MAX_PARTS + 1))


FRAMES: Final = {
    "28: a million deep": b"\x81\xa1a" + b"\x91" * (FRAME_IN - 4) + b"\xc0",
    "29: an array of 2^32-1": b"\x81\xa1a\xdd\xff\xff\xff\xff",
    "29: a map of 2^32-1": b"\x81\xa1a\xdf\xff\xff\xff\xff",
    "29: a string of 2^32-1": b"\x81\xa1a\xdb\xff\xff\xff\xff",
    "29: bytes of 2^32-1": b"\x81\xa1a\xc6\xff\xff\xff\xff",
    "30: empty maps": b"\x81\xa1a\xdd"
    + struct.pack(">I", FRAME_IN - 8)
    + b"\x80" * (FRAME_IN - 8),
    "31: an extension": b"\x81\xa1a\xc7\x03\x2aabc",
    "31: a timestamp": b"\x81\xa1a\xd6\xff" + bytes(4),
    "32: an int key": b"\x81\x01\x01",
    "32: a map key": b"\x81\x80\x01",
    "32: a key twice": b"\x82\xa1a\x01\xa1a\x02",
    "33: trailing bytes": b"\x80\x80",
    "33: 0xc1": b"\xc1",
    "33: bad utf-8": b"\x81\xa1a\xa2\xff\xfe",
    "33: nan": b"\x81\xa1a\xcb\x7f\xf8" + bytes(6),
    "33: nothing": b"",
    "34: no map": b"\x91\x01",
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
async def test_a_frame_that_is_no_legal_map_ends_the_session(frame: bytes) -> None:
    """Cases 28 to 34."""
    await ends([frame], as_frames=True)


PLAINS: Final = {
    "padding that is not zero": b"\0\0\0" + bytes(124) + b"\1",
    "longer than its message": b"\0\0\x09abc",
    "no header": b"\0",
    "no byte at all": b"",
    "a CLOSE without its code": b"\2\0\0",
    "a CLOSE with more": b"\2\0\2\0\0",
}


@pytest.mark.parametrize("plain", PLAINS.values(), ids=PLAINS.keys())
async def test_a_record_that_is_not_as_specified_ends_the_session(plain: bytes) -> None:
    """Case 35."""
    await ends([plain])


async def test_a_megabyte_of_small_containers_stays_small() -> None:
    """Case 30: the largest frame an Agent may send, filled with the worst."""
    inner = b"\xdc" + struct.pack(">H", 4_096) + b"\x80" * 4_096
    bomb = b"\x81\xa1a\xdc" + struct.pack(">H", 255) + inner * 255
    assert MIB - 10_000 < len(bomb) <= FRAME_OUT
    near, far = memory_stream_pair()
    device, agent = await channel_pair(near, far)
    await far.send_all(Forger(far, agent).frame(bomb))
    with measured() as peak:
        with pytest.raises(RemoteProtocolError):
            await device.receive()
        assert peak() < 15
