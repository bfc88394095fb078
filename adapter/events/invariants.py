"""What the protocol promises about the order of events, checked as they come. Sans-IO.

PROTOCOL.md section 1.3 (Order) and section 6. The names of the rules are for people: a
broken one is a bug of ours, or of the Codex that said so, and is told as it happens.
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from adapter.limits import ITEM_BYTES
from adapter.runtime.events import (
    Emitted,
    ItemClosed,
    ItemDelta,
    ItemOpened,
    RuntimeEvent,
)
from adapter.shapes.texts import packed_bound
from adapter.shapes.turns import HISTORY
from transport.protocol.approvals import Approval
from transport.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    Notice,
    TurnCompleted,
    TurnStarted,
)
from transport.protocol.items import Item, ItemStatus
from transport.protocol.turns import Turn, TurnStatus


class Rule(StrEnum):
    """A promise. `TURN_ORDER`: turn/started, its items' events, turn/completed (but for
    background items); `ITEM_ORDER`: item/started, deltas, item/completed, once each;
    `ITEMS_OF_ENDED_TURN`: a turn that did not complete has ended all its items before;
    `APPROVAL_ORDER`: requested after its item began, then resolved once, in its turn;
    `ABANDONED_TEXT`: when the model is asked again, what the lost call had begun to say has
    ended before; `ITEM_SIZE`: an item's bound."""

    TURN_ORDER = "turn-order"
    ITEM_ORDER = "item-order"
    ITEMS_OF_ENDED_TURN = "items-of-ended-turn"
    APPROVAL_ORDER = "approval-order"
    ABANDONED_TEXT = "abandoned-text"
    ITEM_SIZE = "item-size"


_TEXTS: Final = frozenset({"agentMessage", "plan", "reasoning"})


@dataclass(frozen=True, slots=True)
class Broken:
    """One rule that one event broke; `what` names it by its ids."""

    rule: Rule
    what: str


