"""Pages: cursors bound to their listing, answers that fit a frame. Sans-IO.

PROTOCOL.md section 4. A cursor is the runtime's own, wrapped with a mark of the listing
that it came from: used anywhere else it is refused, not misread.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from adapter.errors import AdapterError, CodexRefusedError
from agent.limits import PAGE_BYTES
from agent.mutations.refusals import failed_before
from transport.errors import InvalidParams, Refusal
from transport.protocol.base import WireModel
from transport.protocol.items import Item
from transport.protocol.turns import Turn

_MARK: Final = 8  # hexadecimal characters: a guard against mistakes, not against liars
_BAD_CURSOR: Final = "invalid cursor"  # Codex's words
_TURN_ROOM: Final = PAGE_BYTES - 4_096  # one turn alone, with its own fields beside


def _mark(listing: Mapping[str, object]) -> str:
    canonical = json.dumps(listing, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:_MARK]


def wrap_cursor(listing: Mapping[str, object], cursor: str | None) -> str | None:
    """Return the cursor for the client; the end stays the end."""
    if cursor is None:
        return None
    raw = f"{_mark(listing)}{cursor}".encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def unwrap_cursor(listing: Mapping[str, object], cursor: str | None) -> str | None:
    """Return the runtime's cursor. Raises: InvalidParams for one of another listing."""
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        raw = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raw = ""
    if len(raw) <= _MARK or raw[:_MARK] != _mark(listing):
        raise foreign_cursor()
    return raw[_MARK:]


def foreign_cursor() -> InvalidParams:
    """The cursor does not belong to this listing."""
    return InvalidParams(
        "This cursor belongs to another listing. Begin at the first page.",
        data={"field": "cursor", "reason": "not a cursor of this listing"},
    )


def page_refusal(exc: AdapterError, *, thread_id: str, at_ms: int) -> Refusal:
    """Return what a client is told where the store gave no page."""
    if isinstance(exc, CodexRefusedError) and _BAD_CURSOR in exc.message:
        return foreign_cursor()
    return failed_before(exc, thread_id=thread_id, at_ms=at_ms)


def size_of(value: WireModel) -> int:
    """Return a bound of the packed size in bytes: JSON is never much shorter."""
    return len(value.model_dump_json(by_alias=True, exclude_none=True).encode())


def fitting(values: Iterable[WireModel]) -> int:
    """Return how many of these, from the first on, fit one page; at least one."""
    count, used = 0, 0
    for value in values:
        used += size_of(value)
        if used > PAGE_BYTES and count:
            break
        count += 1
    return count


def newest_within(items: Sequence[Item], limit: int) -> list[Item]:
    """Return as many of these, from the last on, as fit `limit` bytes; in their order."""
    kept: list[Item] = []
    for item in reversed(items):
        limit -= size_of(cast("WireModel", item))
        if limit < 0:
            break
        kept.append(item)
    return kept[::-1]


def cut(turn: Turn) -> Turn:
    """Return the turn small enough for a page of its own.

    It keeps its first item (what was asked) and the last ones; `moreItems` says so.
    """
    if turn.items is None or size_of(turn) <= PAGE_BYTES:
        return turn
    first, *others = turn.items
    room = _TURN_ROOM - size_of(cast("WireModel", first))
    kept: list[Item] = []
    for item in reversed(others):
        room -= size_of(cast("WireModel", item)) + 1
        if room < 0:
            break
        kept.append(item)
    items = [first, *reversed(kept)]
    return turn.model_copy(update={"items": items, "more_items": True})


def shown(turn: Turn, items: str) -> Turn:
    """Return a live turn with as many items as a listing gives: none, summary, full."""
    if turn.items is None or items == "full":
        return turn
    if items == "none":
        return turn.model_copy(update={"items": None})
    questions = [item for item in turn.items if item.kind == "userMessage"][:1]
    answers = [item for item in turn.items if item.kind == "agentMessage"][-1:]
    return turn.model_copy(update={"items": [*questions, *answers]})
