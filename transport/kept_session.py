"""A session that is kept: opened, lived, lost, and opened again. Trio shell.

PROTOCOL.md sections 1 and 2. After a loss it comes back with the back-off of section 1:
at once where the Agent asks to renew, never after it revoked or replaced this device.
"""

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NoReturn, TypeVar

import tenacity
import trio
from pydantic import ValidationError

from transport.background import open_background
from transport.channel import MessageChannel
from transport.errors import (
    CloseCode,
    PeerClosedError,
    Refusal,
    RemoteProtocolError,
    TransportError,
    UnreachableError,
)
from transport.limits import CALL_S
from transport.link import Frame, Link
from transport.protocol.base import WireModel
from transport.protocol.events import SessionChanged, SessionClosing
from transport.protocol.methods import SESSION_OPEN, Method
from transport.protocol.session import (
    PROTOCOL_VERSION,
    ClientInfo,
    SessionOpenParams,
    SessionOpenResult,
    VersionRange,
)
from transport.reconnect import Backoff, comes_back

R = TypeVar("R", bound=WireModel)

_CLOSED: Final = {
    CloseCode.DONE: "the Agent was stopped, or ended the session",
    CloseCode.GOING_AWAY: "the Agent was stopped or locked",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkState:
    """For people: whether there is a connection, and when the next try is."""

    up: bool
    why: str = ""
    retry_in_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Who has the subscription.

    `go_on`: a session was opened on this link. `take`: a frame that is no answer and not
    about the session itself. `fail`: the session is over for good.
    """

    go_on: Callable[[Link], Awaitable[None]]
    take: Callable[[Frame], None]
    fail: Callable[[Exception], None]


class KeptSession:
    """One device's session with its Agent, over any number of connections."""

    opened: SessionOpenResult

    def __init__(
        self,
        dial_agent: Callable[[], Awaitable[MessageChannel]],
        info: ClientInfo,
        listener: Listener,
        on_link: Callable[[LinkState], None] | None,
    ) -> None:
        self.link: Link | None = None
        self._dial = dial_agent
        self._info = info
        self._listener = listener
        self._on_link = on_link
        self._changed = trio.Event()
        self._ended: TransportError | Refusal | None = None
        self._backoff = Backoff(random.random)
        self._opened_at: float | None = None
        self._ever_opened = False
        self._wanted_s = 0.0

    async def serve(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Keep the session. Ready when the first one is open; what hinders that is raised,
        every later loss is mended, or ends the session for good."""
        retrying = tenacity.AsyncRetrying(
            sleep=trio.sleep,
            retry=tenacity.retry_if_exception(self._comes_back),
            wait=self._delay_s,
            before_sleep=self._tell_loss,
            reraise=True,
        )
        try:
            await retrying(self._live, task_status)
        except (TransportError, Refusal) as exc:
            if not self._ever_opened:
                raise
            self._end(exc)

    async def wait_link(self) -> Link:
        """Return a link with an open session. Raises: what `check_alive` raises."""
        while self.link is None or self.link.lost:
            self.check_alive()
            await self._changed.wait()
        return self.link

    def check_alive(self) -> None:
        """Raises: PeerClosedError, UnreachableError where the session is over."""
        if self._ended is not None:
            raise self._final(self._ended)

    async def _live(self, task_status: trio.TaskStatus[None]) -> NoReturn:
        """Live one session, from dialling to its loss, which is raised."""
        self._opened_at, self._wanted_s = None, 0.0
        channel = await self._dial()
        link = Link(channel)
        try:
            async with open_background(partial(link.serve, self._take)):
                await self._open(link)
                self._set_link(link)
                if not self._ever_opened:
                    self._ever_opened = True
                    task_status.started()
                await self._listener.go_on(link)
                await trio.sleep_forever()
        finally:
            self.link = None
            await channel.aclose()

    async def _open(self, link: Link) -> None:
        versions = VersionRange(min=PROTOCOL_VERSION, max=PROTOCOL_VERSION)
        params = SessionOpenParams(protocol=versions, client=self._info)
        with trio.move_on_after(CALL_S) as patience:
            raw = await link.request(SESSION_OPEN.name, params.wire())
            self.opened = parsed_answer(SESSION_OPEN, raw)
            link.adopt(self.opened.limits)
        if patience.cancelled_caught:
            raise UnreachableError(f"no session was opened within {CALL_S:g} s")
        self._opened_at = trio.current_time()

    def _set_link(self, link: Link) -> None:
        self.link = link
        self._wake()
        if self._on_link is not None:
            self._on_link(LinkState(up=True))

    def _end(self, loss: TransportError | Refusal) -> None:
        self._ended = loss
        self._wake()
        self._listener.fail(self._final(loss))
        if self._on_link is not None:
            self._on_link(LinkState(up=False, why=str(loss)))

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    def _final(self, loss: TransportError | Refusal) -> Exception:
        """Return a new exception for why the session is over: each task raises its own."""
        if isinstance(loss, PeerClosedError):
            return PeerClosedError(loss.code, loss.number)
        final = UnreachableError(f"the session is over: {loss}")
        final.__cause__ = loss
        return final

    # What tenacity asks

    def _comes_back(self, loss: BaseException) -> bool:
        return self._ever_opened and comes_back(loss)

    def _delay_s(self, state: tenacity.RetryCallState) -> float:
        began, loss = self._opened_at, _loss(state)
        asked_ms = loss.retry_after_ms if isinstance(loss, Refusal) else None
        return self._backoff.delay_s(
            loss,
            lived_s=0.0 if began is None else trio.current_time() - began,
            wanted_s=max(self._wanted_s, (asked_ms or 0) / 1000),
        )

    def _tell_loss(self, state: tenacity.RetryCallState) -> None:
        if self._on_link is not None:
            why = _in_words(_loss(state))
            self._on_link(LinkState(up=False, why=why, retry_in_s=state.upcoming_sleep))

    # What the Agent tells of the session itself

    def _take(self, frame: Frame) -> None:
        match frame.get("event"):
            case SessionClosing.event if "pong" not in frame:
                closing = _event_data(SessionClosing, frame)
                self._wanted_s = (closing.retry_after_ms or 0) / 1000
            case SessionChanged.event if "pong" not in frame:
                self._change(_event_data(SessionChanged, frame))
            case _:
                self._listener.take(frame)

    def _change(self, changed: SessionChanged) -> None:
        """Note new rights. Where they change what is seen, a gap follows by itself."""
        rights = {"scopes": changed.scopes, "ceiling": changed.ceiling}
        device = self.opened.device.model_copy(update=rights)
        news = {"device": device, "epoch": changed.epoch}
        self.opened = self.opened.model_copy(update=news)


def parsed_answer(method: Method[Any, R], raw: Frame) -> R:
    """Return an answer as the model that it must be. Raises: RemoteProtocolError."""
    try:
        return method.result.model_validate(raw)
    except ValidationError as exc:
        raise RemoteProtocolError(f"{method.name}: not as specified") from exc


def _event_data(model: type[R], frame: Frame) -> R:
    try:
        return model.model_validate(frame.get("data"))
    except ValidationError as exc:
        raise RemoteProtocolError("a session event: not as specified") from exc


def _in_words(loss: BaseException | None) -> str:
    """Return why a session was lost, for who does not know of close codes."""
    code = loss.code if isinstance(loss, PeerClosedError) else None
    return _CLOSED.get(code, str(loss)) if code is not None else str(loss)


def _loss(state: tenacity.RetryCallState) -> BaseException | None:
    return None if state.outcome is None else state.outcome.exception()