@dataclass(slots=True)
class Invariants:
    """Give it every event in order, then `end` where nothing can follow."""

    _open_items: dict[tuple[str, str], str] = field(
        default_factory=dict[tuple[str, str], str]
    )
    _open_texts: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    _seen_items: set[str] = field(default_factory=set[str])
    _running: set[str] = field(default_factory=set[str])
    _over: set[str] = field(default_factory=set[str])
    _open_in: Counter[str] = field(default_factory=Counter[str])
    _asked: dict[str, Approval] = field(default_factory=dict[str, Approval])
    _resolved: set[str] = field(default_factory=set[str])

    def see(self, event: RuntimeEvent) -> list[Broken]:
        """Take one event in; return what it broke."""
        match event:
            case ItemOpened():
                return self._opened(event.thread_id, event.item)
            case ItemDelta():
                if (event.thread_id, event.item_id) in self._open_items:
                    return []
                what = f"text for item {event.item_id}, which is not open"
                return [Broken(Rule.ITEM_ORDER, what)]
            case ItemClosed():
                return self._closed(event.thread_id, event.item)
            case Emitted():
                return self._emitted(event)

    def end(self) -> list[Broken]:
        """Return what was left without its end."""
        return [
            *(
                Broken(Rule.ITEM_ORDER, f"item {item_id} was never completed")
                for _, item_id in self._open_items
            ),
            *(
                Broken(Rule.TURN_ORDER, f"turn {turn_id} was never completed")
                for turn_id in sorted(self._running)
            ),
            *(
                Broken(Rule.APPROVAL_ORDER, f"approval {one} was never resolved")
                for one in self._asked
                if one not in self._resolved
            ),
        ]

    def _opened(self, thread_id: str, item: Item) -> list[Broken]:
        broken = self._in_turn(item)
        if (thread_id, item.id) in self._open_items:
            broken.append(Broken(Rule.ITEM_ORDER, f"item {item.id} began twice"))
        if item.status is not ItemStatus.IN_PROGRESS:
            broken.append(Broken(Rule.ITEM_ORDER, f"item {item.id} began as ended"))
        self._open_items[thread_id, item.id] = item.turn_id
        if item.kind in _TEXTS:
            self._open_texts.add((thread_id, item.id))
        self._seen_items.add(item.id)
        self._open_in[item.turn_id] += 1
        return broken + self._sized(item)

    def _closed(self, thread_id: str, item: Item) -> list[Broken]:
        broken = [] if item.background else self._in_turn(item)
        turn_id = self._open_items.pop((thread_id, item.id), None)
        self._open_texts.discard((thread_id, item.id))
        if turn_id is None and item.provenance != HISTORY:
            what = f"item {item.id} was completed without having begun"
            broken.append(Broken(Rule.ITEM_ORDER, what))
        elif turn_id is not None:
            self._open_in[turn_id] -= 1
        if item.status is ItemStatus.IN_PROGRESS:
            what = f"item {item.id} was completed as in progress"
            broken.append(Broken(Rule.ITEM_ORDER, what))
        return broken + self._sized(item)

    def _in_turn(self, item: Item) -> list[Broken]:
        if item.turn_id in self._running:
            return []
        when = "after" if item.turn_id in self._over else "before"
        what = f"item {item.id} {when} its turn {item.turn_id}"
        return [Broken(Rule.TURN_ORDER, what)]

    def _sized(self, item: Item) -> list[Broken]:
        size = packed_bound(item.wire())
        if size <= ITEM_BYTES:
            return []
        return [Broken(Rule.ITEM_SIZE, f"item {item.id} has {size} bytes")]

    def _emitted(self, event: Emitted) -> list[Broken]:
        match event.data:
            case TurnStarted(turn=turn):
                return self._turn_started(turn)
            case TurnCompleted(turn=turn):
                return self._turn_completed(turn)
            case ApprovalRequested(approval=approval):
                return self._approval_asked(approval)
            case ApprovalResolved(approval=approval):
                return self._approval_resolved(approval)
            case Notice(code="modelRetry"):
                return self._asked_again(event.thread_id)
            case _:
                return []

    def _asked_again(self, thread_id: str | None) -> list[Broken]:
        return [
            Broken(Rule.ABANDONED_TEXT, f"item {item_id} was left open by a retry")
            for thread, item_id in sorted(self._open_texts)
            if thread == thread_id
        ]

    def _turn_started(self, turn: Turn) -> list[Broken]:
        again = turn.id in self._running | self._over
        self._running.add(turn.id)
        return [Broken(Rule.TURN_ORDER, f"turn {turn.id} began twice")] if again else []

    def _turn_completed(self, turn: Turn) -> list[Broken]:
        broken: list[Broken] = []
        if turn.id not in self._running:
            what = f"turn {turn.id} was completed without running"
            broken.append(Broken(Rule.TURN_ORDER, what))
        self._running.discard(turn.id)
        self._over.add(turn.id)
        if turn.status is not TurnStatus.COMPLETED:
            if left := self._open_in[turn.id]:
                what = f"turn {turn.id} ended {turn.status} with {left} items open"
                broken.append(Broken(Rule.ITEMS_OF_ENDED_TURN, what))
            broken += [
                Broken(Rule.APPROVAL_ORDER, f"approval {one} outlived its turn")
                for one, approval in self._asked.items()
                if approval.turn_id == turn.id and one not in self._resolved
            ]
        return broken

    def _approval_asked(self, approval: Approval) -> list[Broken]:
        broken: list[Broken] = []
        if approval.item_id is not None and approval.item_id not in self._seen_items:
            what = f"approval {approval.id} before its item {approval.item_id}"
            broken.append(Broken(Rule.APPROVAL_ORDER, what))
        if approval.id in self._asked:
            what = f"approval {approval.id} was requested twice"
            broken.append(Broken(Rule.APPROVAL_ORDER, what))
        self._asked[approval.id] = approval
        return broken

    def _approval_resolved(self, approval: Approval) -> list[Broken]:
        again = approval.id in self._resolved
        unasked = approval.id not in self._asked
        self._resolved.add(approval.id)
        if not (again or unasked):
            return []
        why = "twice" if again else "without being requested"
        what = f"approval {approval.id} was resolved {why}"
        return [Broken(Rule.APPROVAL_ORDER, what)]
