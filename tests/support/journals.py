"""Events for journals, and a client that keeps what a journal tells it."""

from collections.abc import Iterable

from adapter.runtime.events import Emitted, ItemClosed, ItemDelta, ItemOpened
from agent.edge_limits import GAPS_S
from agent.events.batches import View
from agent.events.journal import Journal
from agent.events.subscriptions import Place, Subscription
from transport.codec import unpack
from transport.protocol.events import (
    DeltaChannel,
    ItemCompleted,
    ItemStarted,
    Notice,
    NoticeLevel,
)
from transport.protocol.items import AgentMessage, Item, ItemStatus
from transport.protocol.session import ResumeFrom, SubscribeResult
from transport.subscription import (
    ClientEvent,
    DeltaSeen,
    EventSeen,
    Resumed,
)
from transport.subscription import Subscription as ClientSubscription

AT = 1_796_058_499_320
EPOCH = "e1.0"


def message(item_id: str, text: str, status: ItemStatus) -> AgentMessage:
    return AgentMessage(id=item_id, turn_id="t1", status=status, text=text)


def opened(thread: str, item: str, *, root: str | None = None) -> ItemOpened:
    return ItemOpened(
        at=AT,
        thread_id=thread,
        root_thread_id=root,
        item=message(item, "", ItemStatus.IN_PROGRESS),
    )


def closed(thread: str, item: str, text: str, *, root: str | None = None) -> ItemClosed:
    return ItemClosed(
        at=AT,
        thread_id=thread,
        root_thread_id=root,
        item=message(item, text, ItemStatus.COMPLETED),
    )


def delta(
    thread: str, item: str, text: str, *, channel: DeltaChannel = DeltaChannel.TEXT
) -> ItemDelta:
    return ItemDelta(
        at=AT, thread_id=thread, item_id=item, channel=channel, part=0, text=text
    )


def notice(code: str, thread: str | None = None) -> Emitted:
    return Emitted(
        at=AT,
        thread_id=thread,
        data=Notice(
            level=NoticeLevel.INFO, code=code, message="something", thread_id=thread
        ),
    )


class Watcher:
    """A client that shows items, fed by the Agent's own subscription.

    It uses the real client's rules (`transport.subscription`). `shown`: item id → text.
    After a gap it reads again, as a client must: `history` plays the store.
    """

    def __init__(self, journal: Journal, served: Subscription) -> None:
        self.shown: dict[str, str] = {}
        self.verdicts: list[str] = []
        self.deltas: list[DeltaSeen] = []
        self.history: dict[str, str] = {}
        self._journal = journal
        self._served = served
        self._client = ClientSubscription("all", deltas=True)
        self._refs: dict[int, str] = {}
        self._now = 0.0

    def connect(
        self, served: Subscription, view: View, epoch: str, history: dict[str, str]
    ) -> None:
        """Subscribe, with the cursor where there is one, as after a reconnect."""
        self._served = served
        params = self._client.params()
        place = served.begin(view, epoch=epoch, resume=params.resume)
        result = SubscribeResult(
            epoch=epoch, head=place.head, verdict=place.verdict, open=list(place.open)
        )
        self._read_again(place, history)
        self._take([self._client.answered(result)])

    def pull(self, history: dict[str, str]) -> None:
        """Take one write of the session. Writes are a minute apart: gaps that come
        faster turn deltas off, which is another test's business."""
        self._now += GAPS_S + 1
        news = self._served.take(self._now)
        if news.gap is not None:
            self._read_again(news.gap, history)
            self._take(
                self._client.events(
                    {
                        "event": "gap",
                        "data": {
                            "epoch": EPOCH,
                            "head": news.gap.head,
                            "open": [one.wire() for one in news.gap.open],
                        },
                    }
                )
            )
        for frame in news.frames:
            self._take(self._client.events(unpack(frame)))

    def pull_all(self, history: dict[str, str]) -> None:
        while self._served.behind:
            self.pull(history)

    def _read_again(self, place: Place, history: dict[str, str]) -> None:
        if place.verdict != "ok":
            self.shown = dict(history)

    def _take(self, events: Iterable[ClientEvent]) -> None:
        for event in events:
            match event:
                case Resumed():
                    self.verdicts.append(event.verdict)
                    self._refs = {one.ref: one.item.id for one in event.open}
                    for one in event.open:
                        self.shown[one.item.id] = text_of(one.item)
                case DeltaSeen(ref=ref, text=text):
                    self.deltas.append(event)
                    self.shown[self._refs[ref]] += text
                case EventSeen():
                    self._see(event)

    def _see(self, event: EventSeen) -> None:
        match event.data:
            case ItemStarted(ref=ref, item=item):
                self._refs[ref] = item.id
                self.shown[item.id] = ""
            case ItemCompleted(item=item):
                self.shown[item.id] = text_of(item)
            case _:
                pass


def text_of(item: Item) -> str:
    assert isinstance(item, AgentMessage)
    return item.text


def resume(seq: int, epoch: str = EPOCH) -> ResumeFrom:
    return ResumeFrom(epoch=epoch, seq=seq)
