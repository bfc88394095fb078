"""What every item has in common on its way from Codex's shape to v2's. Sans-IO.

PROTOCOL.md section 5: what is known of an item from around it, and how its texts are cut.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from adapter.shapes.shapes import maybe_whole, wire_id
from adapter.shapes.texts import byte_size, cut
from transport.protocol.items import Item, ItemStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What is known of an item from around it. Times in ms.

    `status` overrides the item's own; `unfinished` replaces one that says in progress.
    """

    turn_id: str
    provenance: str
    started_at: int | None = None
    completed_at: int | None = None
    status: ItemStatus | None = None
    unfinished: ItemStatus = ItemStatus.COMPLETED
    background: bool | None = None
    stable_id: bool | None = None


@dataclass(slots=True, kw_only=True)
class Cutter:
    """Cuts the texts of one item, and remembers which."""

    limit: int
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    dropped: set[str] = field(default_factory=set[str])

    def __call__(self, name: str, whole: str, limit: int | None = None) -> str:
        kept = cut(whole, min(self.limit, limit or self.limit))
        if kept != whole:
            self.sizes[name] = self.sizes.get(name, 0) + byte_size(whole)
        return kept

    @property
    def truncated(self) -> list[str] | None:
        return sorted(self.sizes.keys() | self.dropped) or None


Build = Callable[[Mapping[str, Any], Cutter, Frame], Item]
"""Makes one kind of item. May raise one of `MISFITS`."""


def base_of(raw: Mapping[str, Any], cutter: Cutter, frame: Frame) -> dict[str, Any]:
    """Return the fields of every item; asked for after the texts were cut."""
    started, ended = raw.get("startedAtMs"), raw.get("completedAtMs")
    return {
        "id": wire_id(raw["id"]),
        "turn_id": frame.turn_id,
        "status": frame.status or status_of(raw.get("status"), frame.unfinished),
        "started_at": frame.started_at or maybe_whole(started),
        "completed_at": frame.completed_at or maybe_whole(ended),
        "background": frame.background,
        "stable_id": frame.stable_id,
        "provenance": frame.provenance,
        "truncated": cutter.truncated,
        "sizes": cutter.sizes or None,
    }


def status_of(word: object, unfinished: ItemStatus) -> ItemStatus:
    """Return an item's own status; one that is over without a word has completed."""
    if not isinstance(word, str):
        return ItemStatus.COMPLETED
    status = ItemStatus(word)
    return unfinished if status is ItemStatus.IN_PROGRESS else status
