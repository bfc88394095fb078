"""Columns of text by the cells that it takes on a terminal. Sans-IO."""

import unicodedata
from collections.abc import Sequence

from clients.cli.plain import one_line
from clients.cli.style import Line, Span

_GAP = "  "


def cells(text: str) -> int:
    """Return how many cells `text` takes; wide letters take two, combining none."""
    return sum(_cell(char) for char in text)


def _cell(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, width: int) -> str:
    """Return `text` on one line in at most `width` cells, `…` at the end where cut."""
    text = one_line(text)
    if cells(text) <= width:
        return text
    used, kept = 1, ""
    for char in text:
        used += _cell(char)
        if used > width:
            break
        kept += char
    return kept + "…"


def cut_front(text: str, width: int) -> str:
    """Return the end of `text` in at most `width` cells: of a folder it says most."""
    text = one_line(text)
    if cells(text) <= width:
        return text
    while cells(text) > width - 1:
        text = text[1:]
    return "…" + text


def table(
    head: Sequence[str], rows: Sequence[Sequence[Span]], *, width: int | None
) -> list[Line]:
    """Return aligned lines; with a `width`, the last column is cut to fit.

    Every other column is as wide as its widest cell.
    """
    spans = [[Span(title, "dim") for title in head], *rows]
    shown = [[Span(one_line(s.text), s.style) for s in row] for row in spans]
    widths = [max(cells(row[i].text) for row in shown) for i in range(len(head))]
    return [_row(row, widths, width) for row in shown]


def _row(row: Sequence[Span], widths: Sequence[int], width: int | None) -> Line:
    parts: list[Span] = []
    for span, wide in zip(row[:-1], widths, strict=False):
        parts += [span, Span(" " * (wide - cells(span.text)) + _GAP)]
    last = row[-1]
    if width is not None:
        left = width - sum(wide + len(_GAP) for wide in widths[:-1])
        last = Span(cut(last.text, max(left, 10)), last.style)
    return (*parts, last)
