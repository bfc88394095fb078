"""Which folders a device may see and use. Blocking I/O.

PROTOCOL.md section 2 (Ceiling). A folder counts with all links followed, on both sides,
at the moment of the check. Threads outside do not exist for the device.
"""

import os
import stat
from collections.abc import Iterable

from agent.access.scopes import Caller
from agent.limits import FOLDERS_KEPT
from transport.errors import Forbidden, InvalidParams


def resolved(folder: str) -> str:
    """Return the folder with links followed; what does not exist stays as written."""
    return os.path.realpath(folder)


def inside(folder: str, roots: Iterable[str]) -> bool:
    """Whether a resolved folder is one of the resolved roots or lies below one."""
    return any(
        folder == root or folder.startswith(root.rstrip("/") + "/") for root in roots
    )


class Roots:
    """The roots of every caller: what the owner named, and the threads' own folders.

    Only the store's threads add folders here; no remote call can name one.
    """

    def __init__(self) -> None:
        self._folders: dict[str, None] = {}

    def learn(self, folders: Iterable[str]) -> None:
        """Remember folders of threads that exist; the longest known go at the bound."""
        for folder in folders:
            self._folders.pop(folder, None)
            self._folders[folder] = None
        for old in list(self._folders)[: -FOLDERS_KEPT or None]:
            del self._folders[old]

    def of(self, caller: Caller) -> tuple[str, ...] | None:
        """Return the caller's roots, resolved; `None`: no fence at all."""
        if caller.ceiling is None:
            return None
        known = self._folders if caller.follows_threads else ()
        named = caller.ceiling.roots
        return tuple({resolved(root): None for root in (*named, *known)})

    def shows(self, caller: Caller, cwd: str) -> bool:
        """Whether a thread of that folder exists for the caller."""
        if caller.follows_threads or caller.ceiling is None:
            return True  # every thread's folder is a root
        return self.contains(caller, cwd)

    def contains(self, caller: Caller, cwd: str) -> bool:
        """Whether work in that folder stays inside the caller's roots."""
        roots = self.of(caller)
        return roots is None or inside(resolved(cwd), roots)

    def check_folder(self, caller: Caller, cwd: str) -> str:
        """Return the resolved folder of a new thread.

        Raises: InvalidParams where it is no absolute, existing folder; Forbidden where
        it lies in no root. The second is told first: no oracle for what exists.
        """
        if not cwd.startswith("/") or "\0" in cwd:
            raise _unusable(cwd, "it must be an absolute path")
        folder = resolved(cwd)
        roots = self.of(caller)
        if roots is not None and not inside(folder, roots):
            assert caller.ceiling is not None
            raise Forbidden(
                "This folder is not inside a root of this device. Name one at the "
                f"workstation: threadgate devices grant {caller.device_id} --only DIR",
                data={"ceiling": caller.ceiling.wire(), "field": "cwd"},
            )
        if not _is_folder(folder):
            raise _unusable(cwd, "there is no such folder on the workstation")
        return folder


def _is_folder(path: str) -> bool:
    """Whether it is one that we can get to; an impossible path (too long) is none."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except OSError:
        return False


def _unusable(cwd: str, reason: str) -> InvalidParams:
    return InvalidParams(
        f"cwd {cwd!r}: {reason}", data={"field": "cwd", "reason": reason}
    )
