"""A stored review as the one turn that it is. Sans-IO. PROTOCOL.md section 5.

Codex stores a review as two rows: the turn that was asked for, with the findings, and
beside it another one in which the model worked, which reads as interrupted for ever and
names the first as its `rootTurnId`. While the review runs, and after a crash, the second
is all there is. Clients are told one turn, live and stored, under the first one's id.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from adapter.shapes.shapes import mapping, maybe_id, sequence, wire_id
from transport.protocol.items import Item, Review, UserMessage
from transport.protocol.work_items import ReviewPhase

Raw = Mapping[str, Any]
_BEGINS: Final = "enteredReviewMode"


def inner_of(rows: Sequence[Raw], turn_id: str) -> str | None:
    """Return the id of the row in which the review `turn_id` worked, if it is here."""
    return next((wire_id(row["id"]) for row in rows if _root(row) == turn_id), None)


def roots_of(rows: Sequence[Raw]) -> dict[str, str]:
    """Return the turn that each row works for, of those that work for another."""
    roots = {wire_id(row["id"]): _root(row) for row in rows}
    return {one: root for one, root in roots.items() if root is not None}


def has_inner(rows: Sequence[Raw]) -> bool:
    """Whether a row works for another turn: a review's does, and a sub-agent's."""
    return any(_root(row) is not None for row in rows)


def as_told(rows: Sequence[Raw], *, follows: bool, goes_on: bool) -> list[Raw]:
    """Return the rows of a page with each review as one. Raises one of `MISFITS`.

    Not for threads of sub-agents, whose turns all work for their parent's. `follows`: a
    page comes before this one; `goes_on`: one comes behind it. What works at such an edge
    for a turn that is not here is told with that turn.
    """
    told = {wire_id(row["id"]): row for row in rows}
    for index, row in enumerate(rows):
        root = _root(row)
        if root is None:
            continue
        del told[wire_id(row["id"])]
        first, last = index == 0, index == len(rows) - 1
        if root in told:
            told[root] = _joined(told[root], row)
        elif (first and not follows) or not (first or (last and goes_on)):
            told[root] = {**row, "id": root, "rootTurnId": root}
    order = [_root(row) or wire_id(row["id"]) for row in rows]
    return [told[one] for one in dict.fromkeys(order) if one in told]


def items_as_told(items: Sequence[Item], *, newest_first: bool) -> list[Item]:
    """Return items with what a review's model was asked under the review's own turn.

    It comes right behind the item with which the review begins.
    """
    told = [*items]
    step = 1 if newest_first else -1
    for index, item in enumerate(items):
        beside = index + step
        if not isinstance(item, UserMessage) or not 0 <= beside < len(items):
            continue
        before = items[beside]
        if is_beginning(before):
            told[index] = item.model_copy(update={"turn_id": before.turn_id})
    return told


def is_beginning(item: Item) -> bool:
    """Whether a review begins with it."""
    return isinstance(item, Review) and item.phase is ReviewPhase.ENTERED


def _root(row: Raw) -> str | None:
    """Return the turn that this one works for, where it is another."""
    root = maybe_id(row.get("rootTurnId"))
    return None if root in (None, row["id"]) else root


def _joined(review: Raw, inner: Raw) -> Raw:
    """Put what the model was asked behind the item with which the review begins."""
    items = [mapping(item) for item in sequence(review["items"])]
    asked = [mapping(item) for item in sequence(inner["items"])]
    begins = 1 if items and items[0].get("type") == _BEGINS else 0
    whole = [*items[:begins], *asked, *items[begins:]]
    return cast("Raw", {**review, "items": whole})
