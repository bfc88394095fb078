"""What runs in one app-server, and the events that its changes make. Sans-IO.

PROTOCOL.md section 6. Three files work on this state, by what Codex speaks of:
`live_threads.py`, `live_turns.py`, `live_items.py`.
"""

from collections.abc import Callable, Mapping
from typing import Any

from adapter.events.notices import public_of
from adapter.events.open_items import OpenItem, OpenItems
from adapter.events.tree import Node, Tree
from adapter.events.turn_record import TurnRecord
from adapter.limits import ENDED_TURNS, KNOWN_TURNS, OPEN_AT_ONCE
from adapter.runtime.events import Emitted, ItemClosed, ItemOpened, RuntimeEvent
from adapter.runtime.store import HeldText, TextName
from adapter.shapes.items import ended_as
from transport.protocol.events import EventData, Notice, ThreadChanged, ThreadStarted
from transport.protocol.items import Item, ItemStatus
from transport.protocol.threads import Thread
from transport.protocol.turns import Turn

Events = list[RuntimeEvent]
Raw = Mapping[str, Any]


class Live:
    """Threads, running turns and open items of one process.

    `still_running`: commands of an interrupted turn, which Codex does not stop: their
    items have ended here, their end comes later and is told to nobody. `skipped` counts
    what was left out on purpose, by reason. `slept_ms`: for how long the computer has
    been asleep since some moment.
    """

    def __init__(self, provenance: str, slept_ms: Callable[[], int]) -> None:
        self.provenance = provenance
        self.slept_ms = slept_ms
        self.tree = Tree()
        self.items = OpenItems()
        self.turns: dict[str, TurnRecord] = {}
        self.ended: dict[str, Turn] = {}
        self.still_running: set[tuple[str, str]] = set()
        self.skipped: dict[str, int] = {}
        self._known: dict[str, None] = {}
        self._alias: dict[str, str] = {}

    # Turns

    def turn_id(self, turn_id: str) -> str:
        """Return the id under which a turn is told (a review has two)."""
        return self._alias.get(turn_id, turn_id)

    def runs_as(self, told_as: str) -> str:
        """Return the id under which Codex runs the turn that is told under this one."""
        others = (one for one, told in self._alias.items() if told == told_as)
        return next(others, told_as)

    def same_turn(self, turn_id: str, told_as: str) -> None:
        """Note that a turn is told under another's id."""
        self._alias[turn_id] = told_as
        if len(self._alias) > ENDED_TURNS:
            del self._alias[next(iter(self._alias))]

    def know(self, turn_id: str) -> None:
        """Note a turn that was adopted or began here."""
        self._known[turn_id] = None
        if len(self._known) > KNOWN_TURNS:
            del self._known[next(iter(self._known))]

    def forget(self, turn_id: str) -> None:
        """The turn was taken back."""
        self._known.pop(turn_id, None)
        self.ended.pop(turn_id, None)

    def knows(self, turn_id: str) -> bool:
        """Whether the turn was adopted or began here."""
        return turn_id in self._known

    def record(self, turn_id: str, thread_id: str, began: int) -> TurnRecord:
        """Return a new record of a turn."""
        return TurnRecord(
            id=turn_id, thread_id=thread_id, started_at=began, slept=self.slept_ms()
        )

    def slept_in(self, turn_id: str) -> int:
        """Return for how long the computer slept during a running turn (ms)."""
        record = self.turns.get(self.turn_id(turn_id))
        return 0 if record is None else self.slept_ms() - record.slept

    def remember(self, turn: Turn) -> None:
        """Keep a turn that ended, without its items; the oldest leaves."""
        self.ended[turn.id] = turn
        if len(self.ended) > ENDED_TURNS:
            del self.ended[next(iter(self.ended))]

    # Items

    def make_room(self, at: int) -> Events:
        """End the oldest open item where too many are; its own end is told to nobody."""
        if len(self.items) < OPEN_AT_ONCE:
            return []
        return [self.interrupt(self.items.oldest(), at, "item/started")]

    def open(self, opened: OpenItem, at: int) -> ItemOpened:
        """Open an item."""
        self.items.begin(opened)
        thread_id, item = opened.thread_id, opened.item
        if (record := self.turns.get(item.turn_id)) is not None:
            record.began(item.id)
        root = self.tree.root_of(thread_id)
        return ItemOpened(at=at, thread_id=thread_id, root_thread_id=root, item=item)

    def shut(
        self,
        opened: OpenItem,
        item: Item,
        at: int,
        whole: Mapping[TextName, HeldText] | None = None,
    ) -> ItemClosed:
        """End an open item as `item`. `whole`: texts that are cut in it."""
        self.items.end(opened)
        if (record := self.turns.get(item.turn_id)) is not None:
            record.ended(item)
        thread_id = opened.thread_id
        root = self.tree.root_of(thread_id)
        return ItemClosed(
            at=at, thread_id=thread_id, root_thread_id=root, item=item, whole=whole
        )

    def interrupt(self, opened: OpenItem, at: int, seen: str) -> ItemClosed:
        """End an item that Codex leaves open; `seen`: what told us so."""
        seen = f"{self.provenance}:{seen}"
        item = ended_as(opened.now(), ItemStatus.INTERRUPTED, at, seen)
        if item.turn_id not in self.turns:
            item = item.model_copy(update={"background": True})
        return self.shut(opened, item, at)

    # Events

    def event(self, thread_id: str, data: EventData, at: int) -> RuntimeEvent:
        """Return an event about a thread."""
        root = self.tree.root_of(thread_id)
        return Emitted(
            at=at,
            thread_id=thread_id,
            root_thread_id=root,
            data=data,
            public=public_of(data) if isinstance(data, Notice) else None,
        )

    def tell_thread(self, node: Node, at: int) -> Events:
        """Return `thread/started` where it is still to be told."""
        node.ran = True
        thread = self.tree.look(node)
        if thread is None or not node.untold:
            return []
        node.untold, node.shown = False, thread
        return [self.event(node.id, ThreadStarted(thread=thread), at)]

    def changed(self, node: Node, at: int) -> Events:
        """Return `thread/changed` where the thread looks different than before."""
        now = None if node.untold else self.tree.look(node)
        if now is None or (node.shown is not None and _alike(now, node.shown)):
            return []
        node.shown = now
        return [self.event(node.id, ThreadChanged(thread=now), at)]

    def redescribe(self, thread_id: str, update: dict[str, Any], at: int) -> Events:
        """Change how a thread is described; nothing where it is not known here."""
        node = self.tree.node(thread_id)
        if node.base is None:
            return self.skip("a change of a thread that is not loaded here")
        node.base = node.base.model_copy(update=update)
        return self.changed(node, at)

    def skip(self, why: str) -> Events:
        """Count something that is left out, with its reason."""
        self.skipped[why] = self.skipped.get(why, 0) + 1
        return []


def _alike(now: Thread, shown: Thread) -> bool:
    """Whether nothing changed but what turns themselves tell."""
    same = {"updated_at": shown.updated_at, "last_turn_id": shown.last_turn_id}
    return now.model_copy(update=same) == shown
