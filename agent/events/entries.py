"""What the journal holds: whole events, packed once, and single deltas. Sans-IO.

PROTOCOL.md section 6 (Delivery).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapter.runtime.events import Emitted, ItemClosed, ItemDelta, ItemOpened
from agent.edge_limits import ENTRY_COST, WHOLE_EVENT
from transport.codec import pack
from transport.protocol.events import Notice, NoticeLevel


@dataclass(slots=True, eq=False)
class Told:
    """A whole event, packed as it goes out."""

    seq: int
    thread_id: str | None
    root_thread_id: str | None
    data: bytes
    public: bytes | None = None  # for devices, where `data` is for the workstation

    @property
    def size(self) -> int:
        """What it costs to keep, in bytes."""
        return len(self.data) + len(self.public or b"") + ENTRY_COST


@dataclass(slots=True, eq=False)
class Said:
    """One delta. `size`: what it costs to keep, in bytes."""

    seq: int
    thread_id: str
    root_thread_id: str | None
    ref: int
    channel: int
    part: int
    text: str
    size: int


Entry = Told | Said


def told_of(
    event: Emitted | ItemOpened | ItemClosed,
    seq: int,
    name: str,
    data: Mapping[str, Any],
    public: Mapping[str, Any] | None,
) -> Told:
    """Pack an event; one that is too large becomes a notice of that."""
    frame: dict[str, Any] = {"seq": seq, "event": name, "at": event.at}
    if event.thread_id is not None:
        frame["threadId"] = event.thread_id
    if event.root_thread_id is not None:
        frame["rootThreadId"] = event.root_thread_id
    packed = pack({**frame, "data": data})
    if len(packed) > WHOLE_EVENT:
        packed = pack({**frame, **_too_large(name, event.thread_id)})
    told = Told(seq, event.thread_id, event.root_thread_id, packed)
    if public is not None:
        told.public = pack({**frame, "data": public})
    return told


def said_of(event: ItemDelta, seq: int, root_thread_id: str | None, ref: int) -> Said:
    """Return a delta of an open item; `ref` is the item's."""
    return Said(
        seq,
        event.thread_id,
        root_thread_id,
        ref,
        int(event.channel),
        event.part,
        event.text,
        _cost(event.text),
    )


def _too_large(name: str, thread_id: str | None) -> dict[str, Any]:
    notice = Notice(
        level=NoticeLevel.WARNING,
        code="eventTooLarge",
        message=f"One {name} was too large to send; read the thread to see it.",
        thread_id=thread_id,
    )
    return {"event": notice.event, "data": notice.wire()}


def _cost(text: str) -> int:
    if text.isascii():
        return len(text) + ENTRY_COST
    return len(text.encode("utf-8", "replace")) + ENTRY_COST
