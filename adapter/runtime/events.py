"""What a runtime tells: events in v2 vocabulary, as they happen. Sans-IO (values).

They go through `Emit`: a plain call that must not block, so that a slow client never
holds back the runtime's output.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from adapter.runtime.store import HeldText, TextName
from transport.protocol.events import DeltaChannel, EventData
from transport.protocol.items import Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """A whole-object event. `at` in ms; `root_thread_id` only for sub-agents.

    `public`: what devices are told instead of `data`, where that is for the workstation.
    """

    at: int
    thread_id: str | None
    root_thread_id: str | None = None
    data: EventData
    public: EventData | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemOpened:
    """An item began. The journal gives it its `ref`."""

    at: int
    thread_id: str
    root_thread_id: str | None = None
    item: Item


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemClosed:
    """An item ended. `whole`: those of its texts that are cut in `item`."""

    at: int
    thread_id: str
    root_thread_id: str | None = None
    item: Item
    whole: Mapping[TextName, HeldText] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDelta:
    """More text of an open item. `part`: summary or content index, else 0."""

    at: int
    thread_id: str
    root_thread_id: str | None = None
    item_id: str
    channel: DeltaChannel
    part: int
    text: str


RuntimeEvent = Emitted | ItemOpened | ItemClosed | ItemDelta
Emit = Callable[[RuntimeEvent], None]
