"""One Agent for one state folder. Blocking I/O. SECURITY.md.

Two Agents would tell two journals and two ledgers of request keys, and a message could
be sent twice. The kernel's lock goes with the process, however it ends.
"""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from agent.clocks import wall_ms
from agent.errors import AgentError
from transport.keys import open_private_folder

_NAME: Final = "agent.lock"
_NOTE: Final = 64  # bytes: a pid, and ms since the epoch


class FolderInUseError(AgentError):
    """Another Agent runs on this state folder."""


@contextmanager
def hold_folder(folder: Path) -> Generator[None]:
    """Hold the state folder for the length of the block; make it where it is missing.

    Raises: FolderInUseError naming the holder, KeyFileError.
    """
    open_private_folder(folder)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(folder / _NAME, flags, 0o600)
    try:
        _lock(descriptor, folder)
        _sign(descriptor)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise FolderInUseError(
            f"Another Agent ({_holder(descriptor)}) runs on {folder}. Use that one, stop "
            "it, or set THREADGATE_STATE_DIR to another folder."
        ) from None


def _sign(descriptor: int) -> None:
    """Write down who holds the lock: over what is there, and on a full disk not."""
    note = f"{os.getpid()} {wall_ms()}".encode().ljust(_NOTE)
    with suppress(OSError):
        os.pwrite(descriptor, note, 0)


def _holder(descriptor: int) -> str:
    """Say who holds the lock, as far as it has written that down."""
    words = os.pread(descriptor, _NOTE, 0).split()
    try:
        pid, since_ms = map(int, words)
    except ValueError:  # it has just come
        return "it is starting"
    since = datetime.fromtimestamp(since_ms / 1000, tz=UTC).astimezone()
    return f"process {pid}, since {since:%Y-%m-%d %H:%M:%S}"
