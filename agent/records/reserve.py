"""Room on the disk that is kept for taking things away. Blocking I/O.

SECURITY.md (A full disk). A file of nothing: where the disk takes no more, the file is
removed, and a revocation, a lock or a message that was taken back is written in its
place. While it is missing nothing new is begun, so that no act of ours takes that room.
"""

import errno
import logging
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol, TypeVar

from agent.errors import StorageError
from agent.limits import BEGIN_BYTES, RESERVE_BYTES
from transport.errors import KeyFileError

R = TypeVar("R")
_LOG: Final = logging.getLogger(__name__)
NAME: Final = "reserve"
_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
_REFUSED: Final = (OSError, KeyFileError, StorageError)
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


class Insist(Protocol):
    """`Reserve.insist`, or `at_once`."""

    def __call__(self, write: Callable[[], R], /) -> R:
        """Run `write`."""
        ...


class Reserve:
    """The file `reserve` of a state folder. Any thread may use it."""

    def __init__(self, folder: Path, *, size: int = RESERVE_BYTES) -> None:
        self._path = folder / NAME
        self._size = size
        self._alone = threading.Lock()
        self._there = False
        self._has_room = False

    @property
    def has_room(self) -> bool:
        """Whether it is there, and beside it the room that an act's records need, as of
        the last `may_begin`: asking this waits for no disk."""
        return self._there and self._has_room

    def _room(self) -> int:
        try:
            disk = os.statvfs(self._path.parent)
        except OSError:
            return 0
        known = disk.f_blocks > 0  # some file systems do not count
        return disk.f_bavail * disk.f_frsize if known else self._size + BEGIN_BYTES

    def may_begin(self) -> bool:
        """Make it where it is missing; return whether something new may be begun.

        So nothing is begun, and put on record as begun, whose row finds no room then.
        """
        there = self.lay_in()
        self._has_room = self._room() >= BEGIN_BYTES
        return there and self._has_room

    def lay_in(self) -> bool:
        """Make the file where it is missing or short; return whether it is there.

        Not out of the last that the disk has: a Codex that works on it needs that.
        """
        with self._alone:  # somebody who makes room may have removed it
            self._there = self._is_whole() or self._made()
            return self._there

    def insist(self, write: Callable[[], R], /) -> R:
        """Run `write`, once more in the reserve's place where the disk refuses it.

        Raises: what `write` raises the second time.
        """
        try:
            return write()
        except _REFUSED as exc:
            if not self._is_full(exc):
                raise
        with (
            self._alone
        ):  # what is given up is for this write, and not laid in meanwhile
            self._give_up()
            return write()

    def _is_whole(self) -> bool:
        with suppress(OSError):
            return self._path.lstat().st_size == self._size
        return False

    def _made(self) -> bool:
        with suppress(OSError):  # one that was cut short
            self._path.unlink()
        if self._room() < self._size + BEGIN_BYTES:
            return False
        try:
            descriptor = os.open(self._path, _FLAGS, 0o600)
            try:
                self._fill(descriptor)
            finally:
                os.close(descriptor)
        except OSError:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
            return False
        return True

    def _fill(self, descriptor: int) -> None:
        """Random bytes: a file system may keep no blocks for zeros or repetitions."""
        left = memoryview(os.urandom(self._size))
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)

    def _is_full(self, refused: BaseException) -> bool:
        """Whether it was for the disk's room. SQLite does not always say so."""
        cause: BaseException | None = refused
        while cause is not None:
            if isinstance(cause, OSError) and cause.errno in _FULL:
                return True
            cause = cause.__cause__
        return self._room() < self._size

    def _give_up(self) -> None:
        if self._there:
            _LOG.warning(
                "the disk of %s is full: its reserve is used", self._path.parent
            )
        self._there = False
        with suppress(OSError):  # somebody else has used it up
            self._path.unlink()


def at_once(write: Callable[[], R], /) -> R:
    """Write, and take a no for a no: where there is no reserve."""
    return write()
