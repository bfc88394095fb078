"""What a session says: one task that takes all that is new and writes it once. Trio shell.

PROTOCOL.md sections 1 and 6 (Keepalive, Delivery). In a write go, in this order: answers
and session events, pongs, then events. On a network carrier deltas wait 20 ms for
company after the first of a burst, so that eight tokens cost one record.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import trio

from agent.edge_limits import COMPANY_S
from agent.events.feed import Feed
from agent.events.outbox import Outbox
from agent.events.subscriptions import News, Place, Subscription
from transport.channel import MessageChannel
from transport.codec import pack
from transport.errors import (
    CloseCode,
    LocalProtocolError,
    StalledError,
    TransportError,
)
from transport.protocol.events import (
    EventData,
    Gap,
    Notice,
    NoticeLevel,
    SessionClosing,
)

_LOG: Final = logging.getLogger(__name__)
_DELTAS_OFF: Final = Notice(
    level=NoticeLevel.WARNING,
    code="deltasOff",
    message="This connection is too slow for deltas; whole items go on. Subscribe again "
    "to have deltas back.",
)


class Voice:
    """The writing half of a session. `epoch`: the one that its device is told.

    `ending`: why it ends, once it does; from then on only the farewell is said. `unsent`
    is told how many bytes of answers more (or fewer) wait for the peer to take them.
    """

    def __init__(
        self,
        channel: MessageChannel,
        feed: Feed,
        *,
        epoch: str,
        network: bool,
        now_ms: Callable[[], int],
        unsent: Callable[[int], None] = lambda _more: None,
    ) -> None:
        self.epoch = epoch
        self.subscription = Subscription(feed.journal, feed.batches)
        self.ending: CloseCode | None = None
        self._channel = channel
        self._feed = feed
        self._network = network
        self._now_ms = now_ms
        self._outbox = Outbox()
        self._farewell: SessionClosing | None = None
        self._bell = trio.Event()
        self._written = trio.Event()
        self._deltas_at = float("-inf")
        self._unsent = unsent
        self._held = 0  # bytes of answers that wait or are being written
        self._over = False
        self._lost = False

    def answer(self, frame: bytes) -> None:
        """Say an answer."""
        if self._over:
            return
        self._outbox.add(frame)
        self._count(len(frame))
        self._bell.set()

    def tell(self, data: EventData) -> None:
        """Say a session event: it has no seq, and nobody else gets it."""
        self.answer(self._packed(data))

    def tell_gap(self, place: Place) -> None:
        """Say that events go on from another place."""
        self.tell(Gap(epoch=self.epoch, head=place.head, open=list(place.open)))

    def answer_ping(self, number: int) -> None:
        """Say a pong, before any event that waits."""
        self._outbox.answer_ping(number)
        self._bell.set()

    def ping(self, number: int) -> None:
        """Say a ping."""
        self._outbox.ping(number)
        self._bell.set()

    def end(self, code: CloseCode, farewell: SessionClosing | None) -> None:
        """Say `farewell` and CLOSE next, and nothing after. The first call counts."""
        if self.ending is None:
            self.ending = code
            self._farewell = farewell
            self._bell.set()

    @property
    def full(self) -> bool:
        """Whether so much waits for a peer that takes it that it is not to be read."""
        return self._outbox.full and not self._lost

    async def wait_room(self) -> None:
        """Return when not too much waits: who asks and does not read is not read."""
        while self.full:
            self._written = trio.Event()
            await self._written.wait()

    async def serve(self) -> None:
        """Write until the session ends; the channel is closed then."""
        try:
            while self.ending is None:
                frames = self._new_frames()
                if frames:
                    await self._send(frames)
                    self._count(self._outbox.size - self._held)
                else:
                    await self._wait_news()
            await self._say_goodbye()
        finally:
            self._over = True
            self._count(-self._held)

    def _count(self, more: int) -> None:
        self._held += more
        self._unsent(more)

    def _new_frames(self) -> list[bytes]:
        now = trio.current_time()
        news = self.subscription
        frames = self._outbox.take(seq=news.position, now_ms=self._now_ms())
        self._written.set()
        if news.behind and (frames or not self._wants_company(now)):
            frames += self._take(now)
        return frames

    def _take(self, now: float) -> list[bytes]:
        only_deltas = not self.subscription.urgent
        news = self.subscription.take(now)
        if news.gap is not None:
            return self._gap_frames(news, news.gap)
        if news.frames and only_deltas:
            self._deltas_at = now
        return list(news.frames)

    def _gap_frames(self, news: News, place: Place) -> list[bytes]:
        self.tell_gap(place)
        if news.quiet:
            self.tell(_DELTAS_OFF)
        return self._outbox.take(seq=None, now_ms=self._now_ms())

    def _wants_company(self, now: float) -> bool:
        early = now < self._deltas_at + COMPANY_S
        return self._network and early and not self.subscription.urgent

    async def _wait_news(self) -> None:
        """Wait for our own bell, or for the journal where it concerns us."""
        self._bell = bell = trio.Event()
        if self.ending is not None or self._outbox:
            return
        if self.subscription.behind:  # deltas that are held back for company
            with trio.move_on_at(self._deltas_at + COMPANY_S):
                await self._feed.wait(bell, whole=True)
        elif self.subscription.position is not None:
            await self._feed.wait(bell)
        else:
            await bell.wait()

    async def _send(self, frames: list[bytes]) -> None:
        try:
            await self._channel.send(frames)
        except StalledError:
            _LOG.info("a session takes nothing: closed")
            self.end(CloseCode.TOO_SLOW, None)
        except LocalProtocolError as exc:  # its keys are used up: then CLOSE says renew
            _LOG.warning("a session can be told nothing more: %s", exc)
            self.end(CloseCode.DONE, None)
        except TransportError:
            self._lost = True
            self._written.set()
            await trio.sleep_forever()  # the reader finds out why, and ends it

    async def _say_goodbye(self) -> None:
        frames = self._outbox.take(seq=None, now_ms=self._now_ms())
        if self.ending is CloseCode.REVOKED:
            frames = []  # nothing more for this device
        if self._farewell is not None:
            frames.append(self._packed(self._farewell))
        with suppress(TransportError):
            if frames:
                await self._channel.send(frames)
        await self._channel.aclose(self.ending or CloseCode.DONE)

    def _packed(self, data: EventData) -> bytes:
        return pack({"event": data.event, "at": self._now_ms(), "data": data.wire()})
