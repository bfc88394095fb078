"""One connected device: its requests, its rights, its end. Trio shell.

PROTOCOL.md sections 1 and 2. Three tasks in one nursery: the reader (this call), the
voice that writes, and a timekeeper. Requests are started in the order received, each in
a task of its own; their answers may overtake.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import trio

from agent.acts import Acts
from agent.batches import View
from agent.edge_limits import CLOSING_S, OPEN_S
from agent.faults import refusal_for
from agent.feed import Feed
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
from agent.scopes import check_access, check_alive
from agent.session_table import SessionTable
from agent.voice import Voice
from transport.channel import MessageChannel
from transport.codec import pack
from transport.errors import (
    ChannelClosedError,
    CloseCode,
    Forbidden,
    InvalidParams,
    LocalProtocolError,
    MethodNotFound,
    NotOpen,
    Overloaded,
    PeerClosedError,
    Refusal,
    RemoteProtocolError,
    TruncatedError,
)
from transport.protocol.events import SessionChanged, SessionClosing
from transport.protocol.gateway import AgentInfo, GateState, Limits, RuntimeState
from transport.protocol.methods import EVENTS_SUBSCRIBE, METHODS, Access
from transport.protocol.session import (
    SessionOpenParams,
    SessionOpenResult,
    SubscribeParams,
    SubscribeResult,
)

_OPEN: Final = "session/open"
_ACTS: Final = frozenset({Access.WRITE, Access.APPROVE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """What all sessions of an Agent share.

    `seen` is told the device of each session that opens, `denied` a device and the
    method that it may not call. `now_ms`: the wall clock.
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
        )
        self._invalid = InvalidCount()
        self._in_flight: set[int] = set()
        self._ended_calls: list[Callable[[], None]] = []
        self._opened = False
        self._scope = trio.CancelScope()
        self._gone = trio.Event()
        self._started_at = self._pinged_at = trio.current_time()
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
            handler_nursery.start_soon(self._speak)
            handler_nursery.start_soon(self._keep_time)
            await self._read(first, handler_nursery)
        finally:
            self._edge.table.remove(self)
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
        if not self._opened:
            return
        ceiling = rights.device.ceiling
        assert ceiling is not None, "the workstation's own rights never change"
        self._voice.tell(
            SessionChanged(
                epoch=rights.epoch, scopes=rights.device.scopes, ceiling=ceiling
            )
        )
        if "read" not in rights.caller.scopes:
            self._voice.subscription.stop()
        elif rights.epoch != seen_before:
            place = self._voice.subscription.change(self._view(None, deltas=True))
            if place is not None:  # an old cursor and old items are worth nothing now
                self._voice.tell_gap(place)

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
            while self._voice.ending is None:
                await self._take_in(frame, handler_nursery)
                await self._voice.wait_room()
                frame = await self._channel.receive()
        except (TruncatedError, PeerClosedError, ChannelClosedError):
            self._voice.end(CloseCode.DONE, None)
        except RemoteProtocolError:
            self._voice.end(CloseCode.PROTOCOL_ERROR, None)
        else:
            await trio.sleep_forever()  # the voice says the last word

    async def _take_in(
        self, frame: Mapping[str, Any], handler_nursery: trio.Nursery
    ) -> None:
        match read_frame(frame):
            case Ping(number):
                self._voice.answer_ping(number)
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
        if _is_act(request):
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
        if _is_act(request):
            self._edge.acts.check_room(self.device_id)

    def _call_now(self) -> Call:
        return Call(rights=self.rights, desk=self)

    async def _run(self, request: Request, call: Call) -> None:
        try:
            result = await self._edge.router.call(call, request.method, request.params)
            if _is_read(request):
                self._check_sight(call)
            answer = self._packed_answer(request.id, result)
        except Refusal as refusal:
            if isinstance(refusal, InvalidParams | MethodNotFound):
                self._count_invalid()
            elif isinstance(refusal, Forbidden):
                self._edge.denied(self.device_id, request.method)
            self._refuse(request.id, refusal)
        except Exception as exc:  # noqa: BLE001 - one request's fault is not the session's
            self._refuse(request.id, refusal_for(exc, request.method))
        else:
            self._answer(request.id, answer)

    def _check_sight(self, call: Call) -> None:
        """What was read for eyes that could see more is not told any more."""
        if call.rights.epoch != self.rights.epoch:
            raise Forbidden(
                "What this device may see was changed meanwhile; ask again."
            )

    def _packed_answer(self, call_id: int, result: Mapping[str, Any]) -> bytes:
        answer = pack({"id": call_id, "result": result})
        if len(answer) > self._edge.limits.frame_out:
            raise LocalProtocolError(f"an answer of {len(answer)} bytes")
        return answer

    def _refuse(self, call_id: int, refusal: Refusal) -> None:
        self._answer(call_id, pack({"id": call_id, "error": refusal.wire()}))

    def _refuse_early(self, call_id: int, refusal: Refusal) -> None:
        """Refuse what was not started: one with its id may be in flight."""
        self._voice.answer(pack({"id": call_id, "error": refusal.wire()}))

    def _answer(self, call_id: int, frame: bytes) -> None:
        self._in_flight.discard(call_id)
        self._voice.answer(frame)

    def _count_invalid(self) -> None:
        if self._invalid.add(trio.current_time()):
            # The answer is queued in this same step; the voice still says it.
            self.end(CloseCode.PROTOCOL_ERROR)

    async def _speak(self) -> None:
        await self._voice.serve()
        self._scope.cancel(reason="the Agent has closed the session")

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
        self._voice.ping(self._pings)


def _is_act(request: Request) -> bool:
    row = METHODS.get(request.method)
    return row is not None and row.access in _ACTS


def _is_read(request: Request) -> bool:
    """Whether its answer shows what the rights let see (a subscription asks anew)."""
    row = METHODS.get(request.method)
    return row not in (None, EVENTS_SUBSCRIBE) and row.access is Access.READ


async def _begin(
    run: Callable[[], Awaitable[None]], *, task_status: trio.TaskStatus[None]
) -> None:
    task_status.started()
    await run()
