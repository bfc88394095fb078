"""Queued messages, background commands and goals as lines. Sans-IO."""

from collections.abc import Sequence
from typing import Final

from clients.cli.clock import Clock
from clients.cli.columns import cut
from clients.cli.plain import one_line
from clients.cli.style import Line, Span, dim, line
from transport.protocol.background import BackgroundCommand
from transport.protocol.goals import Goal
from transport.protocol.queue import (
    DroppedMessage,
    QueuedMessage,
    QueueListResult,
    WaitsFor,
)

_PREVIEW: Final = 60
_WHY: Final = 300  # characters of what somebody said
_ID: Final = 10  # characters of a queue's id: enough to tell them apart
_WAITS: Final = {
    WaitsFor.TURN: "for the running turn to end",
    WaitsFor.GATE: "for the gate to open",
    WaitsFor.WRITER: "for another program to leave the thread",
    WaitsFor.CODEX_QUEUE: "behind what others queued in Codex",
    WaitsFor.GOAL: "for the thread's goal to be reached or paused",
    WaitsFor.AGENT: "for the Agent, which tries again",
    WaitsFor.CODEX: "for Codex, which refuses for now",
}


def queue_lines(found: QueueListResult, clock: Clock) -> list[Line]:
    """Return what waits, oldest first in each thread, and then what was not sent."""
    rows: list[Line] = [_queued(one, clock) for one in found.queue]
    for text in found.codex_queue:
        shown = one_line(text, _PREVIEW)
        rows.append(line(dim("queued in Codex by another program  "), shown))
    rows = rows or [line(dim("No message waits."))]
    if found.dropped:
        rows.append(line(dim("No longer waiting (kept for a day):")))
    return rows + dropped_lines(found.dropped, clock)


def queue_counts(found: QueueListResult) -> list[str]:
    """Return how much waits, and how much was not sent, where there is any."""
    told: list[str] = []
    if count := len(found.queue):
        said = (
            "1 message waits for its"
            if count == 1
            else f"{count} messages wait for their"
        )
        told.append(f"{said} thread")
    if count := len(found.dropped):
        said = "1 message was" if count == 1 else f"{count} messages were"
        told.append(f"{said} not sent: threadgate queue list says why")
    return told


def dropped_lines(dropped: Sequence[DroppedMessage], clock: Clock) -> list[Line]:
    """Return messages that waited and were not sent, each with why."""
    return [row for one in dropped for row in _dropped(one, clock)]


def _dropped(one: DroppedMessage, clock: Clock) -> list[Line]:
    words = one_line(one.preview, _PREVIEW) if one.preview else "(no words are kept)"
    return [
        line(
            Span(one.queue_id[:_ID], "name"),
            dim(f"  {one_line(one.thread_id, 40)}  {clock.time(one.at)}  "),
            words,
        ),
        line(dim("  "), Span(one_line(one.message, _WHY), "warn")),
    ]


def _queued(one: QueuedMessage, clock: Clock) -> Line:
    why = _WAITS.get(one.waits_for) if one.waits_for else None
    if why is None and one.position > 1:
        why = "behind the one before it"
    return line(
        Span(one.queue_id[:_ID], "name"),
        dim(f"  {one_line(one.thread_id, 40)}  {clock.time(one.created_at)}  "),
        one_line(one.preview, _PREVIEW),
        dim(f"  waits {why}" if why else ""),
        dim(f": {one_line(one.waits_message, _WHY)}" if one.waits_message else ""),
    )


def queue_choice(one: QueuedMessage) -> Line:
    """Return one message as something to choose."""
    return line(Span(one.queue_id, "name"), "  ", one_line(one.preview, _PREVIEW))


def background_table(
    commands: Sequence[BackgroundCommand], clock: Clock, *, width: int | None
) -> list[Line]:
    """Return the commands that run on."""
    rows: list[Line] = []
    for one in commands:
        since = clock.time(one.started_at) if one.started_at else "     "
        text = one_line(one.command)
        if width is not None:
            text = cut(text, max(20, width - len(one.item_id) - 10))
        rows.append(line(Span(one.item_id, "name"), dim(f"  {since}  "), text))
    return rows or [line(dim("Nothing runs in the background."))]


def command_choice(one: BackgroundCommand) -> Line:
    """Return one command as something to choose."""
    return line(Span(one.item_id, "name"), "  ", one_line(one.command, _PREVIEW))


def goal_lines(goal: Goal | None) -> list[Line]:
    """Return a thread's goal."""
    if goal is None:
        return [line(dim("No goal."))]
    return [line(dim(f"{goal.status}  "), one_line(goal.objective, 400))]
