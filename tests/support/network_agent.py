"""A small Agent behind real carriers: enough to prove the transport, nothing else.

It opens sessions, answers `gateway/status`, confirms pairings as told, and echoes a
notice for every subscribe. The handshake, channels and carriers are the real ones.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio

from tests.support.memory_agent import AGENT as AGENT_INFO
from tests.support.memory_agent import DEVICE as DEVICE_INFO
from tests.support.memory_agent import STATUS, FakeAgent
from transport.carriers import tcp, unix
from transport.channel import MessageChannel, Mode, PlainChannel, accept_channel
from transport.codec import pack
from transport.errors import CloseCode, HandshakeError, TransportError
from transport.identities import PrivateKey, Secret
from transport.pairing import check_number, device_psk, pairing_psk


@dataclass
class NetworkAgent:
    """What it knows, and what happened. `psks`: the paired devices'."""

    identity: PrivateKey = field(default_factory=PrivateKey.generate)
    psks: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    offer: Secret | None = None
    say_yes: bool = True
    checks: list[str] = field(default_factory=list[str])
    names: list[bytes] = field(default_factory=list[bytes])
    refused: int = 0
    channels: list[MessageChannel] = field(default_factory=list[MessageChannel])
    seen: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def psk_for(self, mode: Mode, key: bytes) -> bytes | None:
        if mode is Mode.SESSION:
            return self.psks.get(key)
        return None if self.offer is None else pairing_psk(self.offer)

    async def serve_network(self, stream: trio.SocketStream) -> None:
        try:
            channel = await accept_channel(
                stream, identity=self.identity, psk_for=self.psk_for, padded=True
            )
        except HandshakeError:
            self.refused += 1
            return
        self.channels.append(channel)
        if channel.mode is Mode.SESSION:
            await self._serve(channel)
            return
        request = await channel.receive()
        self.names.append(channel.payload)
        self.checks.append(check_number(channel.handshake_hash))
        await channel.send([pack({"id": request["id"], **self._decided()})])
        if self.say_yes and self.offer is not None:
            psk = device_psk(self.offer, channel.handshake_hash)
            self.psks[channel.remote_static] = psk
        self.offer = None
        await channel.aclose()

    async def serve_plain(self, stream: trio.SocketStream) -> None:
        channel = PlainChannel(stream)
        self.channels.append(channel)
        await self._serve(channel)

    async def _serve(self, channel: MessageChannel) -> None:
        results: dict[str, Any] = {
            "session/open": FakeAgent().opened(),
            "gateway/status": STATUS,
            "events/subscribe": {
                "epoch": "e1",
                "head": 100,
                "verdict": "new",
                "open": [],
            },
        }
        try:
            while True:
                frame = await channel.receive()
                self.seen.append(frame)
                if "id" in frame:
                    result = results[frame["method"]]
                    await channel.send([pack({"id": frame["id"], "result": result})])
        except TransportError:
            await channel.aclose(CloseCode.DONE)

    def _decided(self) -> dict[str, Any]:
        if self.say_yes:
            return {"result": {"device": DEVICE_INFO, "agent": AGENT_INFO}}
        error = {
            "code": "forbidden",
            "message": "The answer was no.",
            "retryable": False,
        }
        return {"error": error}


Handler = Callable[[trio.SocketStream], Any]


@asynccontextmanager
async def _served(
    handler: Handler, listeners: Sequence[trio.abc.Listener[trio.SocketStream]]
) -> AsyncGenerator[None]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, handler, list(listeners))
        yield
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def on_tcp(agent: NetworkAgent) -> AsyncGenerator[str]:
    """Serve devices on loopback; yield the url."""
    (listener,) = await tcp.listen("127.0.0.1", 0)
    async with _served(agent.serve_network, [listener]):
        yield tcp.address(listener)


@asynccontextmanager
async def on_unix(agent: NetworkAgent, path: Path) -> AsyncGenerator[str]:
    """Serve devices on a Unix socket; yield the url."""
    async with _served(agent.serve_network, await unix.listen(path)):
        yield f"unix://{path}"


@asynccontextmanager
async def on_admin(agent: NetworkAgent, path: Path) -> AsyncGenerator[Path]:
    """Serve the owner; yield the path."""
    async with _served(agent.serve_plain, await unix.listen(path)):
        yield path
