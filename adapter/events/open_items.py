"""Items in progress: their text so far, and that each ends once. Sans-IO.

PROTOCOL.md section 6. Codex can leave items open for ever (an interrupt, a retry) and
can end one after its turn (a background command); it can also end one that we have
already ended ourselves, which must not be told twice.
"""

from collections.abc import Iterable
from typing import Any, Final

from adapter.limits import CLOSED_ITEMS, ITEM_BYTES, TEXT_BYTES, TEXT_PARTS
from adapter.shapes.texts import byte_size, cut, prefix
from transport.protocol.events import DeltaChannel
from transport.protocol.items import AgentMessage, Command, Item, Plan, Reasoning

_HEAD: Final = TEXT_BYTES - TEXT_BYTES // 4
_TAIL: Final = TEXT_BYTES // 4

_OUTLIVE: Final = frozenset(
    {
        "collabAgentToolCall",
        "commandExecution",
        "dynamicToolCall",
        "fileChange",
        "mcpToolCall",
    }
)
"""Types that go on by themselves when their turn completed: something else runs them."""

_STREAMED: Final = frozenset({"agentMessage", "plan", "reasoning"})


class TextSoFar:
    """A text that grows by deltas; holds its head and its tail, knows its true size."""

    __slots__ = ("_head", "_tail", "_tail_bytes", "size")

    def __init__(self) -> None:
        self._head = ""
        self._tail: list[str] = []
        self._tail_bytes = 0
        self.size = 0

    @property
    def held(self) -> int:
        """Bytes that are kept of it."""
        return min(self.size, _HEAD) + self._tail_bytes

    def count(self, text: str) -> None:
        """Note that there was more text, and keep none of it."""
        self.size += byte_size(text)

    def append(self, text: str) -> None:
        """Take more text in."""
        room = _HEAD - self.size
        size = byte_size(text)
        self.size += size
        if room > 0:
            taken = prefix(text, room)
            self._head += taken
            text = text[len(taken) :]
        if text:
            self._tail.append(text)
            self._tail_bytes += byte_size(text)
            if self._tail_bytes > 4 * _TAIL:
                self._trim()

    def _trim(self) -> None:
        kept = "".join(self._tail).encode()[-_TAIL:].decode("utf-8", "ignore")
        self._tail = [kept]
        self._tail_bytes = byte_size(kept)

    def __str__(self) -> str:
        whole = self._head + "".join(self._tail)
        return whole if self.size <= TEXT_BYTES else cut(whole, TEXT_BYTES, self.size)


class OpenItem:
    """One item in progress. `spawned`: a process of it is known to run."""

    __slots__ = ("_texts", "item", "source_type", "spawned", "thread_id")

    def __init__(
        self, thread_id: str, source_type: str, item: Item, *, spawned: bool = False
    ) -> None:
        self.thread_id = thread_id
        self.source_type = source_type
        self.item = item
        self.spawned = spawned
        self._texts: dict[tuple[DeltaChannel, int], TextSoFar] = {}

    @property
    def outlives_turn(self) -> bool:
        """Whether it may go on after its turn completed."""
        return self.source_type in _OUTLIVE

    @property
    def streamed(self) -> bool:
        """Whether it comes word by word from a model call, and is lost with it."""
        return self.source_type in _STREAMED

    def append(self, channel: DeltaChannel, part: int, text: str) -> None:
        """Take a delta in. Where its parts hold much already, it is only counted."""
        self.spawned = self.spawned or channel is DeltaChannel.OUTPUT
        key = (channel, max(0, min(part, TEXT_PARTS - 1)))
        so_far = self._texts.setdefault(key, TextSoFar())
        if sum(one.held for one in self._texts.values()) < ITEM_BYTES:
            so_far.append(text)
        else:
            so_far.count(text)

    def now(self) -> Item:
        """Return the item with its text so far."""
        update: dict[str, Any] = {}
        sizes: dict[str, int] = dict(self.item.sizes or {})
        for name, text, size in self._fields():
            update[name] = [text] if name == "summary" else text
            if name == "output":
                update["output_bytes"] = size
            if size > TEXT_BYTES:
                sizes[name] = size
        if sizes:
            update |= {"sizes": sizes, "truncated": sorted(sizes)}
        return self.item.model_copy(update=update) if update else self.item

    def _fields(self) -> Iterable[tuple[str, str, int]]:
        match self.item:
            case AgentMessage(text=text):
                yield from self._field("text", DeltaChannel.TEXT, before=text)
            case Plan(text=text):
                yield from self._field("text", DeltaChannel.PLAN, before=text)
            case Reasoning():
                yield from self._field("summary", DeltaChannel.SUMMARY)
                yield from self._field("text", DeltaChannel.REASONING)
            case Command():
                yield from self._field("output", DeltaChannel.OUTPUT)
            case _:
                pass

    def _field(
        self, name: str, channel: DeltaChannel, *, before: str = ""
    ) -> Iterable[tuple[str, str, int]]:
        found = sorted(
            (k[1], text) for k, text in self._texts.items() if k[0] == channel
        )
        if found:
            whole = before + "\n\n".join(str(text) for _, text in found)
            size = byte_size(before) + sum(text.size for _, text in found)
            yield name, cut(whole, TEXT_BYTES), size


class OpenItems:
    """All open items of a process, oldest first."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], OpenItem] = {}
        self._closed: dict[tuple[str, str], None] = {}

    def __bool__(self) -> bool:
        return bool(self._open)

    def __len__(self) -> int:
        return len(self._open)

    def get(self, thread_id: str, item_id: str) -> OpenItem | None:
        """Return an open item."""
        return self._open.get((thread_id, item_id))

    def ended(self, thread_id: str, item_id: str) -> bool:
        """Whether the item ended here already."""
        return (thread_id, item_id) in self._closed

    def begin(self, opened: OpenItem) -> None:
        """Note an item that began (again: providers may use an id twice)."""
        key = (opened.thread_id, opened.item.id)
        self._closed.pop(key, None)
        self._open[key] = opened

    def end(self, opened: OpenItem) -> None:
        """Note that it ended."""
        key = (opened.thread_id, opened.item.id)
        del self._open[key]
        self._closed[key] = None
        if len(self._closed) > CLOSED_ITEMS:
            del self._closed[next(iter(self._closed))]

    def oldest(self) -> OpenItem:
        """Return the one that began before all others."""
        return next(iter(self._open.values()))

    def of_turn(self, turn_id: str) -> list[OpenItem]:
        """Return the open items of a turn."""
        return [one for one in self._open.values() if one.item.turn_id == turn_id]

    def of_thread(self, thread_id: str) -> list[OpenItem]:
        """Return the open items of a thread."""
        return [one for one in self._open.values() if one.thread_id == thread_id]

    def all(self) -> list[OpenItem]:
        """Return all open items."""
        return list(self._open.values())
