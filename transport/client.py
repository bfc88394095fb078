"""The Python client of protocol v2: connect, call, subscribe, come back. Trio shell.

PROTOCOL.md sections 1 to 4. One background task keeps a session: it connects, reads,
and after a loss comes back with the back-off of section 1 (at once where the Agent asks
to renew, never after it revoked or replaced this device). What waits is carried over:

- a read is asked again;
- a mutation is sent again with its own request key, which the Agent runs once at most;
  it is given up after `MUTATION_S` (or `timeout_s`) as `OutcomeUnknown`, never with
  another key;
- a subscription goes on from its cursor and says how that went (`Resumed`).
"""

import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, TypeVar

import tenacity
import trio
from pydantic import ValidationError

from transport.background import open_background
from transport.channel import MessageChannel
from transport.dial import AdminTarget, Target, dial
from transport.enroll import Paired, pair
from transport.errors import (
    LinkLostError,
    LocalProtocolError,
    PeerClosedError,
    Refusal,
    RemoteProtocolError,
    TransportError,
    UnreachableError,
)
from transport.feed import Feed
from transport.limits import CALL_S
from transport.link import Frame, Link
from transport.patience import OWN, TIED, Sent, gave_up, patience_s_of
from transport.protocol.base import Params, WireModel
from transport.protocol.events import SessionChanged, SessionClosing
from transport.protocol.methods import (
    EVENTS_SUBSCRIBE,
    SESSION_OPEN,
    Method,
)
from transport.protocol.session import (
    PROTOCOL_VERSION,
    ClientInfo,
    SessionOpenParams,
    SessionOpenResult,
    SubscribeParams,
    VersionRange,
)
from transport.reconnect import Backoff, comes_back
from transport.subscription import (
    ClientEvent,
    DeltaSeen,
    EventSeen,
    Resumed,
    Subscription,
    Threads,
)

__all__ = [
    "AdminTarget",
    "Client",
    "ClientEvent",
    "DeltaSeen",
    "EventSeen",
    "LinkState",
    "Paired",
    "Resumed",
    "Target",
    "open_client",
    "pair",
]

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=WireModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkState:
    """For people: whether there is a connection, and when the next try is."""

    up: bool
    why: str = ""
    retry_in_s: float | None = None


@asynccontextmanager
async def open_client(
    target: Target | AdminTarget,
    client: ClientInfo,
    *,
    on_link: Callable[[LinkState], None] | None = None,
) -> AsyncGenerator["Client"]:
    """Connect and open a session; inside the block it is kept alive.

    The first connection must succeed; later losses are mended in the background.
    `on_link` is told of each; it must not block.

    Raises:
        UnreachableError: nobody answers (SilentAgentError: hangs up on this device).
        Refusal: the Agent does not open a session (`unsupportedProtocol`, …).
    """
    kept = Client(partial(dial, target), client, on_link)
    async with open_background(kept.serve):
        yield kept


