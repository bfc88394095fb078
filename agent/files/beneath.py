"""Opening a file inside a folder, and nothing outside it. Blocking I/O.

SECURITY.md (Uploads and mentions). The path is walked part by part from an opened folder,
no part may be a link, and the end is a regular file. Who reads, reads through the
descriptor that was checked: what is put in the path's place meanwhile is not read.
"""

import os
import re
import stat
from typing import Final

from agent.mutations.refusals import check_told

_UNPRINTED: Final = re.compile(r"[\x00-\x1f\x7f\u0085\u2028-\u202e\u2066-\u2069]")
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class OutsideError(Exception):
    """There is no such regular file inside the folder. `str()` says why, to a person."""


def parts_of(path: str) -> list[str]:
    """Return the parts of a relative path. Raises: OutsideError."""
    if _UNPRINTED.search(path):
        raise OutsideError("it has characters that are not seen")
    if path.startswith("/"):
        raise OutsideError("it must be relative to the thread's folder")
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise OutsideError("it must name each folder once, without . and ..")
    return parts


def open_beneath(folder: str, path: str) -> int:
    """Return a descriptor for reading; the caller closes it.

    `folder`: links in it are followed, it is the owner's choice. Raises: OutsideError,
    Internal (no descriptor is left).
    """
    *folders, name = parts_of(path)
    try:
        at = os.open(folder, _FOLDER & ~os.O_NOFOLLOW)
        try:
            for part in folders:
                below = os.open(part, _FOLDER, dir_fd=at)
                os.close(at)
                at = below
            found = os.open(name, _FILE, dir_fd=at)
        finally:
            os.close(at)
    except OSError as exc:  # one answer: no telling what lies where
        check_told(exc)
        raise _none() from None
    except UnicodeError:
        raise _none() from None
    if stat.S_ISREG(os.fstat(found).st_mode):
        return found
    os.close(found)
    raise _none()


def path_below(folder: str, path: str) -> str | None:
    """Return an absolute path as one relative to the folder; `None`: it is not below."""
    start = folder.rstrip("/") + "/"
    return path.removeprefix(start) if path.startswith(start) else None


def _none() -> OutsideError:
    return OutsideError(
        "there is no such file in the thread's folder (links are not followed)"
    )
