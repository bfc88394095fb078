"""The doors: agent.sock, TCP and admin.sock, from accept to a served session. Trio shell.

PROTOCOL.md section 1, SECURITY.md. Until a device's first record has proved it there, and
the frame that it begins is whole, a connection holds a slot of `Admittance` and nothing
else; whatever fails before that record looks the same from outside: silence.
"""

import errno
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import trio

from adapter.errors import STARVED
from agent.access.rights import Rights
from agent.access.scopes import LOCAL, Caller
from agent.edge_limits import ACCEPT_PAUSE_S, INCIDENT_S
from agent.pairing.devices import Devices
from agent.pairing.offers import Offer
from agent.pairing.pair import Pairings
from agent.pairing.pairing_door import serve_pairing
from agent.sessions.admittance import Admittance, source_of
from agent.sessions.incidents import Incidents
from agent.sessions.sessions import Edge, Session
from agent.sessions.spares import Spares
from transport.carriers.tcp import peer_host
from transport.channel import (
    Channel,
    MessageChannel,
    Mode,
    PlainChannel,
    accept_channel,
    receive_first,
)
from transport.errors import HandshakeError, NotFound, TransportError
from transport.identities import PrivateKey
from transport.limits import HANDSHAKE_S

_LOG: Final = logging.getLogger(__name__)
_NO_ROOM: Final = frozenset({*STARVED, errno.ENOBUFS, errno.ECONNABORTED})
_THIS_MACHINE: Final = "this machine"

S = TypeVar("S", bound=trio.abc.AsyncResource)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """What every connection needs. `rights_of`: a device's rights as of now. `locked`:
    the owner wants no device here: it meets what a stranger meets. `recall`: to be called
    before any of them opens; it drops what a gate that starts locked must not let through.
    """

    edge: Edge
    identity: PrivateKey
    devices: Devices
    pairings: Pairings
    admittance: Admittance
    incidents: Incidents
    rights_of: Callable[[str], Rights]
    local_rights: Rights
    locked: Callable[[], bool]
    recall: Callable[[], Awaitable[None]]

    def caller_of(self, device_id: str) -> Caller | None:
        """Return a device with its rights as of now; the workstation itself too."""
        if device_id == LOCAL:
            return self.local_rights.caller
        try:
            return self.rights_of(device_id).caller
        except NotFound:
            return None

    async def serve_tcp(self, stream: trio.SocketStream) -> None:
        """Serve a device from the network: records are padded, deltas gathered."""
        try:
            host = peer_host(stream)
        except OSError:  # gone already
            await trio.aclose_forcefully(stream)
            return
        await self._serve_device(stream, source=source_of(host), shown=host)

    async def serve_unix(self, stream: trio.SocketStream) -> None:
        """Serve a device over agent.sock (itself, or a bridge such as ssh)."""
        await self._serve_device(stream, source=None, shown=_THIS_MACHINE)

    async def serve_admin(self, stream: trio.SocketStream) -> None:
        """Serve the owner: plain frames, the peer's uid was looked at."""
        channel = PlainChannel(stream)
        frame: dict[str, object] | None = None
        with trio.move_on_after(HANDSHAKE_S):
            frame = await channel.receive()
        if frame is not None:
            await self._serve_session(channel, self.local_rights, frame, network=False)

    async def _serve_device(
        self, stream: trio.abc.Stream, *, source: str | None, shown: str
    ) -> None:
        network = source is not None
        knock = _Knock(self)
        with self._slot(source) as let_in:
            if not let_in:
                return
            try:
                channel = await accept_channel(
                    stream,
                    identity=self.identity,
                    psk_for=knock.psk_for,
                    padded=network,
                )
            except BaseException as exc:
                knock.fail()
                if isinstance(exc, HandshakeError):
                    self.incidents.knocked("handshake/refused", shown)
                raise
            first: dict[str, object] | None = None
            if channel.mode is Mode.SESSION:
                first = await receive_first(channel)
        if first is None:
            assert knock.offer is not None
            await serve_pairing(self.pairings, channel, knock.offer, source=shown)
        else:
            await self._welcome(channel, first, network=network)

    async def _welcome(
        self, channel: Channel, first: dict[str, object], *, network: bool
    ) -> None:
        device = self.devices.by_public(channel.remote_static)
        gone = device is None or device.revoked or self.locked()  # since the handshake
        if device is not None and not gone:
            rights = self.rights_of(device.id)
            await self._serve_session(channel, rights, first, network=network)

    async def _serve_session(
        self,
        channel: MessageChannel,
        rights: Rights,
        first: dict[str, object],
        *,
        network: bool,
    ) -> None:
        session = Session(self.edge, channel, rights, network=network)
        async with trio.open_nursery() as nursery:
            await session.serve(first, handler_nursery=nursery)

    @contextmanager
    def _slot(self, source: str | None) -> Generator[bool]:
        if not self.admittance.enter(source, trio.current_time()):
            yield False
            return
        try:
            yield True
        finally:
            self.admittance.leave(source)


class _Knock:
    """One handshake: which psk it was given, and what to tell if it fails."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors
        self.offer: Offer | None = None

    def psk_for(self, mode: Mode, public: bytes) -> bytes | None:
        if self._doors.locked():
            return None
        if mode is Mode.SESSION:
            return self._doors.devices.psk_of(public)
        begun = self._doors.pairings.begin_handshake()
        if begun is None:
            return None
        psk, self.offer = begun
        return psk

    def fail(self) -> None:
        if self.offer is not None:
            self._doors.pairings.fail_handshake(self.offer)


async def accept_forever(
    listener: trio.abc.Listener[S],
    serve: Callable[[S], Awaitable[None]],
    *,
    handler_nursery: trio.Nursery,
    spares: int = 0,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Accept on one listener until cancelled; connections live in `handler_nursery`.

    `spares`: how many descriptors it holds, for when no other is left. Without one it
    waits then; the sessions that are open go on.
    """
    with closing(Spares(spares)) as held:
        door = _Door(listener, held)
        async with listener:
            task_status.started()
            while True:
                stream = await door.accept()
                handler_nursery.start_soon(_serve_one, serve, stream, held)


class _Door(Generic[S]):
    """A listener that may run out of descriptors, and says so once a minute."""

    def __init__(self, listener: trio.abc.Listener[S], spares: Spares) -> None:
        self._listener = listener
        self._spares = spares
        self._quiet_until = float("-inf")

    async def accept(self) -> S:
        """Return the next connection, however long there is no room for one."""
        while True:
            try:
                return await self._listener.accept()
            except OSError as exc:
                if exc.errno not in _NO_ROOM:
                    raise
                self._tell(exc)
                if not self._spares.give_up():
                    await trio.sleep(ACCEPT_PAUSE_S)

    def _tell(self, exc: OSError) -> None:
        now = trio.current_time()
        if now >= self._quiet_until:
            self._quiet_until = now + INCIDENT_S
            _LOG.warning("cannot accept (%s): waiting", exc.strerror)


async def _serve_one(
    serve: Callable[[S], Awaitable[None]], stream: S, spares: Spares
) -> None:
    """Serve one connection; its faults are its own."""
    try:
        await serve(stream)
    except TransportError as exc:
        _LOG.debug("connection ended: %s", type(exc).__name__)
    except Exception as exc:  # noqa: BLE001 - one connection must not end the Agent
        # No traceback: its texts may quote a thread.
        _LOG.error("connection failed: %s", type(exc).__name__, exc_info=False)
    finally:
        try:
            await trio.aclose_forcefully(stream)
        finally:
            spares.lay_in()
