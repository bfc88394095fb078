"""Items of one app-server: each begins once, grows, and ends once. Sans-IO.

PROTOCOL.md section 6. `item/completed` is authoritative. An item that ends after its
turn is `background`; so is one whose turn is not the running one.
"""

from dataclasses import replace

from adapter.events.live import Events, Live, Raw
from adapter.events.live_turns import ensure_told
from adapter.events.open_items import OpenItem
from adapter.events.tree import Node
from adapter.limits import DELTA_BYTES, PREVIEW_CHARS
from adapter.runtime.events import ItemDelta
from adapter.shapes.item_frame import Frame
from adapter.shapes.items import ended_as, item_from
from adapter.shapes.shapes import MISFITS, maybe_text, sequence, text, wire_id
from adapter.shapes.texts import one_line, pieces
from adapter.shapes.whole_texts import whole_texts
from transport.protocol.events import DeltaChannel
from transport.protocol.items import Item, ItemStatus, UserMessage


def item_began(
    live: Live, thread_id: str, turn_id: str, raw: Raw, at: int, *, began: int
) -> Events:
    """Take `item/started`. `began`: ms, as Codex says."""
    node = live.tree.node(thread_id)
    turn_id = live.turn_id(turn_id)
    frame = replace(
        _frame(live, node, turn_id, "item/started"),
        started_at=began,
        status=ItemStatus.IN_PROGRESS,
    )
    item = item_from(raw, frame)
    _meet_agents(live, node, raw)
    events = ensure_told(live, node, turn_id, at)
    before = live.items.get(thread_id, item.id)
    if before is not None and before.item.turn_id == turn_id:
        before.item = item
        return events + live.skip("an item that began twice")
    if before is not None:
        events.append(live.interrupt(before, at, "item/started"))
    spawned = raw.get("processId") is not None
    opened = OpenItem(thread_id, text(raw["type"]), item, spawned=spawned)
    return [*events, *live.make_room(at), live.open(opened, at)]


def item_grew(
    live: Live,
    thread_id: str,
    item_id: str,
    more: tuple[DeltaChannel, int, str],
    at: int,
) -> Events:
    """Take a delta; `more`: channel, part, text."""
    channel, part, words = more
    opened = live.items.get(thread_id, item_id)
    if opened is None:
        return live.skip("more text of an item that is not open")
    opened.append(channel, part, words)
    root = live.tree.root_of(thread_id)
    return [
        ItemDelta(
            at=at,
            thread_id=thread_id,
            root_thread_id=root,
            item_id=item_id,
            channel=channel,
            part=part,
            text=piece,
        )
        for piece in pieces(words, DELTA_BYTES)
        if piece
    ]


def item_ended(
    live: Live, thread_id: str, turn_id: str, raw: Raw, at: int, *, ended: int
) -> Events:
    """Take `item/completed`. `ended`: ms, as Codex says."""
    node = live.tree.node(thread_id)
    item_id = wire_id(raw["id"])
    events: Events = []
    if live.items.get(thread_id, item_id) is None:
        if live.items.ended(thread_id, item_id):
            live.still_running.discard((thread_id, item_id))
            return live.skip("the end of an item that has ended")
        events = item_began(live, thread_id, turn_id, raw, at, began=ended)
    opened = live.items.get(thread_id, item_id)
    assert opened is not None
    item = _final(live, node, opened, raw, ended)
    whole = whole_texts(raw) if item.truncated else None
    events.append(live.shut(opened, item, at, whole))
    return events + _preview(live, node, item, at)


def model_call_lost(live: Live, turn_id: str, at: int) -> Events:
    """Codex asks the model again: what the last call had begun to say is abandoned.

    It would stay open until its turn ends, and look as if it still grew. Calls of tools
    and finished texts are kept.
    """
    return [
        live.interrupt(opened, at, "error")
        for opened in live.items.of_turn(live.turn_id(turn_id))
        if opened.streamed
    ]


def _final(live: Live, node: Node, opened: OpenItem, raw: Raw, ended: int) -> Item:
    """Return the item as Codex ended it; where that cannot be read, as far as it came."""
    frame = replace(
        _frame(live, node, opened.item.turn_id, "item/completed"),
        started_at=opened.item.started_at,
        completed_at=ended,
    )
    try:
        _meet_agents(live, node, raw)
        return item_from(raw, frame)
    except MISFITS:
        live.skip("the end of an item with an unknown shape")
        return ended_as(opened.now(), ItemStatus.OTHER, ended, frame.provenance)


def _frame(live: Live, node: Node, turn_id: str, seen: str) -> Frame:
    running = turn_id in live.turns
    fresh = not live.knows(turn_id) and node.running is None
    return Frame(
        turn_id=turn_id,
        provenance=f"{live.provenance}:{seen}",
        background=None if running or fresh else True,
        stable_id=False if node.legacy else None,
    )


def _meet_agents(live: Live, node: Node, raw: Raw) -> None:
    """Learn of sub-agents from the items that spawn and watch them."""
    if raw["type"] == "subAgentActivity":
        child = wire_id(raw["agentThreadId"])
        live.tree.link(child, node.id)
        name = one_line(maybe_text(raw.get("agentPath")) or "", PREVIEW_CHARS)
        live.tree.node(child).name = name or None
    elif raw["type"] == "collabAgentToolCall" and raw.get("tool") == "spawnAgent":
        prompt = one_line(maybe_text(raw.get("prompt")) or "", PREVIEW_CHARS)
        for child in sequence(raw["receiverThreadIds"]):
            live.tree.link(wire_id(child), node.id)
            live.tree.node(wire_id(child)).prompt = prompt


def _preview(live: Live, node: Node, item: Item, at: int) -> Events:
    """Call a new thread after its first message, as Codex does."""
    if not isinstance(item, UserMessage) or node.base is None or node.base.preview:
        return []
    line = one_line(item.text, PREVIEW_CHARS)
    return live.redescribe(node.id, {"preview": line}, at)
