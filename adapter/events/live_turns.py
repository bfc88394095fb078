"""Turns of one app-server: told before their items, ended after them. Sans-IO.

PROTOCOL.md section 6. A turn that was interrupted or failed ends its open items first; of
a completed one those go on that something else runs. A review's two turn ids are one
turn; a turn whose rootTurnId is another thread's belongs to a sub-agent.
"""

from typing import cast

from adapter.events.live import Events, Live, Raw
from adapter.events.notices import notice
from adapter.events.open_items import OpenItem
from adapter.events.tree import Node
from adapter.events.turn_record import TurnRecord
from adapter.limits import LINE_CHARS, OPEN_AT_ONCE
from adapter.runtime.events import RuntimeEvent
from adapter.shapes.failures import slept_through
from adapter.shapes.shapes import maybe_id, seconds, wire_id
from adapter.shapes.texts import one_line
from adapter.shapes.turns import ended_turn
from generated import codex
from transport.protocol.events import (
    EventData,
    NoticeLevel,
    TurnCompleted,
    TurnStarted,
    UsageChanged,
)
from transport.protocol.items import Command
from transport.protocol.turns import Turn, TurnStatus, Usage


def adopt_turn(live: Live, node: Node, raw: Raw) -> None:
    """Note a turn that an answer listed; called with the oldest first."""
    turn_id = wire_id(raw["id"])
    if live.knows(turn_id):
        return
    live.know(turn_id)
    if node.ran:
        return  # events were quicker than the answer
    node.last_turn = turn_id
    if raw.get("status") == "inProgress" and node.active:
        node.running = turn_id
        began = seconds(raw.get("startedAt")) or 0
        live.turns[turn_id] = live.record(turn_id, node.id, began)


def turn_began(live: Live, thread_id: str, raw: Raw, at: int) -> Events:
    """Take `turn/started`."""
    node = live.tree.node(thread_id)
    turn_id = _canonical(live, node, raw)
    record = live.turns.get(turn_id)
    if turn_id in live.ended or (record is not None and record.told):
        return live.skip("a turn that began twice")
    if record is None:
        began = seconds(raw.get("startedAt")) or at
        record = live.record(turn_id, thread_id, began)
    return _tell(live, node, record, at)


def turn_ended(live: Live, thread_id: str, raw: Raw, at: int) -> Events:
    """Take `turn/completed`."""
    node = live.tree.node(thread_id)
    turn_id = _canonical(live, node, raw)
    turn = ended_turn({**raw, "id": turn_id}, thread_id)
    events = ensure_told(live, node, turn_id, at)
    record = live.turns.get(turn_id)
    if record is None:
        return events + live.skip("the end of a turn that does not run")
    running_on: Events = []
    for opened in live.items.of_turn(turn_id):
        if turn.status is TurnStatus.COMPLETED and opened.outlives_turn:
            continue
        running_on += _still_running(live, opened, at)
        events.append(live.interrupt(opened, at, "turn/completed"))
    events.append(_finish(live, node, record, turn, at))
    node.rest(failed=turn.status is TurnStatus.FAILED)
    return events + running_on + live.changed(node, at)


def ensure_told(live: Live, node: Node, turn_id: str, at: int) -> Events:
    """Tell a turn that shows itself by what happens in it before `turn/started`.

    An item of an unknown turn beside a running one tells nothing: Codex runs one turn at
    a time in a thread, so it is an old turn's.
    """
    record = live.turns.get(turn_id)
    if record is None:
        if live.knows(turn_id) or node.running not in {None, turn_id}:
            return []
        record = live.record(turn_id, node.id, at)
    return [] if record.told else _tell(live, node, record, at)


def break_off(live: Live, node: Node, at: int) -> Events:
    """End the running turn, whose end Codex did not tell; what it became is inferred."""
    record = live.turns.get(node.running or "")
    if record is None or not record.told:
        live.turns.pop(node.running or "", None)
        node.running = None
        return []
    events: Events = [
        live.interrupt(opened, at, "turn/completed")
        for opened in live.items.of_turn(record.id)
    ]
    ended = record.turn().model_copy(
        update={"status": TurnStatus.INTERRUPTED, "completed_at": at, "inferred": True}
    )
    return [*events, _finish(live, node, record, ended, at)]


