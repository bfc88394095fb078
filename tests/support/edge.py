"""Sessions over memory streams: the Agent's edge without an Agent behind it.

`Bench` has a journal, a router whose handlers a test sets, and a table of sessions;
`Peer` is a raw device: it sends and receives plain maps over a real Noise channel.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, Final

import trio
import trio.testing

from agent.access.rights import Door, Rights
from agent.access.scopes import Caller, local_caller
from agent.events.feed import Feed
from agent.events.journal import Journal
from agent.sessions.acts import Acts
from agent.sessions.epoch import epoch_of
from agent.sessions.router import Call, Handler, Router, served_methods
from agent.sessions.session_table import SessionTable
from agent.sessions.sessions import Edge, Session
from transport.channel import Channel, Mode, accept_channel, connect_channel
from transport.codec import pack
from transport.errors import PeerClosedError
from transport.identities import PrivateKey
from transport.limits import SESSION_LIMITS
from transport.protocol.base import NoParams, WireModel
from transport.protocol.gateway import (
    AgentInfo,
    Ceiling,
    DeviceInfo,
    GatePosition,
    GateState,
    RuntimePhase,
    RuntimeState,
)
from transport.protocol.session import SessionOpenParams, SubscribeParams

NOW: Final = 1_796_058_499_320
CEILING: Final = Ceiling(
    sandbox="workspace-write", approval_policy=["on-request"], roots=[]
)
AGENT: Final = AgentInfo(id="0" * 32, name="bench", version="0")
OPEN: Final[dict[str, Any]] = {
    "protocol": {"min": "2.0", "max": "2.0"},
    "client": {"name": "t", "version": "1", "platform": "x", "instance": "i1"},
}


class Nothing(WireModel):
    """An answer without content."""


def make_rights(
    *,
    scopes: frozenset[str] = frozenset({"read"}),
    door: Door = Door.DEVICE,
    epoch: str = epoch_of("e1", 0),
    sees: Callable[[str], bool] | None = None,
    alive: Callable[[], bool] = lambda: True,
    device_id: str = "00000000000000aa",
) -> Rights:
    """Return the rights of a device (or, at the other door, of the owner)."""
    caller = Caller(
        device_id=device_id,
        name="phone",
        scopes=scopes,
        ceiling=CEILING,
        alive=alive,
        follows_threads=True,
    )
    local = door is Door.WORKSTATION
    return Rights(
        door=door,
        caller=local_caller() if local else caller,
        device=DeviceInfo(
            id="local" if local else device_id,
            name="phone",
            scopes=sorted(scopes),
            ceiling=None if local else CEILING,
        ),
        epoch=epoch,
        sees=sees,
    )


def open_params(instance: str = "i1") -> dict[str, Any]:
    return {**OPEN, "client": {**OPEN["client"], "instance": instance}}


class Peer:
    """A device that says what the test wants."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._ids = count(1)
        self.others: list[dict[str, Any]] = []

    async def send(self, *frames: Mapping[str, Any]) -> None:
        await self.channel.send([pack(frame) for frame in frames])

    async def receive(self) -> dict[str, Any]:
        return await self.channel.receive()

    async def ask(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        number = next(self._ids)
        await self.send({"id": number, "method": method, "params": dict(params or {})})
        return number

    async def answer(self, number: int) -> dict[str, Any]:
        """Return one answer; what else comes is kept in `others`."""
        while True:
            frame = await self.receive()
            if frame.get("id") == number:
                return frame
            self.others.append(frame)

    async def call(
        self, method: str, params: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        return await self.answer(await self.ask(method, params))

    async def subscribe(self, **params: object) -> dict[str, Any]:
        answer = await self.call("events/subscribe", {"threads": "all", **params})
        return dict(answer["result"])

    async def closed(self) -> PeerClosedError:
        """Return the CLOSE that the Agent says; frames before go to `others`."""
        while True:
            try:
                self.others.append(await self.receive())
            except PeerClosedError as exc:
                return exc


class Bench:
    """The edge under test. Set `handlers[method]` before the first call of it."""

    def __init__(
        self,
        nursery: trio.Nursery,
        *,
        journal: Journal | None = None,
        sessions: int = 6,
    ) -> None:
        self._nursery = nursery
        self.feed = Feed(Journal() if journal is None else journal)
        self.handlers: dict[str, Handler] = {}
        self.seen: list[str] = []
        self.denied: list[tuple[str, str]] = []
        self.table: SessionTable[Session] = SessionTable(
            most=sessions, most_per_device=4
        )
        self.identity = PrivateKey.generate()
        self.edge = Edge(
            feed=self.feed,
            router=Router({name: self._handler(name) for name in served_methods()}),
            table=self.table,
            agent=AGENT,
            limits=SESSION_LIMITS,
            gate=lambda: GateState(state=GatePosition.OPEN, since=NOW),
            runtime=lambda: RuntimeState(
                state=RuntimePhase.READY, name="codex", since=NOW
            ),
            seen=self.seen.append,
            denied=lambda device, method: self.denied.append((device, method)),
            acts=Acts(nursery),
            now_ms=lambda: NOW,
        )

    def hold(self, method: str) -> trio.Event:
        """Let requests of this method wait until the event is set."""
        go_on = trio.Event()

        async def wait(_call: Call, _params: Any) -> WireModel:
            await go_on.wait()
            return Nothing()

        self.handlers[method] = wait
        return go_on

    def change_limits(self, **limits: int) -> None:
        """Replace some numbers of `limits`."""
        wanted = self.edge.limits.model_copy(update=limits)
        self.edge = replace(self.edge, limits=wanted)

    async def connect(
        self,
        rights: Rights | None = None,
        *,
        network: bool = False,
        streams: tuple[trio.abc.Stream, trio.abc.Stream] | None = None,
        opened: bool = True,
        instance: str = "i1",
        identity: PrivateKey | None = None,
    ) -> Peer:
        """Connect a device; unless told otherwise its session is open then."""
        ours, theirs = streams or trio.testing.memory_stream_pair()
        self._nursery.start_soon(
            partial(self._serve, ours, rights or make_rights(), network=network)
        )
        channel = await connect_channel(
            theirs,
            mode=Mode.SESSION,
            agent_key=self.identity.public,
            identity=identity or PrivateKey.generate(),
            psk=b"p" * 32,
            padded=network,
        )
        peer = Peer(channel)
        if opened:
            answer = await peer.call("session/open", open_params(instance))
            assert "result" in answer, answer
        return peer

    async def _serve(
        self, stream: trio.abc.Stream, rights: Rights, *, network: bool
    ) -> None:
        channel = await accept_channel(
            stream,
            identity=self.identity,
            psk_for=lambda _mode, _public: b"p" * 32,
            padded=network,
        )
        first = await channel.receive()
        session = Session(self.edge, channel, rights, network=network)
        async with trio.open_nursery() as nursery:
            await session.serve(first, handler_nursery=nursery)

    def _handler(self, name: str) -> Handler:
        async def handle(call: Call, params: Any) -> WireModel:
            return await self.handlers.get(name, _DEFAULT.get(name, _nothing))(
                call, params
            )

        return handle


async def _nothing(_call: Call, _params: NoParams) -> WireModel:
    return Nothing()


async def _open(call: Call, params: SessionOpenParams) -> WireModel:
    return call.desk.open(params)


async def _subscribe(call: Call, params: SubscribeParams) -> WireModel:
    return call.desk.subscribe(params)


_DEFAULT: Final[Mapping[str, Callable[[Call, Any], Awaitable[WireModel]]]] = {
    "session/open": _open,
    "events/subscribe": _subscribe,
}
