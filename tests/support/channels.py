"""Real channels over streams in memory, and a relay between that can do harm."""

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import trio
from trio.testing import memory_stream_pair

from transport.channel import Channel, Mode, accept_channel, connect_channel
from transport.codec import pack
from transport.identities import PrivateKey
from transport.records import RecordType

AGENT = PrivateKey.generate()
DEVICE = PrivateKey.generate()
PSK = bytes(range(32))

Relay = Callable[[int, bytes], Iterable[bytes]]
"""From the number of a unit and the unit (its length before it) to what is passed on."""


def psk_for(mode: Mode, key: bytes) -> bytes | None:
    del mode
    return PSK if key == DEVICE.public else None


async def accept(stream: trio.abc.Stream, **changes: Any) -> Channel:
    values: dict[str, Any] = {"identity": AGENT, "psk_for": psk_for, "padded": True}
    return await accept_channel(stream, **(values | changes))


async def connect(stream: trio.abc.Stream, **changes: Any) -> Channel:
    values: dict[str, Any] = {
        "mode": Mode.SESSION,
        "agent_key": AGENT.public,
        "identity": DEVICE,
        "psk": PSK,
        "padded": True,
    }
    return await connect_channel(stream, **(values | changes))


async def channel_pair(
    near: trio.abc.Stream | None = None, far: trio.abc.Stream | None = None
) -> tuple[Channel, Channel]:
    """Return (device, agent); the frame that confirmed the device is taken."""
    if near is None or far is None:
        near, far = memory_stream_pair()
    found: list[Channel] = []

    async def be_the_agent(stream: trio.abc.Stream) -> None:
        found.append(await accept(stream))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(be_the_agent, far)
        device = await connect(near)
        await device.send([pack({"first": True})])
    agent = found[0]
    assert await agent.receive() == {"first": True}
    return device, agent


async def say_half(channel: Channel) -> None:
    """Send a record that begins a frame."""
    connection = channel._connection  # pyright: ignore[reportPrivateUsage]
    ciphers = connection._ciphers  # pyright: ignore[reportPrivateUsage]
    assert ciphers is not None
    seal, io = connection._seal, channel._io  # pyright: ignore[reportPrivateUsage]
    await io.send(seal(ciphers[0], RecordType.PART, b"half"))


async def read_unit(stream: trio.abc.ReceiveStream, kept: bytearray) -> bytes | None:
    """Return the next length and unit; `None` at the end."""
    while len(kept) < 2 or len(kept) < 2 + int.from_bytes(kept[:2], "big"):
        data = await stream.receive_some(65_536)
        if not data:
            return None
        kept += data
    end = 2 + int.from_bytes(kept[:2], "big")
    unit = bytes(kept[:end])
    del kept[:end]
    return unit


async def _pass_on(
    source: trio.abc.Stream, sink: trio.abc.Stream, relay: Relay
) -> None:
    kept, number = bytearray(), 0
    try:
        while (unit := await read_unit(source, kept)) is not None:
            for passed in relay(number, unit):
                await sink.send_all(passed)
            number += 1
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    await sink.aclose()


def honest(_number: int, unit: bytes) -> list[bytes]:
    return [unit]


@asynccontextmanager
async def relayed(
    *, to_agent: Relay = honest, to_device: Relay = honest
) -> AsyncGenerator[tuple[trio.abc.Stream, trio.abc.Stream]]:
    """Yield (device's stream, agent's stream) with a relay between them."""
    near, relay_near = memory_stream_pair()
    relay_far, far = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_pass_on, relay_near, relay_far, to_agent)
        nursery.start_soon(_pass_on, relay_far, relay_near, to_device)
        yield near, far
        nursery.cancel_scope.cancel()
