"""Whole texts of this run's items, as far as 64 MiB go. Sans-IO. PROTOCOL.md section 4.

Fed with every event. While an item is open its text grows by deltas; its end is
authoritative, and brings what is cut in the item itself (`ItemClosed.whole`). What was
used longest ago leaves first; history may still have a part of it.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from adapter.runtime.events import (
    Emitted,
    ItemClosed,
    ItemDelta,
    ItemOpened,
    RuntimeEvent,
)
from adapter.runtime.store import HeldText, TextName
from agent.limits import OUTPUT_CACHE, OUTPUT_ENTRY, OUTPUT_TEXT
from transport.protocol.events import DeltaChannel, ThreadRemoved, ThreadReverted
from transport.protocol.items import (
    AgentMessage,
    Command,
    FileChange,
    Item,
    Plan,
    Reasoning,
    Review,
    UserMessage,
)

_OUTPUT: Final[TextName] = ("output", "")
_TEXT: Final[TextName] = ("text", "")
_CHANNELS: Final[Mapping[DeltaChannel, TextName]] = {
    DeltaChannel.OUTPUT: _OUTPUT,
    DeltaChannel.TEXT: _TEXT,
    DeltaChannel.PLAN: _TEXT,
    DeltaChannel.REASONING: _TEXT,
}
_HISTORY: Final = ":history"
_BLANK: Final = b"\n\n"


@dataclass(slots=True)
class _Growing:
    """A text that grows: its beginning, and how long it really is."""

    data: bytearray = field(default_factory=bytearray)
    size: int = 0
    part: int | None = None

    def append(self, data: bytes, *, most: int) -> int:
        """Take more in, up to `most` bytes in all; return how many were kept."""
        room = max(0, most - len(self.data))
        kept = data[:room]
        self.data += kept
        self.size += len(data)
        return len(kept)


@dataclass(slots=True)
class _Entry:
    growing: dict[TextName, _Growing] = field(default_factory=dict[TextName, _Growing])
    held: dict[TextName, HeldText] | None = None
    cost: int = OUTPUT_ENTRY


class OutputCache:
    """Texts by thread and item. Bounds in bytes, see `agent/limits.py`."""

    def __init__(
        self, *, most: int = OUTPUT_CACHE, most_text: int = OUTPUT_TEXT
    ) -> None:
        self.bytes = 0
        self._most = most
        self._most_text = most_text
        self._entries: OrderedDict[tuple[str, str], _Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def take(self, event: RuntimeEvent) -> None:
        """Take in one event; what says nothing of a text is passed over."""
        match event:
            case ItemDelta():
                self._grow(event)
            case ItemOpened():
                self._open(event)
            case ItemClosed():
                self._close(event)
            case Emitted(data=ThreadRemoved() | ThreadReverted() as gone):
                self._forget(gone.thread_id)  # what stays is read from history
            case _:
                return
        while self.bytes > self._most:
            self._drop(next(iter(self._entries)))

    def texts(self, thread_id: str, item_id: str) -> Mapping[TextName, HeldText] | None:
        """Return what is there of an item; `None`: nothing of it is known here."""
        entry = self._entries.get((thread_id, item_id))
        if entry is None:
            return None
        self._entries.move_to_end((thread_id, item_id))
        if entry.held is not None:
            return entry.held
        return {
            name: HeldText(data=bytes(text.data), total=None)
            for name, text in entry.growing.items()
        }

    def _forget(self, thread_id: str) -> None:
        for key in [one for one in self._entries if one[0] == thread_id]:
            self._drop(key)

    def _open(self, event: ItemOpened) -> None:
        key = (event.thread_id, event.item.id)
        entry = _Entry()
        for name, words in _texts_of(event.item):
            text = entry.growing[name] = _Growing()
            entry.cost += text.append(_bytes(words), most=self._most_text)
        self._drop(key)
        self._keep(key, entry)

    def _grow(self, event: ItemDelta) -> None:
        name = _CHANNELS.get(event.channel)
        entry = self._entries.get((event.thread_id, event.item_id))
        if name is None or entry is None or entry.held is not None:
            return
        text = entry.growing.setdefault(name, _Growing())
        data = _bytes(event.text)
        if text.part not in (None, event.part):
            data = _BLANK + data
        text.part = event.part
        kept = text.append(data, most=self._most_text)
        entry.cost += kept
        self.bytes += kept

    def _close(self, event: ItemClosed) -> None:
        item = event.item
        if (item.provenance or "").endswith(_HISTORY):
            return  # what history has cut looks whole there
        key = (event.thread_id, item.id)
        old = self._entries.get(key)
        grown = old.growing if old is not None else {}
        held = dict(self._final(item, event.whole or {}, grown))
        self._drop(key)
        cost = OUTPUT_ENTRY + sum(len(text.data) for text in held.values())
        self._keep(key, _Entry(held=held, cost=cost))

    def _final(
        self,
        item: Item,
        whole: Mapping[TextName, HeldText],
        grown: Mapping[TextName, _Growing],
    ) -> Iterator[tuple[TextName, HeldText]]:
        cut = set(item.truncated or ())
        for name, words in _texts_of(item):
            grew = grown.get(name)
            if name in whole:
                yield name, self._better(whole[name], grew)
            elif ("changes" if name[0] == "diff" else name[0]) not in cut:
                data = _bytes(words)
                yield name, HeldText(data=data, total=len(data))
            elif grew is not None:  # we ended it ourselves, and have what came
                yield name, HeldText(data=bytes(grew.data), total=grew.size)

    def _better(self, end: HeldText, grew: _Growing | None) -> HeldText:
        """Prefer what came piece by piece where Codex has cut the middle out.

        Codex can lose pieces without a word: only all of them are better.
        """
        if grew is not None and end.gap_at is not None and grew.size == end.total:
            return HeldText(data=bytes(grew.data), total=grew.size)
        if len(end.data) <= self._most_text:
            return end
        gap = end.gap_at if (end.gap_at or 0) < self._most_text else None
        return HeldText(data=end.data[: self._most_text], total=end.total, gap_at=gap)

    def _keep(self, key: tuple[str, str], entry: _Entry) -> None:
        self._entries[key] = entry
        self.bytes += entry.cost

    def _drop(self, key: tuple[str, str]) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self.bytes -= entry.cost


def _bytes(words: str) -> bytes:
    return words.encode("utf-8", "replace")


def _texts_of(item: Item) -> Iterator[tuple[TextName, str]]:
    match item:
        case Command(output=words):
            yield _OUTPUT, words
        case FileChange(changes=changes):
            for change in changes:
                yield ("diff", change.path), change.diff
        case AgentMessage(text=words) | UserMessage(text=words) | Plan(text=words):
            yield _TEXT, words
        case Reasoning(text=words) | Review(text=words):
            yield _TEXT, words or ""
        case _:
            return
