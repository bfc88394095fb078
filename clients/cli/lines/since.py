"""What happened lately, thread by thread, as lines. Sans-IO."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from clients.cli.choose import short
from clients.cli.clock import Clock
from clients.cli.columns import cut, cut_front, table
from clients.cli.lines.threads import thread_name, thread_status, turn_end
from clients.cli.plain import one_line, visible
from clients.cli.style import BLANK, Line, Span, bold, dim, line
from transport.protocol.items import UserMessage
from transport.protocol.threads import Thread
from transport.protocol.turns import Turn

_INSIDE: Final = "  "


@dataclass(frozen=True, slots=True)
class Begun:
    """A turn, and through what it was begun; `None` where that is not known here."""

    turn: Turn
    through: str | None


def since_lines(
    threads: Sequence[tuple[Thread, Sequence[Begun]]],
    clock: Clock,
    *,
    width: int | None,
) -> list[Line]:
    """Return each thread with the turns that began since, newest thread first."""
    if not threads:
        return [line("Nothing has changed since.")]
    length = short([thread.id for thread, _ in threads])
    rows: list[Line] = []
    for thread, begun in threads:
        rows += [BLANK] if rows else []
        rows.append(
            line(
                Span(thread.id[:length], "name"),
                "  ",
                thread_status(thread),
                dim(f"  {cut_front(visible(thread.cwd), 40)}  "),
                bold(cut(thread_name(thread), 60)),
            )
        )
        rows += _turns(begun, clock, width)
    return rows


def _turns(begun: Sequence[Begun], clock: Clock, width: int | None) -> list[Line]:
    if not begun:
        return [line(dim("  (it changed, but no turn began)"))]
    known = any(one.through is not None for one in begun)
    head = ["BEGAN", *(["THROUGH"] if known else []), "TURN", "SAID"]
    rows = [_turn(one, clock, known=known) for one in begun]
    left = None if width is None else width - len(_INSIDE)
    return [line(_INSIDE, *row) for row in table(head, rows, width=left)]


def _turn(begun: Begun, clock: Clock, *, known: bool) -> list[Span]:
    turn = begun.turn
    at = clock.time(turn.started_at) if turn.started_at is not None else "?"
    through = [Span(one_line(begun.through or "", 40))] if known else []
    end = turn_end(turn)
    return [Span(at), *through, Span(cut(end.text, 30), end.style), _said(turn)]


def _said(turn: Turn) -> Span:
    for item in turn.items or ():
        if isinstance(item, UserMessage):
            return Span(one_line(item.text, 200))
    return Span("(nothing: it went on by itself)", "dim")
