"""Raw devices at an Agent's doors: they read when the test says so, and never by themselves."""

import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import trio

from tests.support.agents import (
    Device,
    House,
)
from tests.support.edge import Peer, open_params
from transport.carriers import tcp
from transport.channel import Channel, connect_channel
from transport.connection import Mode

# So many knocks at once as a test needs; the bounds themselves have tests of their own.
WIDE_DOORS: dict[str, Any] = {
    "half_open": 1_024,
    "half_open_per_source": 256,
    "handshakes_per_second": 1_000,
    "handshake_burst": 1_000,
    "handshakes_per_second_total": 10_000,
}


def address_of(house: House) -> tuple[str, int]:
    """Return where the Agent listens for devices."""
    host, port = house.running.tcp[0].removeprefix("tcp://").rsplit(":", 1)
    return host, int(port)


class Raw:
    """The raw devices of one test."""

    def __init__(self, house: House) -> None:
        self._house = house
        self.sockets: list[trio.socket.SocketType] = []

    async def dial(self, device: Device, *, unix: bool = False) -> Peer:
        """Connect over TCP; or `unix`: there the kernel keeps 200 KB for who does not
        read, and not megabytes."""
        running = self._house.running
        plain = trio.socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
        self.sockets.append(plain)
        place = str(running.agent_path) if unix else address_of(self._house)
        await plain.connect(place)
        channel = await connect_channel(
            trio.SocketStream(plain),
            mode=Mode.SESSION,
            agent_key=running.agent_key,
            identity=device.identity,
            psk=device.paired.psk.reveal(),
            padded=not unix,
        )
        return Peer(channel)

    async def session(
        self, device: Device, instance: str, *, unix: bool = False
    ) -> Peer:
        """Connect and open a session; nobody reads it from now on."""
        peer = await self.dial(device, unix=unix)
        answer = await peer.call("session/open", open_params(instance))
        assert "result" in answer, answer
        return peer


@contextmanager
def raw_devices(house: House) -> Generator[Raw]:
    """Yield the maker of raw devices; they are all cut off at the end."""
    raw = Raw(house)
    try:
        yield raw
    finally:
        for one in raw.sockets:
            one.close()


async def connect_device(house: House, device: Device) -> Channel:
    """Connect a device over TCP; its channel is the caller's to close."""
    return await connect_channel(
        await tcp.connect(*address_of(house)),
        mode=Mode.SESSION,
        agent_key=house.running.agent_key,
        identity=device.identity,
        psk=device.paired.psk.reveal(),
        padded=True,
    )


@asynccontextmanager
async def open_peer(house: House, device: Device) -> AsyncGenerator[Peer]:
    """Connect and open a session for the length of the block."""
    peer = Peer(await connect_device(house, device))
    try:
        assert "result" in await peer.call("session/open", open_params())
        yield peer
    finally:
        await peer.channel.aclose()


async def raw_tcp(house: House) -> trio.SocketStream:
    """Connect as anybody can, and say nothing."""
    return await trio.open_tcp_stream(*address_of(house))


async def end_of(stream: trio.SocketStream) -> bytes:
    """Return all that the Agent says until it hangs up."""
    said = b""
    async with stream:
        with suppress(trio.BrokenResourceError):
            async for data in stream:
                said += data
    return said
