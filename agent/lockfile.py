"""One Agent for one state folder. Blocking I/O. SECURITY.md.

Two Agents would tell two journals and two ledgers of request keys, and a message could
be sent twice. The kernel's lock goes with the process, however it ends.
"""

import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from agent.clocks import wall_ms
from agent.errors import AgentError
from transport.keys import open_private_folder

_NAME: Final = "agent.lock"
_NOTE: Final = 64  # bytes: a pid, and ms since the epoch


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has a state folder, as far as it has written that down."""

    pid: int | None = None
    since_ms: int | None = None

    def __str__(self) -> str:
        if self.pid is None or self.since_ms is None:
            return "it is starting"
        since = datetime.fromtimestamp(self.since_ms / 1000, tz=UTC).astimezone()
        return f"process {self.pid}, since {since:%Y-%m-%d %H:%M:%S}"


class FolderInUseError(AgentError):
    """Another Agent runs on this state folder."""

    def __init__(self, folder: Path, holder: Holder) -> None:
        super().__init__(folder, holder)
        self.folder = folder
        self.holder = holder

    def __str__(self) -> str:
        return (
            f"Another Agent ({self.holder}) runs on {self.folder}. Use that one, stop "
            "it, or set THREADGATE_STATE_DIR to another folder."
        )


@contextmanager
def hold_folder(folder: Path) -> Generator[Callable[[], bool]]:
    """Hold the state folder for the length of the block; make it where it is missing.

    Yields the look whether it is still that one: somebody may remove it, or put another
    in its place, and what is in it is nothing that the next Agent will find.

    Raises: FolderInUseError naming the holder, KeyFileError.
    """
    open_private_folder(folder)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(folder / _NAME, flags, 0o600)
    try:
        if not _lock(descriptor):
            raise FolderInUseError(folder, _holder(descriptor))
        _sign(descriptor)
        yield partial(_is_in_place, folder / _NAME, descriptor)
    finally:
        os.close(descriptor)


def holder_of(folder: Path) -> Holder | None:
    """Return who has the state folder now, if anybody."""
    try:
        descriptor = os.open(folder / _NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(descriptor)
    finally:
        os.close(descriptor)
    return None


def _is_in_place(path: Path, descriptor: int) -> bool:
    try:
        there, held = path.lstat(), os.fstat(descriptor)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sign(descriptor: int) -> None:
    """Write down who holds the lock: over what is there, and on a full disk not."""
    note = f"{os.getpid()} {wall_ms()}".encode().ljust(_NOTE)
    with suppress(OSError):
        os.pwrite(descriptor, note, 0)


def _holder(descriptor: int) -> Holder:
    words = os.pread(descriptor, _NOTE, 0).split()
    try:
        pid, since_ms = map(int, words)
    except ValueError:  # it has just come
        return Holder()
    return Holder(pid, since_ms)
