"""The one journal: a ring of what happened, packed once for everybody. Sans-IO.

PROTOCOL.md section 6 (Delivery). Every session is a cursor (a seq) into this ring; there
is no queue of its own for anybody. Whole events are packed when they come; a delta stays
a tuple, since sessions join neighbouring ones differently.

The ring is bounded in events and bytes. Under pressure the deltas of completed items go
first (item/completed carries the whole); only then the oldest events, and with them the
cursors that had not come so far (`floor`).
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final

from adapter.runtime.events import (
    Emitted,
    ItemClosed,
    ItemDelta,
    ItemOpened,
    RuntimeEvent,
)
from agent.edge_limits import (
    JOURNAL_BYTES,
    JOURNAL_EVENTS,
    KEPT_TEXT,
    OPEN_ANSWER,
    OPEN_ITEMS,
    STALE_SHARE,
)
from agent.events.entries import Entry, Told, said_of, told_of
from agent.events.open_items import OpenItem
from transport.codec import pack
from transport.protocol.events import Open
from transport.protocol.items import Item

_SEQ: Final = attrgetter("seq")
_TRIM: Final = 4_096  # the list's dead front is cut off in pieces of this size

Matches = Callable[[str | None, str | None], bool]
"""Whether an event of (thread, root thread) is for somebody."""


_GONE: Final = Told(0, None, None, b"")


class Journal:
    """Append-only ring with the items that are open now.

    `head`: seq of the newest event, 0 before the first. `floor`: the lowest cursor from
    which nothing is missing. `last_whole`: seq of the newest event that is no delta.
    """

    def __init__(
        self, *, max_events: int = JOURNAL_EVENTS, max_bytes: int = JOURNAL_BYTES
    ) -> None:
        self.head = 0
        self.floor = 0
        self.last_whole = 0
        self.bytes = 0
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._entries: list[Entry] = []
        self._start = 0  # entries before this index are gone
        self._last_ref = 0
        self._open: dict[tuple[str, str], OpenItem] = {}
        self._by_ref: dict[int, OpenItem] = {}
        self._stale = 0  # deltas of completed items still in the ring,
        self._stale_bytes = 0  # and what they cost

    def __len__(self) -> int:
        return len(self._entries) - self._start

    def append(self, event: RuntimeEvent) -> int:
        """Take in one event; return the head after it.

        A delta whose item is not open is left out: nobody could show it.
        """
        match event:
            case ItemDelta():
                self._say(event)
            case ItemOpened():
                self._begin(event)
            case ItemClosed():
                self._end(event)
            case Emitted():
                public = None if event.public is None else event.public.wire()
                self._tell(event, event.data.event, event.data.wire(), public)
        return self.head

    def after(self, seq: int) -> Iterator[Entry]:
        """Yield entries with a seq above this one; append nothing meanwhile."""
        entries = self._entries
        index = bisect_right(entries, seq, lo=self._start, key=_SEQ)
        for at in range(index, len(entries)):
            yield entries[at]

    def open_items(self, matches: Matches) -> list[Open]:
        """Return the matching items in progress as of `head`, 512 KiB in all.

        Texts are cut evenly, and named in `truncated`, until they fit; items whose rest
        alone is too much are left out, the newest first.
        """
        found = [
            one
            for one in self._by_ref.values()
            if matches(one.thread_id, one.root_thread_id)
        ]
        limit = KEPT_TEXT
        while True:
            opens = [one.told(limit) for one in found]
            sizes = [len(pack(one.wire())) for one in opens]
            if sum(sizes) <= OPEN_ANSWER:
                return opens
            if limit == 0:
                return _first_that_fit(opens, sizes)
            limit = limit // 2 if limit > 256 else 0

    def _say(self, event: ItemDelta) -> None:
        one = self._open.get((event.thread_id, event.item_id))
        if one is None or not event.text:
            return
        said = said_of(event, self.head + 1, one.root_thread_id, one.ref)
        self.head = one.seq = said.seq
        one.deltas += 1
        one.delta_bytes += said.size
        one.add(event.channel, event.part, event.text)
        self._keep(said)

    def _begin(self, event: ItemOpened) -> None:
        self._forget(event.thread_id, event.item.id)
        if len(self._open) >= OPEN_ITEMS:
            self._forget(*next(iter(self._open)))
        ref = self._next_ref()
        self._tell_item(event, "item/started", ref, event.item)
        opened = OpenItem(
            ref, self.head, event.thread_id, event.root_thread_id, event.item
        )
        self._open[event.thread_id, event.item.id] = opened
        self._by_ref[ref] = opened

    def _end(self, event: ItemClosed) -> None:
        one = self._forget(event.thread_id, event.item.id)
        ref = one.ref if one else self._next_ref()
        self._tell_item(event, "item/completed", ref, event.item)

    def _forget(self, thread_id: str, item_id: str) -> OpenItem | None:
        one = self._open.pop((thread_id, item_id), None)
        if one is not None:
            del self._by_ref[one.ref]
            self._stale += one.deltas
            self._stale_bytes += one.delta_bytes
        return one

    def _next_ref(self) -> int:
        self._last_ref += 1
        return self._last_ref

    def _tell_item(
        self, event: ItemOpened | ItemClosed, name: str, ref: int, item: Item
    ) -> None:
        self._tell(event, name, {"ref": ref, "item": item.wire()})

    def _tell(
        self,
        event: Emitted | ItemOpened | ItemClosed,
        name: str,
        data: Mapping[str, Any],
        public: Mapping[str, Any] | None = None,
    ) -> None:
        told = told_of(event, self.head + 1, name, data, public)
        self.head = self.last_whole = told.seq
        self._keep(told)

    def _keep(self, entry: Entry) -> None:
        self._entries.append(entry)
        self.bytes += entry.size
        while len(self) > self._max_events or self.bytes > self._max_bytes:
            self._make_room()

    def _make_room(self) -> None:
        worth = (
            self._stale * STALE_SHARE >= self._max_events
            or self._stale_bytes * STALE_SHARE >= self._max_bytes
        )
        if worth:
            self._sweep()
        else:
            self._drop_oldest()

    def _sweep(self) -> None:
        """Drop the deltas of completed items; no cursor loses anything by it."""
        self._entries = [
            entry
            for entry in self._entries[self._start :]
            if isinstance(entry, Told) or entry.ref in self._by_ref
        ]
        self._start = 0
        self.bytes -= self._stale_bytes
        self._stale = self._stale_bytes = 0

    def _drop_oldest(self) -> None:
        entry = self._entries[self._start]
        self._entries[self._start] = _GONE
        self._start += 1
        self.floor = entry.seq
        self.bytes -= self._release(entry)
        if self._start >= _TRIM and self._start * 2 >= len(self._entries):
            del self._entries[: self._start]
            self._start = 0

    def _release(self, entry: Entry) -> int:
        if isinstance(entry, Told):
            return entry.size
        one = self._by_ref.get(entry.ref)
        if one is None:
            self._stale -= 1
            self._stale_bytes -= entry.size
        else:
            one.deltas -= 1
            one.delta_bytes -= entry.size
        return entry.size


def _first_that_fit(opens: list[Open], sizes: list[int]) -> list[Open]:
    kept: list[Open] = []
    room = OPEN_ANSWER
    for one, size in zip(opens, sizes, strict=True):
        room -= size
        if room < 0:
            break
        kept.append(one)
    return kept
