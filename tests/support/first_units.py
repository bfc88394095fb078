"""What a device says first, right or wrong, and an Agent that must hang up without a byte."""

from typing import Any

import pytest
import trio
from trio.testing import memory_stream_pair

from tests.support.channels import (
    AGENT,
    DEVICE,
    PSK,
    accept,
)
from transport.channel import Mode
from transport.connection import DeviceConnection
from transport.errors import (
    HandshakeError,
)
from transport.framing import NOISE_PREFIX, encode_unit
from transport.identities import PrivateKey


def first_unit(**changes: Any) -> bytes:
    """Return what a device says first, without its length."""
    values: dict[str, Any] = {
        "mode": Mode.SESSION,
        "agent_key": AGENT.public,
        "identity": DEVICE,
        "ephemeral": PrivateKey.generate(),
        "psk": PSK,
        "padded": True,
    }
    return DeviceConnection(**(values | changes)).first_bytes[2:]


class Watched(trio.abc.Stream):
    """Counts what an Agent reads and writes."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self.read = self.written = 0

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self.written += len(data)
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data = await self._stream.receive_some(max_bytes)
        self.read += len(data)
        return data

    async def aclose(self) -> None:
        await self._stream.aclose()


async def silent(data: bytes, **changes: Any) -> Watched:
    """Send this to an Agent; it must hang up without a byte."""
    near, far = memory_stream_pair()
    watched = Watched(far)
    await near.send_all(data)
    with trio.fail_after(240), pytest.raises(HandshakeError):
        await accept(watched, **changes)
    assert watched.written == 0
    assert await near.receive_some() == b""
    return watched


def unit(data: bytes) -> bytes:
    """Return data with its length in front, as it is sent."""
    return encode_unit(data, NOISE_PREFIX)
