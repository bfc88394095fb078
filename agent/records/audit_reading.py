"""Reads the audit log back, newest entry first, page by page. Blocking I/O.

SECURITY.md. The log and its older parts are files that only grow at their end or are
renamed: a cursor is a file's inode and the place in it where the last entry begins.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from agent.reading.pages import foreign_cursor

_CURSOR: Final = re.compile(r"(\d{1,20})-(\d{1,20})$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """One entry and where it begins."""

    place: str
    entry: dict[str, Any]


def read_entries(
    path: Path, *, files: int, cursor: str | None, limit: int
) -> tuple[list[dict[str, Any]], str | None]:
    """Return a page and the cursor of the next; none is the end.

    Raises: InvalidParams (not a cursor of this log), OSError.
    """
    start = _place(cursor)
    page: list[Logged] = []
    for one in _entries(path, files, start):
        if len(page) == limit:
            return [found.entry for found in page], page[-1].place
        page.append(one)
    return [found.entry for found in page], None


def _place(cursor: str | None) -> tuple[int, int] | None:
    if cursor is None:
        return None
    found = _CURSOR.match(cursor)
    if found is None:
        raise foreign_cursor()
    return int(found[1]), int(found[2])


def _entries(path: Path, files: int, start: tuple[int, int] | None) -> Iterator[Logged]:
    seen = set[int]()
    for number in range(files):
        part = path if number == 0 else path.with_name(f"{path.name}.{number}")
        try:
            with part.open("rb") as log:
                found = os.fstat(log.fileno())
                inode = found.st_ino
                if inode in seen:  # it was renamed while we read
                    continue
                seen.add(inode)
                if start is not None and start[0] != inode:
                    continue
                end = found.st_size if start is None else start[1]
                data = log.read(min(end, found.st_size))
        except FileNotFoundError:
            continue
        start = None
        yield from _backwards(inode, data)


def _backwards(inode: int, data: bytes) -> Iterator[Logged]:
    end = len(data)
    for line in reversed(data.splitlines(keepends=True)):
        end -= len(line)
        entry = _parsed(line)
        if entry is not None:
            yield Logged(place=f"{inode}-{end}", entry=entry)


def _parsed(line: bytes) -> dict[str, Any] | None:
    """Return an entry; `None` for what a crash cut short."""
    try:
        value: object = json.loads(line)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    entry = cast("dict[str, Any]", value)
    named = isinstance(entry.get("at"), int) and isinstance(entry.get("event"), str)
    return entry if named else None
