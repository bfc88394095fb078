"""Lines with meaning instead of colours; colour is added at the very end. Sans-IO.

Everything that the command line shows is made of `Line`s by pure functions. `paint` is
the only way from a line to a terminal, and it lets no control character through.
"""

from dataclasses import dataclass
from typing import Final, Literal

from clients.cli.plain import safe

Style = Literal["", "dim", "bold", "good", "bad", "warn", "name", "added", "removed"]

_SGR: Final[dict[Style, str]] = {
    "dim": "2",
    "bold": "1",
    "good": "32",
    "bad": "31",
    "warn": "33",
    "name": "36",
    "added": "32",
    "removed": "31",
}


@dataclass(frozen=True, slots=True)
class Span:
    """Text of one style within a line."""

    text: str
    style: Style = ""


Line = tuple[Span, ...]


def line(*parts: str | Span) -> Line:
    """Join plain strings and spans to a line."""
    return tuple(Span(part) if isinstance(part, str) else part for part in parts)


def dim(text: str) -> Span:
    """Return text of less weight."""
    return Span(text, "dim")


def bold(text: str) -> Span:
    """Return text of more weight."""
    return Span(text, "bold")


def paint_span(span: Span, *, colour: bool) -> str:
    """Return one span as a terminal may get it."""
    text = safe(span.text)
    if not colour or not span.style or not text:
        return text
    return f"\x1b[{_SGR[span.style]}m{text}\x1b[0m"


def paint(spans: Line, *, colour: bool) -> str:
    """Return one line as a terminal may get it, without its line feed."""
    return "".join(paint_span(span, colour=colour) for span in spans).rstrip()


BLANK: Final[Line] = ()