class Client:
    """One device's session. Any task may call; made by `open_client`."""

    opened: SessionOpenResult

    def __init__(
        self,
        dial_agent: Callable[[], Awaitable[MessageChannel]],
        info: ClientInfo,
        on_link: Callable[[LinkState], None] | None = None,
    ) -> None:
        self._dial = dial_agent
        self._info = info
        self._on_link = on_link
        self._link: Link | None = None
        self._feed: Feed | None = None
        self._changed = trio.Event()
        self._ended: TransportError | Refusal | None = None
        self._backoff = Backoff(random.random)
        self._opened_at: float | None = None
        self._ever_opened = False
        self._wanted_s = 0.0

    async def call(
        self, method: Method[P, R], params: P, *, timeout_s: float | None = None
    ) -> R:
        """Call a method; carried over lost connections as the module says.

        `timeout_s`: `CALL_S` for reads and `MUTATION_S` for mutations by default, plus
        what `waitMs` asks for.

        Raises:
            Refusal: the Agent's answer. Timeout: given up, certainly without effect.
                OutcomeUnknown: given up after it was sent.
            UnreachableError: the session is over and is not opened again, or (pair/*)
                the connection that the call belongs to is.
            PeerClosedError: this device was revoked or replaced.
            RemoteProtocolError: the answer is not as specified.
        """
        if method.name in OWN:
            raise LocalProtocolError(f"{method.name} is the client's own business")
        body = params.wire()
        patience_s = patience_s_of(method, body) if timeout_s is None else timeout_s
        sent = Sent()
        with trio.move_on_after(patience_s):
            return _parsed(method, await self._ask(method, body, sent))
        raise gave_up(method, body, patience_s, sent=sent.maybe)

    @asynccontextmanager
    async def subscribe(
        self, threads: Threads, *, deltas: bool = True
    ) -> AsyncGenerator[AsyncIterator[ClientEvent]]:
        """Subscribe for the length of the block; a client has one subscription.

        The iterator begins with a `Resumed` of verdict `new`, goes on over lost
        connections, and ends only by raising: what `call` raises when the session is
        over, or a `Refusal` of the subscription.
        """
        if self._feed is not None:
            raise LocalProtocolError("a session has one subscription")
        feed = Feed(Subscription(threads, deltas=deltas), self._renew)
        self._feed = feed
        try:
            await self._renew(feed)
            await feed.wait_ready()
            yield feed
        finally:
            self._feed = None
            self._unsubscribe()

    async def serve(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Keep the session; for `open_client`. Ready when the first one is open."""
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
                if self._feed is not None and not self._feed.overflowed:
                    await self._subscribe(link, self._feed)
                await trio.sleep_forever()
        finally:
            self._link = None
            await channel.aclose()

    async def _open(self, link: Link) -> None:
        versions = VersionRange(min=PROTOCOL_VERSION, max=PROTOCOL_VERSION)
        params = SessionOpenParams(protocol=versions, client=self._info)
        with trio.move_on_after(CALL_S) as patience:
            raw = await link.request(SESSION_OPEN.name, params.wire())
            self.opened = _parsed(SESSION_OPEN, raw)
            link.adopt(self.opened.limits)
        if patience.cancelled_caught:
            raise UnreachableError(f"no session was opened within {CALL_S:g} s")
        self._opened_at = trio.current_time()

    def _set_link(self, link: Link) -> None:
        self._link = link
        self._wake()
        if self._on_link is not None:
            self._on_link(LinkState(up=True))

    def _end(self, loss: TransportError | Refusal) -> None:
        self._ended = loss
        self._wake()
        if self._feed is not None:
            self._feed.fail(self._final())
        if self._on_link is not None:
            self._on_link(LinkState(up=False, why=str(loss)))

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    # What tenacity asks

    def _comes_back(self, loss: BaseException) -> bool:
        return self._ever_opened and comes_back(loss)

    def _delay_s(self, state: tenacity.RetryCallState) -> float:
        began = self._opened_at
        return self._backoff.delay_s(
            _loss(state),
            lived_s=0.0 if began is None else trio.current_time() - began,
            wanted_s=self._wanted_s,
        )

    def _tell_loss(self, state: tenacity.RetryCallState) -> None:
        if self._on_link is not None:
            why = str(_loss(state))
            self._on_link(LinkState(up=False, why=why, retry_in_s=state.upcoming_sleep))

    # Requests

    async def _ask(self, method: Method[Any, Any], body: Frame, sent: Sent) -> Frame:
        while True:
            link = await self._wait_link()
            before, sent.maybe = sent.maybe, True
            try:
                return await link.request(method.name, body)
            except LinkLostError as exc:
                sent.maybe = before or exc.sent
                if exc.sent and method.name in TIED:
                    raise UnreachableError(str(exc)) from exc

    async def _wait_link(self) -> Link:
        while self._link is None or self._link.lost:
            if self._ended is not None:
                raise self._final()
            await self._changed.wait()
        return self._link

    def _final(self) -> Exception:
        """Return a new exception for why the session is over: each task raises its own."""
        loss = self._ended
        if isinstance(loss, PeerClosedError):
            return PeerClosedError(loss.code, loss.number)
        final = UnreachableError(f"the session is over: {loss}")
        final.__cause__ = loss
        return final

    # Events

    def _take(self, frame: Frame) -> None:
        if "pong" in frame:
            if self._feed is not None and isinstance(seq := frame.get("seq"), int):
                self._feed.subscription.caught_up(seq)
            return
        match frame.get("event"):
            case SessionClosing.event:
                closing = _event_data(SessionClosing, frame)
                self._wanted_s = (closing.retry_after_ms or 0) / 1000
            case SessionChanged.event:
                self._change(_event_data(SessionChanged, frame))
            case _ if self._feed is not None:
                self._feed.take(frame)
            case _:
                pass

    def _change(self, changed: SessionChanged) -> None:
        """Note new rights. Where they change what is seen, a gap follows by itself."""
        rights = {"scopes": changed.scopes, "ceiling": changed.ceiling}
        device = self.opened.device.model_copy(update=rights)
        news = {"device": device, "epoch": changed.epoch}
        self.opened = self.opened.model_copy(update=news)

    async def _renew(self, feed: Feed) -> None:
        """Subscribe where there is a connection; a new one does so by itself."""
        if self._ended is not None:
            raise self._final()
        feed.overflowed = False
        if (link := self._link) is not None:
            with suppress(LinkLostError):
                await self._subscribe(link, feed)

    def _unsubscribe(self) -> None:
        """Ask for no more events; the answer does not matter."""
        if self._link is not None:
            nothing = SubscribeParams(threads=[], deltas=False).wire()
            with suppress(LinkLostError, trio.WouldBlock):
                self._link.request_nowait(EVENTS_SUBSCRIBE.name, nothing)

    async def _subscribe(self, link: Link, feed: Feed) -> None:
        params = feed.subscription.params()
        try:
            await link.request(EVENTS_SUBSCRIBE.name, params.wire(), take=feed.answered)
        except Refusal as refusal:
            feed.fail(refusal)


def _loss(state: tenacity.RetryCallState) -> BaseException | None:
    return None if state.outcome is None else state.outcome.exception()


def _parsed(method: Method[Any, R], raw: Frame) -> R:
    try:
        return method.result.model_validate(raw)
    except ValidationError as exc:
        raise RemoteProtocolError(f"{method.name}: not as specified") from exc


def _event_data(model: type[R], frame: Frame) -> R:
    try:
        return model.model_validate(frame.get("data"))
    except ValidationError as exc:
        raise RemoteProtocolError("a session event: not as specified") from exc
