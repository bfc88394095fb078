"""The Python client of protocol v2: connect, call, subscribe, come back. Trio shell.

PROTOCOL.md sections 1 to 4. One background task keeps the session (`kept_session`). What
waits while a connection is lost is carried over to the next:

- a read is asked again;
- a mutation is sent again with its own request key, which the Agent runs once at most;
  it is given up after `MUTATION_S` (or `timeout_s`) as `OutcomeUnknown`, never with
  another key;
- a subscription goes on from its cursor and says how that went (`Resumed`).
"""

import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import trio

from transport.background import open_background
from transport.channel import MessageChannel
from transport.dial import AdminTarget, Target, dial
from transport.enroll import Paired, pair
from transport.errors import (
    LinkLostError,
    LocalProtocolError,
    Refusal,
    UnreachableError,
)
from transport.feed import Feed
from transport.kept_session import KeptSession, LinkState, Listener, parsed_answer
from transport.link import Frame, Link
from transport.patience import OWN, TIED, Sent, gave_up, patience_s_of
from transport.protocol.base import Params, WireModel
from transport.protocol.methods import EVENTS_SUBSCRIBE, Method
from transport.protocol.session import (
    ClientInfo,
    SessionOpenResult,
    SubscribeParams,
)
from transport.reconnect import Backoff
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

    def __init__(
        self,
        dial_agent: Callable[[], Awaitable[MessageChannel]],
        info: ClientInfo,
        on_link: Callable[[LinkState], None] | None = None,
    ) -> None:
        listener = Listener(go_on=self._go_on, take=self._take, fail=self._fail)
        self._session = KeptSession(dial_agent, info, listener, on_link)
        self._feed: Feed | None = None

    @property
    def opened(self) -> SessionOpenResult:
        """What the Agent said when the session was opened, with later changes of rights."""
        return self._session.opened

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
            return parsed_answer(method, await self._ask(method, body, sent))
        raise gave_up(method, body, patience_s, sent=sent.maybe)

    @asynccontextmanager
    async def subscribe(
        self, threads: Threads, *, deltas: bool = True
    ) -> AsyncGenerator[AsyncIterator[ClientEvent]]:
        """Subscribe for the length of the block; a client has one subscription.

        The iterator begins with a `Resumed` of verdict `new`, goes on over lost
        connections, and ends only by raising: what `call` raises when the session is
        over, or a `Refusal` of the subscription; one that may pass only at its beginning,
        later it is asked for again.
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
        await self._session.serve(task_status=task_status)

    # Requests

    async def _ask(self, method: Method[Any, Any], body: Frame, sent: Sent) -> Frame:
        while True:
            link = await self._session.wait_link()
            before = sent.maybe
            try:
                return await link.request(method.name, body, leaves=sent.note)
            except LinkLostError as exc:
                sent.maybe = before or exc.sent
                if exc.sent and method.name in TIED:
                    raise UnreachableError(str(exc)) from exc

    # Events

    async def _go_on(self, link: Link) -> None:
        if self._feed is not None and not self._feed.overflowed:
            await self._subscribe(link, self._feed)

    def _take(self, frame: Frame) -> None:
        if self._feed is None:
            return
        if "pong" not in frame:
            self._feed.take(frame)
        elif isinstance(seq := frame.get("seq"), int):
            self._feed.subscription.caught_up(seq)

    def _fail(self, final: Exception) -> None:
        if self._feed is not None:
            self._feed.fail(final)

    async def _renew(self, feed: Feed) -> None:
        """Subscribe where there is a connection; a new one does so by itself."""
        self._session.check_alive()
        feed.overflowed = False
        if (link := self._session.link) is not None:
            with suppress(LinkLostError):
                await self._subscribe(link, feed)

    def _unsubscribe(self) -> None:
        """Ask for no more events; the answer does not matter."""
        if self._session.link is not None:
            nothing = SubscribeParams(threads=[], deltas=False).wire()
            with suppress(LinkLostError, trio.WouldBlock):
                self._session.link.request_nowait(EVENTS_SUBSCRIBE.name, nothing)

    async def _subscribe(self, link: Link, feed: Feed) -> None:
        backoff = Backoff(random.random)
        while self._feed is feed and not link.lost:
            params = feed.subscription.params().wire()
            try:
                await link.request(EVENTS_SUBSCRIBE.name, params, take=feed.answered)
            except Refusal as exc:
                refusal = exc
            else:
                return
            if not (refusal.retryable and feed.subscription.begun):
                feed.fail(refusal)
                return
            wanted_s = (refusal.retry_after_ms or 0) / 1000
            delay_s = backoff.delay_s(refusal, lived_s=0.0, wanted_s=wanted_s)
            await trio.sleep(delay_s)
