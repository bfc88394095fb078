"""The texts of a raw item before they are cut for an event or a page. Sans-IO.

PROTOCOL.md section 4 (`item/output`). Codex cuts the middle out of a command's output
itself, to 1 MiB in the live item and to 64 KiB in the stored one, and puts a line there:
the live one's says how much is missing.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from adapter.runtime.store import HeldText, TextName
from adapter.shapes.shapes import MISFITS, mapping, maybe_text, sequence, text
from adapter.shapes.texts import byte_size

_SLACK: Final = 8  # bytes: both halves end with whole characters
_MARKS: Final = (  # the size of what is left, and the line in its middle
    (1_048_576, re.compile(rb"\n\.\.\. (\d{1,19}) bytes omitted \.\.\.\n")),
    (
        65_536,
        re.compile(rb"\n\.\.\. command output truncated for persistence \.\.\.\n()"),
    ),
)

Raw = Mapping[str, Any]


def whole_texts(raw: Raw) -> dict[TextName, HeldText]:
    """Return every text of an item that `item/output` can ask for.

    What cannot be read has no text.
    """
    try:
        return dict(_texts(raw))
    except MISFITS:
        return {}


def _texts(raw: Raw) -> Iterator[tuple[TextName, HeldText]]:
    match raw["type"]:
        case "commandExecution":
            output = maybe_text(raw.get("aggregatedOutput")) or ""
            yield ("output", ""), held_output(output.encode())
        case "fileChange":
            for one in sequence(raw["changes"]):
                change = mapping(one)
                yield ("diff", text(change["path"])), _whole(text(change["diff"]))
        case "agentMessage" | "plan":
            yield ("text", ""), _whole(text(raw["text"]))
        case "userMessage":
            parts = [mapping(part) for part in sequence(raw["content"])]
            said = [text(part["text"]) for part in parts if part["type"] == "text"]
            yield ("text", ""), _whole("\n".join(said))
        case "reasoning":
            said = [text(part) for part in sequence(raw.get("content"))]
            yield ("text", ""), _whole("\n\n".join(said))
        case "enteredReviewMode" | "exitedReviewMode":
            yield ("text", ""), _whole(maybe_text(raw.get("review")) or "")
        case _:
            return


def _whole(words: str) -> HeldText:
    data = words.encode()
    return HeldText(data=data, total=len(data))


def held_output(data: bytes) -> HeldText:
    """Return a command's output without Codex's line, and what it says of the rest."""
    for size, mark in _MARKS:
        if len(data) < size - _SLACK:
            continue
        found = mark.search(data, size // 2 - 128, size // 2 + 128)
        if found is None or not _is_middle(found, len(data)):
            continue  # a program may write such a line itself
        kept = data[: found.start()] + data[found.end() :]
        total = len(kept) + int(found[1]) if found[1] else None
        return HeldText(data=kept, total=total, gap_at=found.start())
    return HeldText(data=data, total=len(data))


def _is_middle(found: re.Match[bytes], size: int) -> bool:
    return abs(found.start() - (size - found.end())) <= _SLACK


def true_size(output: str) -> int:
    """Return the bytes that a command wrote, as far as anybody kept that."""
    if len(output) < _MARKS[0][0] // 4:
        return byte_size(output)
    held = held_output(output.encode())
    return held.total if held.total is not None else len(held.data)
