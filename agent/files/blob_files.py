"""Uploaded files on the disk, a folder for each device. Blocking I/O.

SECURITY.md (Uploads). Names are 128 random bits of ours, whatever a file was called where
it came from. Open uploads end in `.part`; what else is there is whole. A file's age is
that of its date, which is ours: the wall clock may have been set since.
"""

import os
import re
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

_NAME: Final = re.compile(r"[0-9a-f]{32}")
_DEVICE: Final = re.compile(r"[0-9a-z]{1,64}")
_PART: Final = ".part"
_CREATE: Final = (
    os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_APPEND
)
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class BlobFiles:
    """The folder of uploads. All of it is private to the owner."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def is_name(self, word: str) -> bool:
        """Whether this could be the name of a file here."""
        return _NAME.fullmatch(word) is not None

    def path(self, device_id: str, name: str) -> str:
        """Return where a whole file lies."""
        return str(self._place(device_id) / self._checked(name))

    def create(self, device_id: str, name: str) -> int:
        """Return the descriptor of a new, empty, open upload. Raises: OSError."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        place = self._place(device_id)
        place.mkdir(mode=0o700, exist_ok=True)
        return os.open(place / (self._checked(name) + _PART), _CREATE, 0o600)

    def drop(self, device_id: str, name: str, fd: int) -> None:
        """Close an open upload and remove it."""
        with suppress(OSError):
            os.close(fd)
        with suppress(OSError):
            (self._place(device_id) / (self._checked(name) + _PART)).unlink()

    def keep(
        self, device_id: str, upload: str, name: str, fd: int, *, at_ms: int
    ) -> None:
        """Make an open upload a whole file of this date, and close it. Raises: OSError."""
        os.utime(fd, ns=_both(at_ms))
        os.fsync(fd)
        place = self._place(device_id)
        (place / (self._checked(upload) + _PART)).rename(place / self._checked(name))
        os.close(fd)

    def open(self, device_id: str, name: str, *, since_ms: int) -> int:
        """Return a descriptor of a whole file that is not older. Raises: OSError."""
        fd = os.open(self._place(device_id) / self._checked(name), _READ)
        found = os.fstat(fd)
        if stat.S_ISREG(found.st_mode) and found.st_mtime_ns // 1_000_000 >= since_ms:
            return fd
        os.close(fd)
        raise FileNotFoundError(name)

    def touch(self, device_id: str, name: str, *, at_ms: int) -> bool:
        """Make a whole file as young as one that comes now, if it is there."""
        path = self.path(device_id, name)
        try:
            os.utime(path, ns=_both(at_ms), follow_symlinks=False)
        except OSError:
            return False
        return True

    def stored(self, device_id: str) -> tuple[int, int]:
        """Return how many bytes in how many files a device has here, open ones too."""
        sizes = [found.st_size for _, found in self._files(self._place(device_id))]
        return sum(sizes), len(sizes)

    def forget(self, device_id: str) -> None:
        """Remove all of a device."""
        shutil.rmtree(self._place(device_id), ignore_errors=True)

    def clean(self, *, since_ms: int, parts: bool) -> None:
        """Remove what is older, and `parts` where no upload can be open."""
        for place in self._places():
            for file, found in self._files(place):
                is_part = file.suffix == _PART
                old = found.st_mtime_ns // 1_000_000 < since_ms
                if (parts and is_part) or (old and not is_part):
                    with suppress(OSError):
                        file.unlink()
            with suppress(OSError):
                place.rmdir()  # where it is empty

    def _places(self) -> list[Path]:
        try:
            return [one for one in self._folder.iterdir() if one.is_dir()]
        except OSError:
            return []

    def _files(self, place: Path) -> list[tuple[Path, os.stat_result]]:
        found: list[tuple[Path, os.stat_result]] = []
        with suppress(OSError):
            for file in place.iterdir():
                with suppress(OSError):
                    found.append((file, file.lstat()))
        return found

    def _place(self, device_id: str) -> Path:
        if not _DEVICE.fullmatch(device_id):
            raise ValueError(device_id)
        return self._folder / device_id

    def _checked(self, name: str) -> str:
        if not self.is_name(name):
            raise FileNotFoundError(name)
        return name


def _both(at_ms: int) -> tuple[int, int]:
    """Access and change, in ns."""
    return at_ms * 1_000_000, at_ms * 1_000_000
