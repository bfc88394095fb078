"""A session's requests, from the frame to the answer. Trio shell.

PROTOCOL.md section 1. Each runs in a task of its own, begun in the order received; its
answers may overtake. Mutations run on when the session ends (`acts`).
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol

import trio

from agent.access.rights import Rights
from agent.app_servers.reads import Reads
from agent.events.voice import Voice
from agent.faults import refusal_for
from agent.sessions.acts import Acts
from agent.sessions.requests import (
    InvalidCount,
    Ping,
    Pong,
    Request,
    Unreadable,
    read_frame,
)
from agent.sessions.router import Call, Desk, Router
from transport.codec import pack
from transport.errors import (
    CloseCode,
    Forbidden,
    InvalidParams,
    LocalProtocolError,
    MethodNotFound,
    NotOpen,
    Overloaded,
    Refusal,
)
from transport.protocol.gateway import Limits
from transport.protocol.methods import EVENTS_SUBSCRIBE, METHODS, Access

_OPEN: Final = "session/open"
_ACTS: Final = frozenset({Access.WRITE, Access.APPROVE})


class CallingSession(Desk, Protocol):
    """The session that the requests came in by."""

    rights: Rights
    opened: bool

    @property
    def device_id(self) -> str:
        """Whose session it is."""
        ...

    def end(self, code: CloseCode) -> None:
        """Say CLOSE and hang up."""
        ...


class Calls:
    """The requests of one session. `denied`: told a device and what it may not call."""

    def __init__(
        self,
        session: CallingSession,
        voice: Voice,
        *,
        router: Router,
        limits: Limits,
        acts: Acts,
        reads: Reads,
        denied: Callable[[str, str], None],
    ) -> None:
        self._session = session
        self._voice = voice
        self._router = router
        self._limits = limits
        self._acts = acts
        self._reads = reads
        self._denied = denied
        self._invalid = InvalidCount()
        self._in_flight: set[int] = set()

    async def take_in(
        self, frame: Mapping[str, Any], *, handler_nursery: trio.Nursery
    ) -> None:
        """Begin what a frame asks for. Requests begin in the order of their frames."""
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
        if _access(request) in _ACTS:
            await self._acts.start(self._session.device_id, run)
        else:
            await handler_nursery.start(_begin, run)

    def _check_before(self, request: Request) -> None:
        if request.id in self._in_flight:
            self._count_invalid()
            raise InvalidParams(
                "A request with this id is in flight.",
                data={"field": "id", "reason": "in flight"},
            )
        bound = self._limits.in_flight
        if len(self._in_flight) >= bound:
            raise Overloaded(
                f"{bound} requests are in flight; wait for an answer.",
                data={"limit": bound},
                retry_after_ms=100,
            )
        if not self._session.opened and request.method != _OPEN:
            self._count_invalid()
            raise NotOpen("session/open comes first.")
        if _access(request) in _ACTS:
            self._acts.check_room(self._session.device_id)

    def _call_now(self) -> Call:
        return Call(rights=self._session.rights, desk=self._session)

    async def _run(self, request: Request, call: Call) -> None:
        try:
            result = await self._carry_out(request, call)
            answer = self._packed({"id": request.id, "result": result})
        except Refusal as refusal:
            if isinstance(refusal, InvalidParams | MethodNotFound):
                self._count_invalid()
            elif isinstance(refusal, Forbidden):
                self._denied(self._session.device_id, request.method)
            self._refuse(request.id, self._told(refusal))
        except Exception as exc:  # noqa: BLE001 - one request's fault is not the session's
            self._refuse(request.id, refusal_for(exc, request.method))
        else:
            self._answer(request.id, answer)

    async def _carry_out(self, request: Request, call: Call) -> dict[str, Any]:
        route = partial(self._router.call, call, request.method, request.params)
        if _access(request) is not Access.READ:
            return await route()
        async with self._reads.turn(self._session.device_id):
            result = await route()
        if request.method != EVENTS_SUBSCRIBE.name:  # that asks for the rights anew
            self._check_sight(call)
        return result

    def _check_sight(self, call: Call) -> None:
        """What was read for eyes that could see more is not told any more."""
        if call.rights.epoch != self._session.rights.epoch:
            raise Forbidden(
                "What this device may see was changed meanwhile; ask again."
            )

    def _packed(self, answer: Mapping[str, Any]) -> bytes:
        packed = pack(answer)
        if len(packed) > self._limits.frame_out:
            raise LocalProtocolError(f"an answer of {len(packed)} bytes")
        return packed

    def _told(self, refusal: Refusal) -> Refusal:
        """Codex's words and the paths in them are for the workstation alone."""
        if self._session.rights.caller.is_local and refusal.whole is not None:
            return refusal.whole
        return refusal

    def _refuse(self, call_id: int, refusal: Refusal) -> None:
        told = refusal.wire()
        try:
            answer = self._packed({"id": call_id, "error": told})
        except (
            LocalProtocolError
        ):  # what it quotes fits no frame: the no is told without
            told.pop("data", None)
            answer = self._packed({"id": call_id, "error": told})
        self._answer(call_id, answer)

    def _refuse_early(self, call_id: int, refusal: Refusal) -> None:
        """Refuse what was not started: one with its id may be in flight."""
        self._voice.answer(pack({"id": call_id, "error": refusal.wire()}))

    def _answer(self, call_id: int, frame: bytes) -> None:
        self._in_flight.discard(call_id)
        self._voice.answer(frame)

    def _count_invalid(self) -> None:
        if self._invalid.add(trio.current_time()):
            # The answer is queued in this same step; the voice still says it.
            self._session.end(CloseCode.PROTOCOL_ERROR)


def _access(request: Request) -> Access | None:
    row = METHODS.get(request.method)
    return None if row is None else row.access


async def _begin(
    run: Callable[[], Awaitable[None]], *, task_status: trio.TaskStatus[None]
) -> None:
    task_status.started()
    await run()
