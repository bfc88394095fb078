"""Threads and their turns as lines. Sans-IO."""

from collections.abc import Sequence
from typing import Final

from clients.cli.choose import short
from clients.cli.clock import Clock, duration
from clients.cli.columns import cut, cut_front, table
from clients.cli.lines.failures import advice
from clients.cli.lines.gate import writer_text
from clients.cli.lines.items import all_items, near
from clients.cli.lines.layout import INDENT
from clients.cli.plain import one_line, visible
from clients.cli.style import BLANK, Line, Span, Style, bold, dim, line
from transport.protocol.gateway import LeaseState
from transport.protocol.threads import Thread, ThreadMode, ThreadStatus
from transport.protocol.turns import Turn, TurnStatus, Usage

WORTH_SAYING_PERCENT: Final = 50  # of the context; below it nobody needs to know

_NAMES: Final = {
    ThreadStatus.WAITING_ON_APPROVAL: "asks you",
    ThreadStatus.WAITING_ON_INPUT: "asks you",
}
_STYLES: Final[dict[ThreadStatus, Style]] = {
    ThreadStatus.RUNNING: "good",
    ThreadStatus.WAITING_ON_APPROVAL: "warn",
    ThreadStatus.WAITING_ON_INPUT: "warn",
    ThreadStatus.FAILED: "bad",
}
_TURN_STYLES: Final[dict[TurnStatus, Style]] = {
    TurnStatus.COMPLETED: "dim",
    TurnStatus.IN_PROGRESS: "good",
    TurnStatus.INTERRUPTED: "warn",
    TurnStatus.FAILED: "bad",
}


def thread_name(thread: Thread) -> str:
    """Return what a person knows a thread by: its title, else how it began."""
    return one_line(thread.title or thread.preview) or "(no title yet)"


def thread_status(thread: Thread) -> Span:
    """Return what a thread does now."""
    text = _NAMES.get(thread.status, str(thread.status))
    if thread.writer is not None or thread.lease is LeaseState.ELSEWHERE:
        text += ", elsewhere"
    return Span(text, _STYLES.get(thread.status, ""))


def followed_line(thread: Thread) -> list[Line]:
    """Return that another program's work is seen late and in part; else no line."""
    if thread.mode is not ThreadMode.FOLLOW:
        return []
    words = (
        "Another program has this thread, or may have: what it does is shown when it is "
        "done, up to some seconds later, not as it is written."
    )
    return [line(dim(words))]


def thread_table(
    threads: Sequence[Thread], clock: Clock, *, width: int | None
) -> list[Line]:
    """Return a table of threads; ids are as short as tells these apart."""
    if not threads:
        return [line("No threads.")]
    length = short([thread.id for thread in threads])
    rows = [_table_row(thread, length, clock) for thread in threads]
    return table(("THREAD", "STATUS", "CHANGED", "FOLDER", "TITLE"), rows, width=width)


def _table_row(thread: Thread, length: int, clock: Clock) -> list[Span]:
    return [
        Span(thread.id[:length], "name"),
        thread_status(thread),
        Span(clock.ago(thread.updated_at)),
        Span(cut_front(visible(thread.cwd), 40)),
        Span(thread_name(thread)),
    ]


def thread_choice(thread: Thread) -> Line:
    """Return a thread as one of several that a person may have meant."""
    name = cut(thread_name(thread), 50)
    return line("  ", Span(thread.id, "name"), f"  {visible(thread.cwd)}  ", dim(name))


def thread_lines(
    thread: Thread, turns: Sequence[Turn], clock: Clock, *, full: bool, more: bool
) -> list[Line]:
    """Return a thread and its turns, which come newest first, oldest first.

    `more`: there are older turns that are not shown.
    """
    rows = [line(bold(thread_name(thread))), _facts(thread)]
    if thread.writer is not None:
        rows.append(line(Span(f"held by {writer_text(thread.writer, clock)}", "warn")))
    if more:
        rows += [BLANK, line(dim("… older turns are not shown (--turns N)"))]
    for turn in reversed(turns):
        items = turn_items(turn, full=full, folder=thread.cwd)
        rows += [BLANK, turn_line(turn, clock), *items]
        rows += turn_advice(turn)
    return rows


def _facts(thread: Thread) -> Line:
    settings = thread.settings
    facts = [visible(thread.cwd)]
    if settings is not None:
        facts += [f for f in (settings.sandbox, settings.approval_policy) if f]
    if thread.git is not None and thread.git.branch:
        facts.append(f"branch {one_line(thread.git.branch, 60)}")
    return line(
        dim(f"{thread.id}  "), thread_status(thread), dim(f"  {', '.join(facts)}")
    )


def turn_line(turn: Turn, clock: Clock) -> Line:
    """Return the line above a turn: its id, when it began, how it ended."""
    at = f" {clock.time(turn.started_at)}" if turn.started_at is not None else ""
    return line(dim(f"── turn {turn.id}{at} "), turn_end(turn))


def turn_choice(turn: Turn) -> Line:
    """Return a turn as one of several, with what was said in it."""
    said = (one.text for one in turn.items or () if one.kind == "userMessage")
    words = cut(one_line(next(said, "")), 60)
    return line("  ", Span(turn.id, "name"), "  ", dim(words), "  ", turn_end(turn))


def turn_end(turn: Turn) -> Span:
    """Return how a turn stands: `completed in 12 s`, `failed: why`."""
    text = "running" if turn.status is TurnStatus.IN_PROGRESS else str(turn.status)
    if turn.inferred:
        text += " (as far as can be told)"
    if turn.duration_ms is not None:
        text += f" in {duration(turn.duration_ms)}"
    if turn.error is not None:
        text += f": {one_line(turn.error.message, 400)}"
    elif turn.usage is not None:
        text += _context(turn.usage)
    return Span(text, _TURN_STYLES.get(turn.status, ""))


def turn_advice(turn: Turn) -> list[Line]:
    """Return what to do about a failure; no line where there is none, or no advice."""
    what = None if turn.error is None else advice(turn.error)
    return [line(INDENT, Span(f"what to do: {what}", "warn"))] if what else []


def _context(usage: Usage) -> str:
    """Return how full the model's context is, once that is worth a look."""
    if not usage.context_window or usage.context_used is None:
        return ""
    percent = 100 * usage.context_used // usage.context_window
    return f", context {percent} % full" if percent >= WORTH_SAYING_PERCENT else ""


def turn_items(turn: Turn, *, full: bool, folder: str | None = None) -> list[Line]:
    """Return the items of a turn, and that there are more where it was cut short."""
    rows = all_items([near(item, folder) for item in turn.items or ()], full=full)
    if turn.more_items:
        rows.append(line(dim("… this turn has more items")))
    return rows
