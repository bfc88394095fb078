"""One turn that runs in an app-server, with its items so far. Sans-IO.

PROTOCOL.md section 3: the live state overrides history, where our own running turn reads
as interrupted.
"""

from dataclasses import dataclass, field

from adapter.limits import LIVE_BYTES, LIVE_ITEMS
from adapter.shapes.texts import packed_bound
from transport.protocol.items import Item
from transport.protocol.turns import Turn, TurnStatus, Usage


@dataclass(slots=True, kw_only=True)
class TurnRecord:
    """A turn, from the first that was heard of it until its end. Times in ms.

    `told`: turn/started was told. `items`: in the order in which they began; `None`
    while one is open. Ended ones leave, oldest first, when there are too many.
    `slept`: for how long the computer had been asleep when it began.
    """

    id: str
    thread_id: str
    started_at: int
    slept: int
    told: bool = False
    usage: Usage | None = None
    items: dict[str, Item | None] = field(default_factory=dict[str, Item | None])
    more: bool = False
    size: int = 0

    def began(self, item_id: str) -> None:
        """Note an item that began."""
        self.items[item_id] = None

    def ended(self, item: Item) -> None:
        """Keep an item that ended."""
        self.items[item.id] = item
        self.size += packed_bound(item.wire())
        while len(self.items) > LIVE_ITEMS or self.size > LIVE_BYTES:
            oldest = next((one for one in self.items.values() if one), None)
            if oldest is None:
                return
            del self.items[oldest.id]
            self.size -= packed_bound(oldest.wire())
            self.more = True

    def turn(self, items: list[Item] | None = None) -> Turn:
        """Return the running turn; with `items` where they are given."""
        return Turn(
            id=self.id,
            thread_id=self.thread_id,
            status=TurnStatus.IN_PROGRESS,
            started_at=self.started_at,
            usage=self.usage,
            items=items,
            more_items=True if items is not None and self.more else None,
        )
