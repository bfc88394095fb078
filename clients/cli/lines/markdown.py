"""A thread as a page of Markdown, to keep or to send on. Sans-IO.

What the model and the person wrote stands as it is; all else is in fences, which are
longer than any row of backticks in them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from clients.cli.clock import Clock
from clients.cli.lines.items import command_result, item_lines, near
from clients.cli.lines.layout import INDENT
from clients.cli.lines.threads import thread_name, turn_advice, turn_end
from clients.cli.plain import block, one_line, visible
from clients.cli.style import Line, line, paint
from transport.protocol.items import (
    AgentMessage,
    Command,
    FileChange,
    Item,
    Plan,
    UserMessage,
)
from transport.protocol.threads import Thread
from transport.protocol.turns import Turn

_TICKS: Final = re.compile("`+")


def markdown_lines(
    thread: Thread, turns: Sequence[Turn], clock: Clock, *, full: bool, more: bool
) -> list[Line]:
    """Return the page; the turns come newest first, and stand oldest first."""
    rows = [f"# {_plain(thread_name(thread))}", "", _facts(thread)]
    if more:
        rows += ["", "*Older turns are not here.*"]
    for turn in reversed(turns):
        rows += _turn(turn, clock, thread.cwd, full=full)
    return [line(row) for row in rows]


def _facts(thread: Thread) -> str:
    branch = thread.git.branch if thread.git is not None else None
    on = f" · branch {_code(one_line(branch, 60))}" if branch else ""
    return f"{_code(thread.id)} · {_code(visible(thread.cwd))}{on}"


def _turn(turn: Turn, clock: Clock, folder: str, *, full: bool) -> Iterator[str]:
    at = f"{clock.time(turn.started_at)}, " if turn.started_at is not None else ""
    yield from ("", f"## {at}{_plain(turn_end(turn).text)}")
    for item in turn.items or ():
        yield from _item(near(item, folder), full=full)
    if turn.more_items:
        yield from ("", "*This turn has more items.*")
    for row in turn_advice(turn):
        yield from ("", _plain(_text(row)))


def _item(item: Item, *, full: bool) -> Iterator[str]:
    match item:
        case UserMessage():
            yield from ("", "**You**", "")
            yield from (f"> {row}" for row in block(item.text).split("\n"))
        case AgentMessage() | Plan():
            who = "Plan" if isinstance(item, Plan) else "Codex"
            yield from ("", f"**{who}**", "", *block(item.text).strip("\n").split("\n"))
        case Command():
            ran = [f"$ {row}" for row in visible(item.command).split("\n")]
            rows = [_text(row) for row in command_result(item, full=full)]
            yield from _fenced([*ran, *(_unquoted(row) for row in rows)])
        case FileChange():
            rows = [_text(row) for row in item_lines(item, full=full)]
            yield from _fenced(rows, "diff" if full else "")
        case _:
            yield from _fenced([_text(row) for row in item_lines(item, full=full)])


def _fenced(rows: Iterable[str], kind: str = "") -> Iterator[str]:
    shown = list(rows)
    if not shown:
        return
    longest = max((len(run) for run in _TICKS.findall("\n".join(shown))), default=0)
    fence = "`" * max(3, longest + 1)
    yield from ("", f"{fence}{kind}", *shown, fence)


def _text(row: Line) -> str:
    return paint(row, colour=False)


def _unquoted(row: str) -> str:
    """Return a row without what keeps it apart on a terminal: here a fence does."""
    return row.removeprefix(INDENT).removeprefix("| ")


def _plain(text: str) -> str:
    """Return text in which no character means anything to Markdown."""
    return re.sub(r"([\\`*_\[\]<>#])", r"\\\1", text)


def _code(text: str) -> str:
    ticks = "`" * (max((len(r) for r in _TICKS.findall(text)), default=0) + 1)
    return f"{ticks}{text}{ticks}"
