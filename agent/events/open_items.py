"""Items in progress with their text so far. Sans-IO. PROTOCOL.md section 2 (`Open`).

A client that subscribes in the middle of an item is given the item as it stands now.
Deltas do not change models: their text is kept in pieces beside the item and put into
it only when somebody asks, a piece at a time being the hot path.
"""

from dataclasses import dataclass, field
from typing import Final

from agent.edge_limits import KEPT_PARTS, KEPT_TEXT
from transport.protocol.events import DeltaChannel, Open
from transport.protocol.items import (
    AgentMessage,
    Command,
    FileChange,
    FileDiff,
    Item,
    Plan,
    Reasoning,
)

_TEXTS: Final = ("text", "output", "arguments", "result", "error", "prompt")
_PARAGRAPH: Final = "\n\n"  # parts of a reasoning text are joined by a blank line


def cut_text(text: str, limit: int) -> tuple[str, bool]:
    """Return at most `limit` bytes of UTF-8: three quarters of its head, then its tail."""
    if len(text) * 4 <= limit:
        return text, False
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return text, False
    tail = limit // 4
    head = data[: limit - tail].decode("utf-8", "ignore")
    return head + (data[-tail:].decode("utf-8", "ignore") if tail else ""), True


class KeptText:
    """A text that grows: whole up to 64 KiB, then its head and its newest tail."""

    __slots__ = ("_head", "_pieces", "_room", "_size", "cut")

    def __init__(self, text: str = "") -> None:
        self._head = ""
        self._pieces: list[str] = [text] if text else []
        self._size = len(text)
        self._room = KEPT_TEXT
        self.cut = False

    def add(self, text: str) -> None:
        """Append; the middle goes once there is too much."""
        self._pieces.append(text)
        self._size += len(text)
        if self._size > self._room:
            self._fold()

    def _fold(self) -> None:
        """Characters are counted, not bytes: at most four times the bound is held."""
        text = "".join(self._pieces)
        tail = KEPT_TEXT // 4
        if not self.cut:
            self._head = text[: KEPT_TEXT - tail]
            self.cut = True
        text = text[-tail:]
        self._pieces = [text]
        self._size = len(text)
        self._room = 2 * tail  # so that folding is rare

    def text(self) -> str:
        """Return what is kept."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._head + (self._pieces[0] if self._pieces else "")


@dataclass(slots=True, eq=False)
class OpenItem:
    """One item in progress. `seq`: the last event whose content it holds."""

    ref: int
    seq: int
    thread_id: str
    root_thread_id: str | None
    item: Item
    deltas: int = 0  # entries of the ring that are deltas of this item,
    delta_bytes: int = 0  # and what they cost there
    _texts: dict[tuple[DeltaChannel, int], KeptText] = field(
        default_factory=dict[tuple[DeltaChannel, int], KeptText]
    )

    def add(self, channel: DeltaChannel, part: int, text: str) -> None:
        """Take in the text of one delta."""
        kept = self._texts.get((channel, part))
        if kept is None:
            if len(self._texts) >= KEPT_PARTS:
                return
            kept = KeptText(_text_of(self.item, channel, part))
            self._texts[channel, part] = kept
        kept.add(text)

    def told(self, limit: int) -> Open:
        """Return it as a client is told of it."""
        return Open(
            ref=self.ref,
            seq=self.seq,
            item=self.now(limit),
            thread_id=self.thread_id,
            root_thread_id=self.root_thread_id,
        )

    def now(self, limit: int = KEPT_TEXT) -> Item:
        """Return the item with its text so far, each text cut to `limit` bytes."""
        item = self.item
        cut: set[str] = set(item.truncated or ())
        for (channel, part), kept in sorted(self._texts.items()):
            item = _with_text(item, channel, part, kept.text())
            if kept.cut and (name := _field_of(item, channel)):
                cut.add(name)
        item, more = _cut_texts(item, limit)
        cut |= more
        if not cut:
            return item
        return item.model_copy(update={"truncated": sorted(cut)})


def _field_of(item: Item, channel: DeltaChannel) -> str | None:
    match item, channel:
        case AgentMessage(), DeltaChannel.TEXT:
            return "text"
        case Reasoning(), DeltaChannel.SUMMARY:
            return "summary"
        case Reasoning(), DeltaChannel.REASONING | DeltaChannel.TEXT:
            return "text"
        case Command(), DeltaChannel.OUTPUT:
            return "output"
        case FileChange(), DeltaChannel.DIFF:
            return "changes"
        case Plan(), DeltaChannel.PLAN:
            return "text"
        case _:
            return None


def _text_of(item: Item, channel: DeltaChannel, part: int) -> str:
    match item, _field_of(item, channel):
        case Reasoning(), "summary":
            return item.summary[part] if part < len(item.summary) else ""
        case Reasoning(), "text":
            parts = (item.text or "").split(_PARAGRAPH)
            return parts[part] if part < len(parts) else ""
        case FileChange(), "changes":
            return item.changes[part].diff if part < len(item.changes) else ""
        case _, str() as name:
            value = getattr(item, name)
            return value if isinstance(value, str) else ""
        case _:
            return ""


def _with_text(item: Item, channel: DeltaChannel, part: int, text: str) -> Item:
    match item, _field_of(item, channel):
        case Reasoning(), "summary":
            return item.model_copy(update={"summary": _put(item.summary, part, text)})
        case Reasoning(), "text":
            parts = item.text.split(_PARAGRAPH) if item.text else []
            return item.model_copy(
                update={"text": _PARAGRAPH.join(_put(parts, part, text))}
            )
        case FileChange(), "changes":
            return _with_diff(item, part, text)
        case _, str() as name:
            return item.model_copy(update={name: text})
        case _:
            return item


def _put(parts: list[str], part: int, text: str) -> list[str]:
    grown = [*parts, *[""] * (part + 1 - len(parts))]
    grown[part] = text
    return grown


def _with_diff(item: FileChange, part: int, text: str) -> FileChange:
    if part >= len(item.changes):
        return item
    changes = list(item.changes)
    changes[part] = changes[part].model_copy(update={"diff": text})
    return item.model_copy(update={"changes": changes})


def _cut_texts(item: Item, limit: int) -> tuple[Item, set[str]]:
    """Cut every text of the item; return the names of the fields that lost some."""
    update: dict[str, object] = {}
    for name in _TEXTS:
        value = getattr(item, name, None)
        if isinstance(value, str):
            text, cut = cut_text(value, limit)
            if cut:
                update[name] = text
    match item:
        case Reasoning():
            summary, cut = _cut_list(item.summary, limit)
            if cut:
                update["summary"] = summary
        case FileChange():
            changes, cut = _cut_changes(item.changes, limit)
            if cut:
                update["changes"] = changes
        case _:
            pass
    return (item.model_copy(update=update) if update else item), set(update)


def _cut_list(texts: list[str], limit: int) -> tuple[list[str], bool]:
    """Share `limit` among the parts, the first ones first."""
    kept: list[str] = []
    any_cut = False
    for text in texts:
        short, cut = cut_text(text, limit)
        any_cut |= cut
        limit = max(0, limit - len(short.encode("utf-8", "replace")))
        kept.append(short)
    return kept, any_cut


def _cut_changes(changes: list[FileDiff], limit: int) -> tuple[list[FileDiff], bool]:
    diffs, cut = _cut_list([change.diff for change in changes], limit)
    if not cut:
        return changes, False
    pairs = zip(changes, diffs, strict=True)
    return [one.model_copy(update={"diff": diff}) for one, diff in pairs], True
