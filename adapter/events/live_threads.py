"""Threads of one app-server: adopted, begun, changed, unloaded, gone. Sans-IO.

PROTOCOL.md sections 5 and 6. A thread without a turn does not exist in v2, so
`thread/started` waits for the first one.
"""

from collections.abc import Sequence

from adapter.events.live import Events, Live, Raw
from adapter.events.live_turns import adopt_turn, break_off
from adapter.events.tree import Node
from adapter.shapes.threads import is_legacy, parent_from, status_from, thread_from
from transport.protocol.events import ThreadRemoved, ThreadReverted
from transport.protocol.threads import Thread, ThreadStatus


def adopt(live: Live, raw: Raw, turns: Sequence[Raw]) -> None:
    """Note a thread that our own request loaded; its newest turns, newest first.

    Raises: AnswerShapeError, or one of `MISFITS`.
    """
    thread = thread_from(raw)
    node = live.tree.adopt(thread, parent=parent_from(raw))
    _describe(node, raw, thread)
    for turn in reversed(turns):
        adopt_turn(live, node, turn)
    node.shown = live.tree.look(node)


def thread_begun(live: Live, raw: Raw) -> Events:
    """Take `thread/started`: told together with the first turn."""
    thread = thread_from(raw)
    _describe(live.tree.begun(thread), raw, thread)
    return []


def _describe(node: Node, raw: Raw, thread: Thread) -> None:
    """Note what is said once. A status that Codex told by itself is newer."""
    node.legacy = is_legacy(raw)
    if node.said is ThreadStatus.UNKNOWN:
        node.said = thread.status


def status_said(live: Live, thread_id: str, raw: Raw, at: int) -> Events:
    """Take `thread/status/changed`."""
    said = status_from(raw)
    unloaded = raw["type"] == "notLoaded"
    events = cut_off(live, thread_id, at) if unloaded else []
    node = live.tree.node(thread_id)
    node.said = said
    return events if unloaded else live.changed(node, at)


def removed(live: Live, thread_id: str, reason: str, at: int) -> Events:
    """The thread is gone from the lists; what ran in it ends first."""
    events = cut_off(live, thread_id, at)
    gone = ThreadRemoved(thread_id=thread_id, reason=reason)
    events.append(live.event(thread_id, gone, at))
    live.tree.drop(thread_id)  # it is described anew when it is loaded again
    return events


def reverted(live: Live, thread_id: str, left: str, at: int) -> Events:
    """Our own wish took turns back; `left`: the newest that stays."""
    node = live.tree.node(thread_id)
    for turn in [one for one in live.ended.values() if one.thread_id == thread_id]:
        live.forget(turn.id)
    live.know(left)
    node.last_turn = left
    gone = ThreadReverted(thread_id=thread_id, last_turn_id=left)
    return [live.event(thread_id, gone, at), *live.changed(node, at)]


def cut_off(live: Live, thread_id: str, at: int) -> Events:
    """The thread is loaded no more: background commands have ended with it."""
    node = live.tree.node(thread_id)
    events: Events = [
        live.interrupt(opened, at, "thread/closed")
        for opened in live.items.of_thread(thread_id)
    ]
    if node.running is not None:
        events += break_off(live, node, at)
    node.said, node.goal = ThreadStatus.UNKNOWN, None
    live.still_running = {one for one in live.still_running if one[0] != thread_id}
    return events


def all_over(live: Live, at: int) -> Events:
    """The process is gone, and with it all that ran in it."""
    open_in = (one.thread_id for one in live.items.all())
    threads = dict.fromkeys([*live.tree.nodes, *open_in])
    return [event for one in threads for event in cut_off(live, one, at)]