def end_unread(live: Live, thread_id: str, at: int) -> Events:
    """End the running turn whose end was too long to be read."""
    node = live.tree.nodes.get(thread_id)
    if node is None:
        return live.skip("the end of a turn in a thread that is not known")
    events = break_off(live, node, at)
    node.rest(failed=False)
    return events + live.changed(node, at)


def turn_used(
    live: Live, thread_id: str, turn_id: str, usage: Usage, at: int
) -> Events:
    """Take `thread/tokenUsage/updated`; after a resume it speaks of an old turn."""
    record = live.turns.get(live.turn_id(turn_id))
    if record is None:
        return live.skip("the usage of a turn that does not run")
    record.usage = usage
    return [live.event(thread_id, UsageChanged(turn_id=record.id, usage=usage), at)]


def about_turn(
    live: Live, thread_id: str, turn_id: str, data: EventData, at: int
) -> Events:
    """Tell something of a turn, and the turn before it."""
    told = ensure_told(live, live.tree.node(thread_id), turn_id, at)
    return [*told, live.event(thread_id, data, at)]


def _still_running(live: Live, opened: OpenItem, at: int) -> Events:
    """Say that an interrupt does not stop a running command."""
    if not (isinstance(opened.item, Command) and opened.spawned):
        return []
    if len(live.still_running) < OPEN_AT_ONCE:
        live.still_running.add((opened.thread_id, opened.item.id))
    words = f"the turn was stopped, this command still runs: {opened.item.command}"
    line = one_line(words, LINE_CHARS)
    said = notice(NoticeLevel.WARNING, "stillRunning", line, opened.thread_id)
    return [live.event(opened.thread_id, said, at)]


def _canonical(live: Live, node: Node, raw: Raw) -> str:
    """Return the id under which the turn is told; learn from its rootTurnId.

    In another thread the root turn is the parent's: this one is a sub-agent's. In the
    same thread it is a review, whose items and end come under the root turn's id.
    """
    turn = cast("codex.Turn", raw)
    turn_id, root_id = wire_id(turn["id"]), maybe_id(turn.get("rootTurnId"))
    told_as = live.turn_id(turn_id)
    if root_id in {None, turn_id} or told_as != turn_id:
        return told_as
    home = _home_of(live, root_id or "")
    if home is not None and home != node.id:
        live.tree.link(node.id, home)
        return turn_id
    if home is None and node.parent is not None:
        return turn_id
    live.same_turn(turn_id, root_id or "")
    return root_id or ""


def _home_of(live: Live, turn_id: str) -> str | None:
    record = live.turns.get(turn_id) or live.ended.get(turn_id)
    return None if record is None else record.thread_id


def _tell(live: Live, node: Node, record: TurnRecord, at: int) -> Events:
    events: Events = []
    if node.running not in {None, record.id}:
        events += break_off(live, node, at)
    record.told = True
    live.turns[record.id] = record
    live.know(record.id)
    node.running = node.last_turn = record.id
    events += live.tell_thread(node, at)
    events.append(live.event(node.id, TurnStarted(turn=record.turn()), at))
    return events + live.changed(node, at)


def _finish(
    live: Live, node: Node, record: TurnRecord, turn: Turn, at: int
) -> RuntimeEvent:
    error = turn.error
    if error is not None:
        words = slept_through(error.message, live.slept_in(record.id))
        error = error.model_copy(update={"message": words})
    whole = turn.model_copy(
        update={
            "error": error,
            "usage": record.usage,
            "started_at": turn.started_at or record.started_at,
            "completed_at": turn.completed_at or at,
            "inferred": turn.inferred if turn.completed_at else None,
        }
    )
    del live.turns[record.id]
    live.remember(whole)
    if node.running == record.id:
        node.running = None
    if node.base is not None:
        node.base = node.base.model_copy(update={"updated_at": at})
    return live.event(node.id, TurnCompleted(turn=whole), at)
