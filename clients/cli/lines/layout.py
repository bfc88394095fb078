"""How items are laid out: labels in a column, others' text behind a bar. Sans-IO."""

from collections.abc import Sequence
from typing import Final

from clients.cli.style import Line, Span, Style, dim, line
from transport.protocol.items import Item, ItemStatus

LABEL: Final = 7  # cells; the longest label has six letters
INDENT: Final = " " * LABEL

WORTH_SAYING_MS: Final = 100  # a shorter time says nothing
HEAD_LINES: Final = 4  # of a long output, before and
TAIL_LINES: Final = 8  # after what is left out


def label(name: str, style: Style = "bold") -> Span:
    """Return the label of an item, padded to the column where its text begins."""
    return Span(f"{name:<{LABEL}}", style)


def labelled(first: Span, text: str, style: Style = "") -> list[Line]:
    """Return `text` beside its label; its further lines are indented."""
    head, *rest = text.split("\n")
    return [
        line(first, Span(head, style)),
        *(line(INDENT, Span(row, style)) for row in rest),
    ]


def quoted(text: str) -> list[Line]:
    """Return text that others wrote, each line behind a bar: none passes for ours."""
    return [line(INDENT, dim("| "), row) for row in text.split("\n")]


def unfinished(item: Item) -> list[Line]:
    """Return a line that says so where an item did not end well; else none."""
    if item.status in {ItemStatus.INTERRUPTED, ItemStatus.FAILED}:
        return [line(INDENT, Span(f"({item.status})", "warn"))]
    return []


def some_of(rows: Sequence[str], *, full: bool, tail: int = TAIL_LINES) -> list[Line]:
    """Return rows of others' text: all with `full`, else the first and the last ones."""
    left_out = len(rows) - HEAD_LINES - tail
    if full or left_out <= 1:  # a line about one line saves nothing
        return quoted("\n".join(rows)) if rows else []
    return [
        *quoted("\n".join(rows[:HEAD_LINES])),
        line(INDENT, dim(f"… {left_out} lines more")),
        *(quoted("\n".join(rows[-tail:])) if tail else []),
    ]


def bar(*, goes_on: bool) -> Span:
    """Return what stands before a row of others' text: a new line, or more of one."""
    return dim("> " if goes_on else "| ")
