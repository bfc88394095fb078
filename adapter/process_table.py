"""Who a process is and what came from it, read from /proc. Blocking I/O.

A pid alone names nobody: it is used again. A pid with its start time does.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One process for ever. `started`: boot id and clock ticks since that boot."""

    pid: int
    started: str
    argv: tuple[str, ...]


def _stat(pid: int) -> list[str]:
    """Return the fields behind the name: state, parent, … (proc(5) from field 3 on)."""
    text = (PROC / str(pid) / "stat").read_text(errors="replace")
    return text[text.rindex(")") + 2 :].split()


def _argv(pid: int) -> tuple[str, ...]:
    raw = (PROC / str(pid) / "cmdline").read_bytes()
    return tuple(os.fsdecode(part) for part in raw.split(b"\0")[:-1])


def identify(pid: int) -> Identity | None:
    """Return who has this pid now; `None` where nobody lives (a zombie does not)."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        fields = _stat(pid)
        argv = _argv(pid)
    except (OSError, ValueError):
        return None
    if fields[0] in "ZX":
        return None
    return Identity(pid=pid, started=f"{boot}/{fields[19]}", argv=argv)


def _table() -> Iterator[tuple[int, list[str]]]:
    if not PROC.is_dir():
        return  # no Linux: nothing is known, so nothing is waited for
    for name in os.listdir(PROC):
        if name.isdigit():
            try:
                yield int(name), _stat(int(name))
            except (OSError, ValueError):
                continue  # it has just ended


def children(pid: int) -> list[int]:
    """Return the pids whose parent is `pid`, one look at the whole table."""
    return [child for child, fields in _table() if int(fields[1]) == pid]


def group(leader: int) -> list[int]:
    """Return the living pids of a process group; its leader may be gone."""
    return [
        pid
        for pid, fields in _table()
        if int(fields[2]) == leader and fields[0] not in "ZX"
    ]
