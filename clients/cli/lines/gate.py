"""Gate, writers and the state of an Agent as lines. Sans-IO."""

from collections.abc import Sequence
from typing import Final

from clients.cli.clock import Clock, duration
from clients.cli.lines.approvals import approval_title
from clients.cli.lines.waiting import queue_counts
from clients.cli.plain import one_line
from clients.cli.style import Line, Span, dim, line
from transport.protocol.approvals import Approval
from transport.protocol.gateway import (
    FollowedThread,
    GatePosition,
    GateReason,
    GateState,
    GatewayStatus,
    RuntimePhase,
    RuntimeState,
    Writer,
)
from transport.protocol.queue import QueueListResult

_WARNINGS: Final = {
    "approvalsDecidedLocally": (
        "Codex's own configuration there decides some approvals without asking anybody"
    ),
    "sandboxBroken": (
        "Codex cannot start a sandbox there: its commands fail or ask to run without one"
    ),
    "diskFull": (
        "the disk is full there: threads can be read, nothing is sent until there is room"
    ),
    "writerWithoutLock": (
        "a Codex without thread locks runs there: beside it threads can only be read"
    ),
}


def writer_text(writer: Writer, clock: Clock) -> str:
    """Return `Codex desktop (pid 812, since 14:02)`."""
    name = one_line(writer.name, 60)
    return f"{name} (pid {writer.pid}, since {clock.time(writer.since)})"


def gate_text(gate: GateState, clock: Clock) -> str:
    """Return what the gate's state means for the person, as one clause."""
    if gate.state is GatePosition.OPEN:
        return "open: threads can be read and written from here"
    writer = writer_text(gate.writer, clock) if gate.writer else "another program"
    since = clock.time(gate.since)
    reasons = {
        GateReason.DESKTOP_ACTIVE: f"{writer} is the writer",
        GateReason.WRITER_WITHOUT_LOCK: f"{writer} writes without Codex's thread locks",
        GateReason.RUNTIME_DOWN: f"the codex runtime is down since {since}",
        GateReason.CONFIGURED: "its owner has configured it so",
        GateReason.LOCKED: f"its owner has locked it at {since}",
    }
    why = reasons.get(gate.reason) if gate.reason else None
    return f"read-only: {why or 'for a reason that this version does not know'}"


def gate_span(gate: GateState, clock: Clock) -> Span:
    """Return `gate_text` in the colour of its meaning."""
    text = gate_text(gate, clock)
    return Span(text, "good" if gate.state is GatePosition.OPEN else "warn")


def waiting_text(approvals: Sequence[Approval]) -> str:
    """Return what waits for a person: `nothing waits`, `2 approvals wait for an answer`."""
    match len(approvals):
        case 0:
            return "nothing waits for an answer"
        case 1:
            return "1 approval waits for an answer"
        case many:
            return f"{many} approvals wait for an answer"


def runtime_text(runtime: RuntimeState, clock: Clock) -> str:
    """Return `codex 0.163.0, ready since 14:02`."""
    version = f" {runtime.version}" if runtime.version else ""
    text = f"{runtime.name}{version}, {runtime.state} since {clock.time(runtime.since)}"
    if runtime.next_try_at is not None and runtime.state is not RuntimePhase.READY:
        text += f", tried again in {clock.left(runtime.next_try_at)}"
    return f"{text}: {runtime.error}" if runtime.error else text


def status_lines(
    status: GatewayStatus,
    approvals: Sequence[Approval],
    clock: Clock,
    *,
    queue: QueueListResult,
) -> list[Line]:
    """Return the whole status; the first line alone says whether and what to do."""
    gate = gate_span(status.gate, clock)
    first = Span(gate.text[0].upper() + gate.text[1:], gate.style)
    agent = status.agent
    up = duration(status.uptime_ms)
    rows = [
        line(first, f". {waiting_text(approvals).capitalize()}."),
        _row("agent", f"{agent.name}, threadgate {agent.version}, up for {up}"),
        _row("runtime", runtime_text(status.runtime, clock)),
    ]
    rows += [
        _row(
            "thread", f"{lease.thread_id} {lease.state} since {clock.time(lease.since)}"
        )
        for lease in status.leases
    ]
    rows += [_row("follows", _followed(one, clock)) for one in status.following]
    rows += [_row("waits", approval_title(one, clock)) for one in approvals]
    rows += [_row("queue", text) for text in queue_counts(queue)]
    rows += [_row("warning", _WARNINGS.get(w, w)) for w in status.warnings]
    return rows


def _followed(one: FollowedThread, clock: Clock) -> str:
    """Return whose thread is shown as history has it, and that this is not at once."""
    if one.writer is None:
        whose = ", which another program may have"
    else:
        whose = f" of {writer_text(one.writer, clock)}"
    return f"{one.thread_id}{whose}, shown up to some seconds later"


def _row(label: str, text: str) -> Line:
    return line(dim(f"{label:<9}"), text)
