"""A normalizer that is told what Codex says; what comes out, in short words."""

from typing import Any

from adapter.events.normalize import Normalizer
from adapter.runtime.events import (
    Emitted,
    ItemClosed,
    ItemDelta,
    ItemOpened,
    RuntimeEvent,
)
from tests.support import codex_says as says
from tests.support.codex_says import AT, THREAD, Raw
from transport.protocol.events import Notice


class Codex:
    """A normalizer that is told things; `told` is all that came out, in short words."""

    def __init__(self, *, adopted: bool = True, **thread: Any) -> None:
        self.normalizer = Normalizer()
        self.events: list[RuntimeEvent] = []
        if adopted:
            past = says.turn("t0", "completed")
            described = says.thread(preview="earlier", **thread)
            self.normalizer.adopt(described, [past])

    def says(self, method: str, **params: Any) -> list[RuntimeEvent]:
        """Let Codex say something; return what comes out of it."""
        events = self.normalizer.notification(method, params, AT)
        self.events += events
        return events

    def item(self, word: str, item: Raw, turn: str = "t1", on: str = THREAD) -> None:
        self.says(f"item/{word}", **says.in_turn(item, turn, on))

    def begins(self, turn: str = "t1", on: str = THREAD, **changes: Any) -> None:
        self.says("turn/started", threadId=on, turn=says.turn(turn, **changes))

    def ends(
        self, status: str = "completed", turn: str = "t1", on: str = THREAD, **more: Any
    ) -> None:
        raw = says.turn(turn, status, **more)
        self.says("turn/completed", threadId=on, turn=raw)

    def status(self, kind: str, *flags: str, on: str = THREAD) -> None:
        raw = {"type": kind, "activeFlags": list(flags)}
        self.says("thread/status/changed", threadId=on, status=raw)

    def busy(self) -> bool:
        return self.normalizer.busy

    @property
    def told(self) -> list[str]:
        return [word(event) for event in self.events]

    def of(self, kind: type[Any]) -> list[Any]:
        return [
            event.data
            for event in self.events
            if isinstance(event, Emitted) and isinstance(event.data, kind)
        ]


def word(event: RuntimeEvent) -> str:
    """Return an event in a few words."""
    match event:
        case ItemOpened():
            return f"begin {event.item.id}"
        case ItemClosed():
            return f"end {event.item.id} {event.item.status}"
        case ItemDelta():
            return f"delta {event.item_id} {event.text}"
        case Emitted(data=Notice() as said):
            return f"notice {said.code}"
        case Emitted():
            return event.data.event


def closed(codex: Codex) -> list[Any]:
    """Return all items that have ended."""
    return [event.item for event in codex.events if isinstance(event, ItemClosed)]
