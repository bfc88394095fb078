"""Whether a person sees all that a yes would let through. Sans-IO. PROTOCOL.md section 5.

A yes is offered only where everything fits on what they are shown, and where nothing in
it hides from the eye.
"""

import json
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from adapter.limits import ALLOWS, LINE_CHARS, PATH_BYTES
from adapter.shapes.texts import byte_size, cut, one_line

_TURNED: Final = (
    "careful, it holds letters that run from right to left: it may be shown in another "
    "order than it has"
)
_LEFTWARD: Final = frozenset({"R", "AL", "AN"})
_BLANK: Final = re.compile(  # blank, or nothing at all, and yet no control or format
    "[\u00a0\u034f\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200a"
    "\u202f\u205f\u2800\u3000\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0100-\U000e01ef]"
)
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})


def text_fits(words: str | None, limit: int) -> bool:
    """Whether a text is shown whole within `limit` bytes."""
    return byte_size(words or "") <= limit


def lines_fit(lines: Sequence[str]) -> bool:
    """Whether all lines that say what a yes lets through will be shown, whole."""
    return len(lines) <= ALLOWS and all(text_fits(line, PATH_BYTES) for line in lines)


def shown_lines(lines: Sequence[str]) -> list[str]:
    """Return the lines as far as they are shown."""
    return [cut(line, PATH_BYTES) for line in lines[:ALLOWS]]


def unknown_lines(raw: Mapping[str, Any], known: Collection[str]) -> list[str]:
    """Show what a newer Codex adds to its question, as it is: a yes may depend on it."""
    return [
        f"{one_line(key, 64)}: {json.dumps(value, sort_keys=True)}"
        for key, value in raw.items()
        if key not in known and value is not None
    ]


def hidden_lines(words: str) -> list[str]:
    """Warn of characters that an eye does not see, or that turn text around."""
    lines: list[str] = []
    if found := {char for char in words if char not in "\n\t" and _unseen(char)}:
        codes = " ".join(sorted(f"U+{ord(char):04X}" for char in found))
        lines.append(f"careful, it holds invisible characters: {codes[:LINE_CHARS]}")
    if any(unicodedata.bidirectional(char) in _LEFTWARD for char in words):
        lines.append(_TURNED)
    return lines


def _unseen(char: str) -> bool:
    if unicodedata.category(char) in _INVISIBLE:
        return True
    return _BLANK.match(char) is not None
