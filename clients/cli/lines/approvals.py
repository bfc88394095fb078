"""Approvals as lines: whole, since a yes is about all of it. Sans-IO. PROTOCOL.md 5."""

from collections.abc import Mapping
from typing import Final

from clients.cli.clock import Clock
from clients.cli.lines.asked import FIELD, detail_lines, field
from clients.cli.lines.layout import INDENT
from clients.cli.plain import one_line, visible
from clients.cli.style import Line, Span, Style, bold, dim, line
from transport.protocol.approvals import (
    Approval,
    ApprovalKind,
    ApprovalState,
    ChoiceEffect,
)

_UNNAMED: Final[Mapping[str, str]] = {}
_SEEN_AT_ONCE: Final = 18  # lines; of more the first may have left a small terminal

_KINDS: Final = {
    ApprovalKind.COMMAND: "Codex asks to run a command",
    ApprovalKind.FILE_CHANGE: "Codex asks to change files",
    ApprovalKind.PERMISSIONS: "Codex asks for more permissions",
    ApprovalKind.QUESTION: "Codex asks you something",
    ApprovalKind.ELICITATION: "An MCP server asks you something",
    ApprovalKind.TOOL_CALL: "Codex asks to run a tool",
}
_STOPPING: Final = frozenset({ApprovalKind.COMMAND, ApprovalKind.FILE_CHANGE})

_ENDS: Final = {
    ApprovalState.EXPIRED: "nobody answered in time: declined",
    ApprovalState.WITHDRAWN: "withdrawn: the turn ended before an answer took effect",
    ApprovalState.ANSWERING: "answered; Codex has not confirmed it yet",
}

_ANSWERS: Final = {
    ChoiceEffect.ALLOW: "approved",
    ChoiceEffect.ALLOW_FOR_SESSION: "approved, and remembered until the thread is unloaded",
    ChoiceEffect.ANSWER: "answered",
    ChoiceEffect.DENY: "declined",
    ChoiceEffect.CANCEL: "declined, and the turn was stopped",
}


def approval_lines(approval: Approval, clock: Clock) -> list[Line]:
    """Return the whole question: what, where, what else a yes allows, until when."""
    detail = approval.detail
    until = f"{clock.time(approval.expires_at)}, in {clock.left(approval.expires_at)}"
    asks = _KINDS.get(approval.kind) or visible(approval.title)
    rows = [
        line(Span("approval ", "warn"), bold(approval.id), f"  {asks}"),
        field("thread", approval.root_thread_id),
    ]
    if approval.thread_id != approval.root_thread_id:
        rows.append(field("agent", f"{approval.thread_id} (a sub-agent)"))
    rows += detail_lines(detail)
    if len(rows) > _SEEN_AT_ONCE:
        rows.append(field("length", f"{len(rows)} lines: scroll up and read all"))
    rows.append(field("until", f"{until}; without an answer it is declined"))
    return rows


def how_to_answer(approval: Approval) -> list[Line]:
    """Return the commands that answer it, as far as its choices offer them."""
    effects = {choice.effect for choice in approval.choices}
    rows = [_command("no", f"threadgate deny {approval.id}")]
    if ChoiceEffect.ALLOW in effects:
        rows.insert(0, _command("yes", f"threadgate approve {approval.id}"))
    if ChoiceEffect.ANSWER in effects:
        rows.insert(0, _command("answer", f"threadgate answer {approval.id}"))
    return rows


def approval_title(approval: Approval, clock: Clock) -> str:
    """Return an approval on one line, for lists."""
    left = clock.left(approval.expires_at)
    what = approval.detail.command or approval.title
    return f"{approval.id}  {one_line(visible(what), 60)}  ({left} left)"


def resolved_text(
    approval: Approval,
    me: str | None = None,
    devices: Mapping[str, str] = _UNNAMED,
) -> str:
    """Return how an approval ended, and by whom.

    `me`: the id of this device. `devices`: names by ids, as far as known.
    """
    if (end := _ENDS.get(approval.state)) is not None:
        return end
    chosen = [c.effect for c in approval.choices if c.id == approval.choice]
    if chosen == [ChoiceEffect.CANCEL] and not stops_turn(approval):
        what = "dismissed"
    else:
        what = _ANSWERS.get(chosen[0], str(approval.state)) if chosen else "answered"
    return f"{what}{_by(approval.decided_by, me, devices)}"


def stops_turn(approval: Approval) -> bool:
    """Whether cancelling it stops the turn; of others only the question goes away."""
    return approval.kind in _STOPPING


def _by(device_id: str | None, me: str | None, devices: Mapping[str, str]) -> str:
    match device_id:
        case None:
            return ""
        case "local":
            return " at the workstation"
        case _ if device_id == me:
            return " by this device"
        case _:
            name = devices.get(device_id)
            called = "" if name is None else f" ({one_line(name, 40)})"
            return f" by device {one_line(device_id, 32)}{called}"


def resolved_line(
    approval: Approval,
    me: str | None = None,
    devices: Mapping[str, str] = _UNNAMED,
) -> Line:
    """Return the end of an approval under its question, as `resolved_text` says it."""
    allowed = {
        ChoiceEffect.ALLOW,
        ChoiceEffect.ALLOW_FOR_SESSION,
        ChoiceEffect.ANSWER,
    }
    yes = any(c.id == approval.choice and c.effect in allowed for c in approval.choices)
    style: Style = (
        "good" if yes and approval.state is ApprovalState.ANSWERED else "warn"
    )
    return line(
        INDENT,
        dim(f"{approval.id} "),
        Span(resolved_text(approval, me, devices), style),
    )


def _command(answer: str, command: str) -> Line:
    return line("  ", dim(f"{answer:<{FIELD}}"), Span(command, "name"))
