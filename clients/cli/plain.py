"""Remote text made safe for a terminal. Sans-IO.

Titles, messages, output and diffs come from models, files and other machines. Printed as
they are they could move the cursor, recolour or rename the terminal, or show words in
another order than they have (bidirectional controls). Two rules:

- text that is read (`block`, `one_line`, `PlainStream`): colour sequences are taken out,
  other control and invisible characters dropped;
- text that is *decided on* (`visible`: commands, folders, diffs of an approval): nothing
  is taken out. What would not be seen is written as an escape, so that no part of a
  command can hide.

Only complete colour and cursor sequences are removed whole (their inside is digits and
punctuation). Of longer ones, such as window titles, the starter goes and the rest stays
readable: an unfinished one must not swallow what follows.
"""

import re
import unicodedata
from typing import Final

_CSI: Final = re.compile(r"(?:\x1b\[|\x9b)[0-?]{0,32}[ -/]{0,4}[@-~]")
_UNFINISHED: Final = re.compile(r"(?:\x1b(?:\[[0-?]{0,32}[ -/]{0,4})?|\r)\Z")
_BREAK: Final = re.compile(r"\r\n|[\r\x0b\x0c\x85\u2028\u2029]")

# Controls; soft hyphen and other invisible or reordering format characters; lone
# surrogates (they cannot be encoded). Joiners stay: scripts and emoji need them.
_UNSEEN: Final = (
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f"
    "\u034f\u17b4\u17b5\u202a-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb\ud800-\udfff"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_DROPPED: Final = re.compile(f"[{_UNSEEN}]")

# What looks like a space and is none, or like nothing at all.
_BLANKS: Final = (
    "\u00a0\u115f\u1160\u1680\u180b-\u180f\u2000-\u200a\u200c\u200d\u2028\u2029\u202f\u205f"
    "\u2800\u3000\u3164\uffa0\ufe00-\ufe0f"
)
ROW: Final = 66  # cells; with what stands before them less than 80 columns

_ESCAPED: Final = re.compile(f"[\t\x0b-\x0d\x85{_UNSEEN}{_BLANKS}]")


def block(text: str) -> str:
    """Return text of several lines: only line feeds and tabs are left of the controls."""
    return _DROPPED.sub("", _BREAK.sub("\n", _CSI.sub("", text)))


def one_line(text: str, limit: int | None = None) -> str:
    """Return text on one line, runs of space as one; longer than `limit` ends in `…`."""
    line = " ".join(block(text).split())
    if limit is not None and len(line) > limit:
        return line[: max(limit - 1, 0)] + "…"
    return line


def safe(text: str) -> str:
    """Return what may be written within a line: the last look before the terminal."""
    return _DROPPED.sub("", _BREAK.sub(" ", text)).replace("\n", " ")


def visible(text: str) -> str:
    """Return text with everything that would not be seen written as an escape.

    Nothing is removed. Line feeds stay: the caller shows that the lines belong together.
    """
    return _ESCAPED.sub(_escape, text)


def wrapped(text: str) -> list[tuple[bool, str]]:
    """Return the rows of `visible` text, none so long that a terminal would wrap it.

    A row that the terminal wraps goes on at the left edge, where it could pass for a
    line of ours. Each row comes with whether it only goes on with the one before.
    """
    return [
        (place > 0, piece)
        for row in visible(text).split("\n")
        for place, piece in enumerate(_pieces(row))
    ]


def _pieces(row: str) -> list[str]:
    pieces, used = [""], 0
    for char in row:
        used += 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if used > ROW:
            pieces.append("")
            used = 2
        pieces[-1] += char
    return pieces


def _escape(match: re.Match[str]) -> str:
    named = {"\t": "\\t", "\r": "\\r", "\x0b": "\\v", "\x0c": "\\f"}
    code = ord(match[0])
    if match[0] in named:
        return named[match[0]]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class PlainStream:
    """`block` for text that comes in pieces: a sequence may be cut anywhere."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """Return what can be shown now; the beginning of a sequence waits for its end."""
        text = self._held + text
        cut = _UNFINISHED.search(text)
        at = cut.start() if cut else len(text)
        self._held = text[at:]
        return block(text[:at])

    def finish(self) -> str:
        """Return what is left; the stream starts anew."""
        held, self._held = self._held, ""
        return block(held)
