"""One connected device: reads its requests, writes all that is new for it. Trio shell.

PROTOCOL.md sections 1, 2 and 6. Three tasks in one nursery: the reader (this call), a
writer that takes everything new and does one send, and a timekeeper. Requests are
started in the order received, each in a task of its own; their answers may overtake.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import trio

from agent.acts import Acts
from agent.batches import View
from agent.edge_limits import CLOSING_S, COMPANY_S, OPEN_S
from agent.faults import refusal_for
from agent.feed import Feed
from agent.outbox import Outbox
from agent.requests import (
    InvalidCount,
    Ping,
    Pong,
    Request,
    Unreadable,
    choose_version,
    read_frame,
)
from agent.rights import Rights
from agent.router import Call, Router
from agent.scopes import check_alive
from agent.session_table import SessionTable
from agent.subscriptions import News, Place, Subscription
from transport.channel import MessageChannel
from transport.codec import pack
from transport.errors import (
    CloseCode,
    InvalidParams,
    LocalProtocolError,
    MethodNotFound,
    NotOpen,
    Overloaded,
    Refusal,
    RemoteProtocolError,
    StalledError,
    TransportError,
)
from transport.protocol.events import (
    EventData,
    Gap,
    Notice,
    NoticeLevel,
    SessionChanged,
    SessionClosing,
)
from transport.protocol.gateway import AgentInfo, GateState, Limits, RuntimeState
from transport.protocol.methods import METHODS, Access
from transport.protocol.session import (
    SessionOpenParams,
    SessionOpenResult,
    SubscribeParams,
    SubscribeResult,
)

_LOG: Final = logging.getLogger(__name__)
_OPEN: Final = "session/open"
_ACTS: Final = frozenset({Access.WRITE, Access.APPROVE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """What all sessions of an Agent share.

    `seen` is told the device of each session that opens. `now_ms`: the wall clock.
    """

    feed: Feed
    router: Router
    table: "SessionTable[Session]"
    agent: AgentInfo
    limits: Limits
    gate: Callable[[], GateState]
    runtime: Callable[[], RuntimeState]
    seen: Callable[[str], None]
    acts: Acts
    now_ms: Callable[[], int]


class Session:
    """Lives as long as its connection. `network`: deltas wait 20 ms for company."""

    def __init__(
        self, edge: Edge, channel: MessageChannel, rights: Rights, *, network: bool
    ) -> None:
        self.rights = rights
        self.instance = ""
        self._edge = edge
        self._channel = channel
        self._network = network
        self._outbox = Outbox()
        self._subscription = Subscription(edge.feed.journal, edge.feed.batches)
        self._invalid = InvalidCount()
        self._in_flight: set[int] = set()
        self._ended_calls: list[Callable[[], None]] = []
        self._opened = False
        self._bell = trio.Event()
        self._written = trio.Event()
        self._ending: CloseCode | None = None
        self._farewell: SessionClosing | None = None
        self._scope = trio.CancelScope()
        self._gone = trio.Event()
        self._started_at = self._pinged_at = trio.current_time()
        self._deltas_at = float("-inf")
        self._pings = 0

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
            handler_nursery.start_soon(self._write)
            handler_nursery.start_soon(self._keep_time)
            await self._read(first, handler_nursery)
        finally:
            self._edge.table.remove(self)
            for callback in self._ended_calls:
                callback()
            with trio.move_on_after(CLOSING_S, shield=True):
                await self._channel.aclose(self._ending or CloseCode.DONE)
            self._gone.set()
        handler_nursery.cancel_scope.cancel(reason="the session has ended")

    def end(self, code: CloseCode, closing: SessionClosing | None = None) -> None:
        """Say `closing` and CLOSE, then hang up; within a second in any case.

        Nothing else is sent from now on, and no further request is started.
        """
        if self._ending is None:
            self._ending = code
            self._farewell = closing
            self._edge.table.remove(self)
            self._scope.deadline = min(
                self._scope.deadline, trio.current_time() + CLOSING_S
            )
            self._ring()

    async def wait_gone(self) -> None:
        """Return when its connection is closed."""
        await self._gone.wait()

    def change(self, rights: Rights) -> None:
        """Go on with other rights, and tell the device."""
        seen_before, self.rights = self.rights.epoch, rights
        if not self._opened:
            return
        ceiling = rights.device.ceiling
        assert ceiling is not None, "the workstation's own rights never change"
        self._tell(
            SessionChanged(
                epoch=rights.epoch, scopes=rights.device.scopes, ceiling=ceiling
            )
        )
        if rights.epoch != seen_before:
            place = self._subscription.change(self._view(None, deltas=True))
            if place is not None:  # an old cursor and old items are worth nothing now
                self._tell_gap(place)

    # What handlers ask of a session (router.Desk)

    def open(self, params: SessionOpenParams) -> SessionOpenResult:
        """Open the session: first of all requests, and once."""
        if self._opened:
            raise InvalidParams(
                "This session is open already.",
                data={"field": "method", "reason": "once a session"},
            )
        check_alive(self.rights.caller)  # revoked or changed since the handshake
        version = choose_version(params.protocol)
        self.instance = params.client.instance
        self._admit()
        self._opened = True
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
        """Replace the subscription; events follow this answer."""
        threads = None if params.threads == "all" else frozenset(params.threads)
        place = self._subscription.begin(
            self._view(threads, deltas=params.deltas),
            epoch=self.rights.epoch,
            resume=params.resume,
        )
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
        return View(threads=threads, deltas=deltas, sees=self.rights.sees)

    # Reading

    async def _read(
        self, first: Mapping[str, Any], handler_nursery: trio.Nursery
    ) -> None:
        frame = first
        try:
            while self._ending is None:
                await self._take_in(frame, handler_nursery)
                await self._wait_room()
                frame = await self._channel.receive()
        except RemoteProtocolError:
            self._ending = self._ending or CloseCode.PROTOCOL_ERROR
        except TransportError:
            self._ending = self._ending or CloseCode.DONE
        else:
            await trio.sleep_forever()  # the writer says the last word

    async def _take_in(
        self, frame: Mapping[str, Any], handler_nursery: trio.Nursery
    ) -> None:
        match read_frame(frame):
            case Ping(number):
                self._outbox.answer_ping(number)
                self._ring()
            case Pong():
                pass
            case Unreadable(call_id, refusal):
                self._count_invalid()
                if call_id is not None:
                    self._refuse_early(call_id, refusal)
            case Request() as request:
                try:
                    self._check_before(request)
                except Refusal as refusal:
                    self._refuse_early(request.id, refusal)
                else:
                    self._in_flight.add(request.id)
                    await self._start(request, handler_nursery)

    async def _start(self, request: Request, handler_nursery: trio.Nursery) -> None:
        """Return at the handler's first wait: the next request begins after it."""
        run = partial(self._run, request, self._call_now())
        row = METHODS.get(request.method)
        if row is not None and row.access in _ACTS:
            await self._edge.acts.start(self.device_id, run)
        else:
            await handler_nursery.start(_begin, run)

    def _check_before(self, request: Request) -> None:
        if request.id in self._in_flight:
            self._count_invalid()
            raise InvalidParams(
                "A request with this id is in flight.",
                data={"field": "id", "reason": "in flight"},
            )
        bound = self._edge.limits.in_flight
        if len(self._in_flight) >= bound:
            raise Overloaded(
                f"{bound} requests are in flight; wait for an answer.",
                data={"limit": bound},
                retry_after_ms=100,
            )
        if not self._opened and request.method != _OPEN:
            self._count_invalid()
            raise NotOpen("session/open comes first.")
        self._edge.acts.check_room(self.device_id)

    def _call_now(self) -> Call:
        return Call(rights=self.rights, desk=self)

    async def _run(self, request: Request, call: Call) -> None:
        try:
            result = await self._edge.router.call(call, request.method, request.params)
            answer = self._packed_answer(request.id, result)
        except Refusal as refusal:
            if isinstance(refusal, InvalidParams | MethodNotFound):
                self._count_invalid()
            self._refuse(request.id, refusal)
        except Exception as exc:  # noqa: BLE001 - one request's fault is not the session's
            self._refuse(request.id, refusal_for(exc, request.method))
        else:
            self._answer(request.id, answer)

    def _packed_answer(self, call_id: int, result: Mapping[str, Any]) -> bytes:
        answer = pack({"id": call_id, "result": result})
        if len(answer) > self._edge.limits.frame_out:
            raise LocalProtocolError(f"an answer of {len(answer)} bytes")
        return answer

    def _refuse(self, call_id: int, refusal: Refusal) -> None:
        self._answer(call_id, pack({"id": call_id, "error": refusal.wire()}))

    def _refuse_early(self, call_id: int, refusal: Refusal) -> None:
        """Refuse what was not started: one with its id may be in flight."""
        self._outbox.add(pack({"id": call_id, "error": refusal.wire()}))
        self._ring()

    def _answer(self, call_id: int, frame: bytes) -> None:
        self._in_flight.discard(call_id)
        self._outbox.add(frame)
        self._ring()

    def _count_invalid(self) -> None:
        if self._invalid.add(trio.current_time()):
            self.end(CloseCode.PROTOCOL_ERROR)

    async def _wait_room(self) -> None:
        """A peer that asks and does not read is not read either."""
        while self._outbox.full:
            self._written = trio.Event()
            await self._written.wait()

    # Writing

    async def _write(self) -> None:
        while self._ending is None:
            frames = self._new_frames()
            if frames:
                await self._send(frames)
            else:
                await self._wait_news()
        await self._say_goodbye()
        self._scope.cancel(reason="the session was closed by the Agent")

    def _new_frames(self) -> list[bytes]:
        now = trio.current_time()
        cursor = self._subscription.position
        frames = self._outbox.take(seq=cursor, now_ms=self._edge.now_ms())
        self._written.set()
        if self._subscription.behind and (frames or not self._wants_company(now)):
            whole = self._subscription.urgent
            news = self._subscription.take(now)
            if news.gap is not None:
                self._tell_gap(news.gap)
                self._tell_quiet(news)
                frames += self._outbox.take(seq=None, now_ms=self._edge.now_ms())
            elif news.frames and not whole:
                self._deltas_at = now
            frames += news.frames
        return frames

    def _wants_company(self, now: float) -> bool:
        """Whether deltas should wait: the first of a burst goes at once."""
        early = now < self._deltas_at + COMPANY_S
        return self._network and early and not self._subscription.urgent

    async def _wait_news(self) -> None:
        """Wait for a ring of our own, or of the journal where it concerns us."""
        self._bell = bell = trio.Event()
        feed = self._edge.feed
        if self._ending is not None or self._outbox:
            return
        if self._subscription.behind:  # held back for company, or not for us
            with trio.move_on_at(self._deltas_at + COMPANY_S):
                await feed.wait(bell, whole=True)
        elif self._subscription.position is not None:
            await feed.wait(bell)
        else:
            await bell.wait()

    async def _send(self, frames: list[bytes]) -> None:
        try:
            await self._channel.send(frames)
        except StalledError:
            _LOG.info("a session of %s takes nothing: closed", self.device_id)
            self._ending = self._ending or CloseCode.TOO_SLOW
        except TransportError:
            await trio.sleep_forever()  # the reader finds out why, and ends it

    async def _say_goodbye(self) -> None:
        frames = self._outbox.take(seq=None, now_ms=self._edge.now_ms())
        if self._ending is CloseCode.REVOKED:
            frames = []  # nothing more for this device
        if self._farewell is not None:
            frames.append(self._packed(self._farewell))
        with suppress(TransportError):
            if frames:
                await self._channel.send(frames)
        await self._channel.aclose(self._ending or CloseCode.DONE)

    def _tell_gap(self, place: Place) -> None:
        self._tell(Gap(epoch=self.rights.epoch, head=place.head, open=list(place.open)))

    def _tell_quiet(self, news: News) -> None:
        if news.quiet:
            self._tell(
                Notice(
                    level=NoticeLevel.WARNING,
                    code="deltasOff",
                    message="This connection is too slow for deltas; whole items go "
                    "on. Subscribe again to have deltas back.",
                )
            )

    def _tell(self, data: EventData) -> None:
        self._outbox.add(self._packed(data))
        self._ring()

    def _packed(self, data: EventData) -> bytes:
        at = self._edge.now_ms()
        return pack({"event": data.event, "at": at, "data": data.wire()})

    def _ring(self) -> None:
        self._bell.set()

    # Time

    async def _keep_time(self) -> None:
        limits = self._edge.limits
        ping_s, dead_s = limits.ping_ms / 1000, limits.dead_ms / 1000
        until = self._started_at + limits.session_ms / 1000
        while True:
            now = trio.current_time()
            if now >= self._channel.heard_at + dead_s:
                self._scope.cancel(reason="the peer is dead")
            elif now >= until:
                return self.end(CloseCode.RENEW)
            elif not self._opened and now >= self._started_at + OPEN_S:
                return self.end(CloseCode.PROTOCOL_ERROR)
            elif now >= max(self._channel.sent_at, self._pinged_at) + ping_s:
                self._ping(now)
            await trio.sleep_until(
                min(
                    until if self._opened else self._started_at + OPEN_S,
                    self._channel.heard_at + dead_s,
                    max(self._channel.sent_at, self._pinged_at) + ping_s,
                )
            )

    def _ping(self, now: float) -> None:
        self._pings += 1
        self._pinged_at = now
        self._outbox.ping(self._pings)
        self._ring()


async def _begin(
    run: Callable[[], Awaitable[None]], *, task_status: trio.TaskStatus[None]
) -> None:
    task_status.started()
    await run()
