"""Channels: frames over a Trio stream, encrypted for devices. Trio shell around `connection`.

PROTOCOL.md section 1. The workstation's own door is a `PlainChannel`; to what lies above
both look alike (`MessageChannel`).
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

import trio

from transport.connection import (
    AgentConnection,
    ChoosePsk,
    CloseArrived,
    Confirmed,
    Connection,
    DeviceConnection,
    Established,
    Event,
    FrameArrived,
    Mode,
)
from transport.errors import (
    CloseCode,
    HandshakeError,
    LocalProtocolError,
    PeerClosedError,
    TransportError,
)
from transport.identities import PrivateKey
from transport.limits import (
    CLOSE_S,
    FIRST_UNIT_S,
    HANDSHAKE_S,
    MAX_FIRST_UNIT,
    RECEIVE_CHUNK,
)
from transport.plain_channel import PlainChannel
from transport.stream_io import StreamIO

__all__ = [
    "Channel",
    "MessageChannel",
    "Mode",
    "PlainChannel",
    "accept_channel",
    "connect_channel",
    "receive_first",
]

_HANDSHAKE_CHUNK: Final = MAX_FIRST_UNIT + 2  # a stranger makes us keep no more


class MessageChannel(Protocol):
    """Both kinds of door look like this. One task receives, any may send."""

    @property
    def heard_at(self) -> float:
        """When bytes last came, in `trio.current_time()`."""
        ...

    @property
    def sent_at(self) -> float:
        """When bytes were last sent, in `trio.current_time()`."""
        ...

    async def send(self, frames: Sequence[bytes]) -> None:
        """Send packed maps, all of them in one write.

        A cancelled or stalled send has spent nonces and perhaps left half a record, so
        the stream is closed with it.

        Raises:
            LocalProtocolError: a frame above the limit; nothing was sent.
            StalledError: the peer takes nothing.
            TruncatedError: the peer is gone (its CLOSE may still be there to receive).
            ChannelClosedError: this side has closed.
        """
        ...

    async def receive(self) -> dict[str, Any]:
        """Return the next frame. A cancelled call loses nothing.

        Raises:
            PeerClosedError: the peer said CLOSE.
            TruncatedError: the stream ended or broke without one.
            RemoteProtocolError: the peer broke the protocol; close.
            ChannelClosedError: this side has closed.
        """
        ...

    async def aclose(self, code: CloseCode = CloseCode.DONE) -> None:
        """Say CLOSE (for `CLOSE_S` at most), then close the stream.

        A peer that broke the protocol is told `protocolError` whatever `code` says.
        """
        ...


class Channel:
    """An authenticated, encrypted channel. Made by the two functions below.

    `remote_static`: the peer's public key. `payload`: what its message 1 carried (a
    pairing: the device's name, raw). `handshake_hash`: 32 bytes, unique to the channel.
    """

    def __init__(self, io: StreamIO, connection: Connection, made: Established) -> None:
        self._io = io
        self._connection = connection
        self.mode = made.mode
        self.remote_static = made.remote_static
        self.handshake_hash = made.handshake_hash
        self.payload = made.payload

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
        await self._io.take_turn()
        try:
            # Sealed under the lock: records must leave in the order of their nonces.
            await self._io.write(self._connection.send(frames))
        finally:
            self._io.end_turn()

    async def receive(self) -> dict[str, Any]:
        """See `MessageChannel.receive`."""
        event = await _next_event(self._io, self._connection, RECEIVE_CHUNK)
        match event:
            case FrameArrived(value):
                return value
            case CloseArrived(code, number):
                raise PeerClosedError(code, number)
            case Established() | Confirmed():
                raise LocalProtocolError("the handshake was over before")

    async def aclose(self, code: CloseCode = CloseCode.DONE) -> None:
        """See `MessageChannel.aclose`."""
        with trio.move_on_after(CLOSE_S, shield=True):
            await self._say_close(code)
        await self._io.close_now()

    async def _say_close(self, code: CloseCode) -> None:
        try:
            await self._io.take_turn()
        except TransportError:
            return
        try:
            if record := self._connection.close(code):
                await self._io.write(record)
        except TransportError:
            return  # the peer has gone first
        finally:
            self._io.end_turn()


async def connect_channel(
    stream: trio.abc.Stream,
    *,
    mode: Mode,
    agent_key: bytes,
    identity: PrivateKey,
    psk: bytes,
    payload: bytes = b"",
    padded: bool,
    within_s: float = HANDSHAKE_S,
) -> Channel:
    """Be the device: shake hands over `stream`, which the channel then owns.

    Send something soon: the Agent believes nothing before the first record.

    Raises:
        HandshakeError: no channel came about within `within_s`; the stream is closed.
            An Agent that refuses is silent: it just hangs up.
    """
    connection = DeviceConnection(
        mode=mode,
        agent_key=agent_key,
        identity=identity,
        ephemeral=PrivateKey.generate(),
        psk=psk,
        payload=payload,
        padded=padded,
    )
    io = StreamIO(stream)

    async def shake() -> Channel:
        await io.send(connection.first_bytes)
        made = await _next_event(io, connection, RECEIVE_CHUNK)
        assert isinstance(made, Established)  # the first event of every connection
        return Channel(io, connection, made)

    return await _within_deadline(shake, io, within_s)


async def accept_channel(
    stream: trio.abc.Stream,
    *,
    identity: PrivateKey,
    psk_for: ChoosePsk,
    padded: bool,
) -> Channel:
    """Be the Agent: return when the device has *proven* to be there.

    That is after its first record (message 1 may be a replay); the frame in it is
    what `receive` returns first. Until then nothing may happen because of it.

    Raises:
        HandshakeError: a stranger, a wrong psk, garbage, too slow (`FIRST_UNIT_S` for
            message 1, `HANDSHAKE_S` in all). The stream is closed; nothing was said.
    """
    io = StreamIO(stream)
    connection = AgentConnection(
        identity=identity,
        ephemeral=PrivateKey.generate(),
        choose_psk=psk_for,
        padded=padded,
    )

    async def shake() -> Channel:
        made: Event | None = None
        with trio.move_on_after(FIRST_UNIT_S):
            made = await _next_event(io, connection, _HANDSHAKE_CHUNK)
        if made is None:
            raise HandshakeError("no message 1 in time")
        assert isinstance(made, Established)  # the first event of every connection
        await io.send(made.reply)
        await _next_event(io, connection, RECEIVE_CHUNK)  # Confirmed, or it raises
        return Channel(io, connection, made)

    return await _within_deadline(shake, io, HANDSHAKE_S)


async def receive_first(channel: Channel) -> dict[str, Any]:
    """Return the frame whose first record has proven the device.

    Raises: as `receive`; HandshakeError: the rest of it does not come in `HANDSHAKE_S`.
    """
    with trio.move_on_after(HANDSHAKE_S):
        return await channel.receive()
    raise HandshakeError("no whole frame in time")


async def _next_event(io: StreamIO, connection: Connection, chunk: int) -> Event:
    while (event := connection.next_event()) is None:
        connection.receive_data(await io.read(chunk))
    return event


async def _within_deadline(
    shake: Callable[[], Awaitable[Channel]], io: StreamIO, seconds: float
) -> Channel:
    """Run a handshake; whatever goes wrong, the stream is closed without a word."""
    try:
        with trio.move_on_after(seconds):
            return await shake()
    except BaseException as exc:
        await io.close_now()  # noqa: ASYNC102 - closes forcefully, without waiting
        if isinstance(exc, TransportError) and not isinstance(exc, HandshakeError):
            raise HandshakeError(str(exc)) from exc  # noqa: ASYNC104
        raise
    await io.close_now()
    raise HandshakeError("no handshake in time")
