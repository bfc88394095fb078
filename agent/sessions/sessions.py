"""One connected device: its opening, its rights, its end. Trio shell.

PROTOCOL.md sections 1 and 2. Three tasks in one nursery: the reader (this call), the
voice that writes, and a timekeeper. What a device asks for runs in `session_calls`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import trio

from agent.access.rights import Rights
from agent.access.scopes import check_access, check_alive
from agent.app_servers.reads import Reads
from agent.edge_limits import CLOSING_S
from agent.events.batches import View
from agent.events.feed import Feed
from agent.events.voice import Voice
from agent.sessions.acts import Acts
from agent.sessions.requests import choose_version
from agent.sessions.router import Router
from agent.sessions.session_calls import Calls
from agent.sessions.session_table import SessionTable
from agent.sessions.timekeeping import Due, Seen, Timekeeping
from transport.channel import MessageChannel
from transport.errors import (
    ChannelClosedError,
    CloseCode,
    InvalidParams,
    Overloaded,
    PeerClosedError,
    RemoteProtocolError,
    TruncatedError,
)
from transport.protocol.events import SessionChanged, SessionClosing
from transport.protocol.gateway import AgentInfo, GateState, Limits, RuntimeState
from transport.protocol.methods import EVENTS_SUBSCRIBE
from transport.protocol.session import (
    SessionOpenParams,
    SessionOpenResult,
    SubscribeParams,
    SubscribeResult,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """What all sessions of an Agent share.

    `seen` is told the device of each session that opens, `denied` a device and the
    method that it may not call. `now_ms`: the wall clock. `wanted` is told which threads
    a session is subscribed to (None: all), `left` which one is to none any more.
    """

    feed: Feed
    router: Router
    table: "SessionTable[Session]"
    agent: AgentInfo
    limits: Limits
    gate: Callable[[], GateState]
    runtime: Callable[[], RuntimeState]
    seen: Callable[[str], None]
    denied: Callable[[str, str], None]
    acts: Acts
    now_ms: Callable[[], int]
    wanted: Callable[[object, frozenset[str] | None], None] = lambda _one, _threads: (
        None
    )
    left: Callable[[object], None] = lambda _one: None
    reads: Reads = field(default_factory=Reads)


class Session:
    """Lives as long as its connection. `network`: deltas wait 20 ms for company."""

    def __init__(
        self, edge: Edge, channel: MessageChannel, rights: Rights, *, network: bool
    ) -> None:
        self.rights = rights
        self.instance = ""
        self._edge = edge
        self._channel = channel
        self._voice = Voice(
            channel,
            edge.feed,
            epoch=rights.epoch,
            network=network,
            now_ms=edge.now_ms,
            unsent=partial(edge.reads.note_unsent, rights.device.id),
        )
        self._calls = Calls(
            self,
            self._voice,
            router=edge.router,
            limits=edge.limits,
            acts=edge.acts,
            reads=edge.reads,
            denied=edge.denied,
        )
        self._ended_calls: list[Callable[[], None]] = []
        self.opened = False
        self._scope = trio.CancelScope()
        self._gone = trio.Event()
        self._time = Timekeeping(edge.limits, now=trio.current_time())
        self._unread_at = float("-inf")

    @property
    def device_id(self) -> str:
        """Whose session it is."""
        return self.rights.device.id

    async def serve(
        self, first: Mapping[str, Any], *, handler_nursery: trio.Nursery
    ) -> None:
        """Serve until either side ends it, beginning with the frame that proved the
        peer; the channel is closed then. The nursery is the session's own."""
        self._scope = handler_nursery.cancel_scope
        try:
            handler_nursery.start_soon(self._speak)
            handler_nursery.start_soon(self._keep_time)
            await self._read(first, handler_nursery)
        finally:
            self._edge.table.remove(self)
            self._edge.left(self)
            for callback in self._ended_calls:
                callback()
            with trio.move_on_after(CLOSING_S, shield=True):
                await self._channel.aclose(self._voice.ending or CloseCode.DONE)
            self._gone.set()
        handler_nursery.cancel_scope.cancel(reason="the session has ended")

    def end(self, code: CloseCode, closing: SessionClosing | None = None) -> None:
        """Say `closing` and CLOSE, then hang up; within a second in any case.

        Nothing else is sent from now on, and no further request is started.
        """
        if self._voice.ending is None:
            self._voice.end(code, closing)
            self._edge.table.remove(self)
            self._scope.deadline = min(
                self._scope.deadline, trio.current_time() + CLOSING_S
            )

    async def wait_gone(self) -> None:
        """Return when its connection is closed."""
        await self._gone.wait()

    def change(self, rights: Rights) -> None:
        """Go on with other rights, and tell the device."""
        seen_before, self.rights = self.rights.epoch, rights
        self._voice.epoch = rights.epoch
        if not self.opened:
            return
        ceiling = rights.device.ceiling
        assert ceiling is not None, "the workstation's own rights never change"
        self._voice.tell(
            SessionChanged(
                epoch=rights.epoch, scopes=rights.device.scopes, ceiling=ceiling
            )
        )
        if "read" not in rights.caller.scopes:
            self._voice.subscription.silence()
            self._edge.left(self)
        elif rights.epoch != seen_before:
            self._see_otherwise()

    def _see_otherwise(self) -> None:
        """An old cursor and old items are worth nothing now; nor is it silent any more."""
        subscription = self._voice.subscription
        place = subscription.change(self._view(None, deltas=True))
        if place is not None:
            self._voice.tell_gap(place)
            self._edge.wanted(self, subscription.threads)

    # What handlers ask of a session (router.Desk)

    def open(self, params: SessionOpenParams) -> SessionOpenResult:
        """Open the session: first of all requests, and once."""
        if self.opened:
            raise InvalidParams(
                "This session is open already.",
                data={"field": "method", "reason": "once a session"},
            )
        check_alive(self.rights.caller)  # revoked or changed since the handshake
        version = choose_version(params.protocol)
        self.instance = params.client.instance
        self._admit()
        self.opened = True
        edge, rights = self._edge, self.rights
        edge.seen(self.device_id)
        return SessionOpenResult(
            protocol=version,
            agent=edge.agent,
            device=rights.device,
            runtime=edge.runtime(),
            gate=edge.gate(),
            epoch=rights.epoch,
            head=edge.feed.journal.head,
            now=edge.now_ms(),
            limits=edge.limits,
        )

    def subscribe(self, params: SubscribeParams) -> SubscribeResult:
        """Replace the subscription; events follow this answer.

        Raises: Forbidden where these rights were taken away since the request came.
        """
        check_access(self.rights.caller, EVENTS_SUBSCRIBE)
        threads = None if params.threads == "all" else frozenset(params.threads)
        place = self._voice.subscription.begin(
            self._view(threads, deltas=params.deltas),
            epoch=self.rights.epoch,
            resume=params.resume,
        )
        self._edge.wanted(self, threads)
        return SubscribeResult(
            epoch=self.rights.epoch,
            head=place.head,
            verdict=str(place.verdict),
            open=list(place.open),
        )

    def on_end(self, callback: Callable[[], None]) -> None:
        """Call this when the session has ended."""
        self._ended_calls.append(callback)

    def _admit(self) -> None:
        try:
            replaced = self._edge.table.add(self)
        except Overloaded:
            self.end(CloseCode.OVERLOADED)
            raise
        for older in replaced:
            older.end(CloseCode.REPLACED)

    def _view(self, threads: frozenset[str] | None, *, deltas: bool) -> View:
        return View(
            threads=threads,
            deltas=deltas,
            whole=self.rights.caller.is_local,
            sees=self.rights.sees,
        )

    # Reading

    async def _read(
        self, first: Mapping[str, Any], handler_nursery: trio.Nursery
    ) -> None:
        frame = first
        try:
            while self._voice.ending is None:
                await self._calls.take_in(frame, handler_nursery=handler_nursery)
                await self._voice.wait_room()
                frame = await self._channel.receive()
        except (TruncatedError, PeerClosedError, ChannelClosedError):
            self._voice.end(CloseCode.DONE, None)
        except RemoteProtocolError:
            self._voice.end(CloseCode.PROTOCOL_ERROR, None)
        else:
            await trio.sleep_forever()  # the voice says the last word

    async def _speak(self) -> None:
        await self._voice.serve()
        self._scope.cancel(reason="the Agent has closed the session")

    # Time

    async def _keep_time(self) -> None:
        while True:
            now = trio.current_time()
            match self._time.due(now, self._seen()):
                case Due.DEAD:
                    self._scope.cancel(reason="the peer is dead")
                case Due.RENEW:
                    return self.end(CloseCode.RENEW)
                case Due.UNOPENED:
                    return self.end(CloseCode.PROTOCOL_ERROR)
                case Due.PING:
                    self._voice.ping(self._time.ping(now))
                case None:
                    pass
            await trio.sleep_until(self._time.next_look(self._seen()))

    def _seen(self) -> Seen:
        channel = self._channel
        if self._voice.full:  # it is not read, but takes what it is sent, so it lives
            self._unread_at = trio.current_time()
        return Seen(
            heard_at=max(channel.heard_at, self._unread_at),
            sent_at=channel.sent_at,
            opened=self.opened,
        )
