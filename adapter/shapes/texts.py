"""Texts cut to size, and the size that a value will have when packed. Sans-IO.

PROTOCOL.md section 5: the first three quarters and the last quarter of a text are kept,
whatever it was cut for is named, true sizes stay beside it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

_BACKTRACE: Final = "Stack backtrace:"
_MARK_BYTES: Final = 48  # room for the line that says what is missing


def byte_size(text: str) -> int:
    """Return the bytes of UTF-8; half a character is told as `?`."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def cut(text: str, limit: int, size: int | None = None) -> str:
    """Return `text`, or its head and tail around a line that says how much is missing.

    `limit`: bytes of UTF-8, at least 256. `size`: the true size, where `text` has lost
    some of its middle already.
    """
    if len(text) <= limit and byte_size(text) <= limit:
        return text
    data = text.encode()
    tail = limit // 4 - _MARK_BYTES
    head = limit - limit // 4
    missing = (size or len(data)) - head - tail
    return f"{_start(data, head)}\n[… {missing} bytes left out …]\n{_end(data, tail)}"


def prefix(text: str, limit: int) -> str:
    """Return at most `limit` bytes of the beginning, whole characters."""
    return text if byte_size(text) <= limit else _start(text.encode(), limit)


def pieces(text: str, limit: int) -> Sequence[str]:
    """Return `text` in parts of at most `limit` bytes, whole characters."""
    if len(text) <= limit and byte_size(text) <= limit:
        return (text,)
    found: list[str] = []
    start = 0
    while start < len(text):  # never copies the rest: one text may have 20 MB
        found.append(prefix(text[start : start + limit], limit))
        start += len(found[-1])
    return found


def one_line(text: str, limit: int) -> str:
    """Return the text on one line, at most `limit` characters."""
    line = " ".join(text[: limit * 4].split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def without_backtrace(text: str) -> str:
    """Return an error of Codex without the Rust frames that it may end with."""
    return text.partition(_BACKTRACE)[0].rstrip() if _BACKTRACE in text else text


def packed_bound(value: Any) -> int:
    """Return an upper bound of the value's size in msgpack, which only transport writes."""
    if isinstance(value, str):
        return byte_size(value) + 5
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value)
        return 5 + sum(packed_bound(k) + packed_bound(v) for k, v in pairs.items())
    if isinstance(value, list | tuple):
        return 5 + sum(packed_bound(part) for part in cast("Sequence[Any]", value))
    return 9


def _start(data: bytes, size: int) -> str:
    return data[:size].decode("utf-8", "ignore")


def _end(data: bytes, size: int) -> str:
    return data[len(data) - size :].decode("utf-8", "ignore")
