"""Where a command's words go: stdout, stderr, colour, width, the clock. Blocking I/O."""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from io import TextIOWrapper
from typing import Any, TextIO

from clients.cli.clock import Clock
from clients.cli.style import Line, Span, line, paint, paint_span
from clients.cli.transcript import Piece


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """A terminal, a pipe or a file. `as_json`: stdout is for a program.

    `width` in cells; None where lines are not cut (no terminal). `cut_ins`: called before
    a line comes from elsewhere, by who may be in the middle of one.
    """

    out: TextIO
    err: TextIO
    colour: bool
    width: int | None
    zone: tzinfo
    now_ms: Callable[[], int] = _now_ms
    as_json: bool = False
    cut_ins: list[Callable[[], None]] = field(
        default_factory=list["Callable[[], None]"], compare=False
    )

    def clock(self) -> Clock:
        """Return the moment."""
        return Clock(now=self.now_ms(), zone=self.zone)

    def lines(self, rows: Iterable[Line]) -> None:
        """Print lines for a person; nothing where stdout is for a program."""
        if self.as_json:
            return
        for row in rows:
            print(paint(row, colour=self.colour), file=self.out)
        self.out.flush()

    def say(self, *parts: str | Span) -> None:
        """Print one line for a person."""
        self.lines([line(*parts)])

    def pieces(self, pieces: Iterable[Piece]) -> None:
        """Print pieces of a growing text at once."""
        for piece in pieces:
            text = "".join(paint_span(s, colour=self.colour) for s in piece.spans)
            print(text, end="\n" if piece.ends else "", file=self.out)
        self.out.flush()

    def raw(self, data: bytes) -> bool:
        """Write bytes as they are; return whether: a terminal must not obey them."""
        pipe = getattr(self.out, "buffer", None)
        if pipe is None or self.out.isatty():
            return False
        self.out.flush()
        pipe.write(data)
        pipe.flush()
        return True

    def json(self, value: Mapping[str, Any]) -> None:
        """Print one JSON value on one line; ASCII, so that a terminal can show it."""
        print(json.dumps(value, separators=(",", ":")), file=self.out, flush=True)

    def note(self, text: str) -> None:
        """Print a line on stderr: progress and what is not the answer."""
        print(paint(line(text), colour=False), file=self.err, flush=True)

    def cut_in(self) -> None:
        """Have the line that is being written ended, and a question on it taken back."""
        for end_line in self.cut_ins:
            end_line()

    def problem(self, message: str, details: Iterable[Line] = ()) -> None:
        """Print the one line about what went wrong, and its details, on stderr."""
        print(paint(line(f"threadgate: {message}"), colour=False), file=self.err)
        for row in details:
            print(paint(row, colour=False), file=self.err)
        self.err.flush()


def open_screen(*, as_json: bool = False) -> Screen:
    """Return the screen of this process."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a C locale must not end a command
            stream.reconfigure(errors="backslashreplace")
    terminal = sys.stdout.isatty()
    return Screen(
        out=sys.stdout,
        err=sys.stderr,
        colour=terminal and _wants_colour(os.environ),
        width=shutil.get_terminal_size().columns if terminal else None,
        zone=datetime.now(UTC).astimezone().tzinfo or UTC,
        as_json=as_json,
    )


def _wants_colour(environ: Mapping[str, str]) -> bool:
    return not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
