"""Finds processes that outlive a test: all of them carry the run's mark."""

import os
import secrets
from pathlib import Path
from typing import Final

MARK_NAME: Final = "THREADGATE_TEST_RUN"


def mark_run() -> str:
    """Put a mark into our environment that every child inherits; return it."""
    mark = f"{MARK_NAME}={secrets.token_hex(8)}"
    name, _, value = mark.partition("=")
    os.environ[name] = value
    return mark


def marked_processes(mark: str) -> dict[int, str]:
    """Return pid → command line of every living process with the mark but ourselves."""
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environ = (entry / "environ").read_bytes()
            if mark.encode() in environ.split(b"\0"):
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(entry.name)] = command.decode(errors="replace").strip()
        except OSError:  # gone, or another user's
            continue
    return found
