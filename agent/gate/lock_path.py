"""Where Codex keeps the writer lock of a thread. Sans-IO. PROTOCOL.md section 3 (Lease)."""

import re
from pathlib import Path
from typing import Final

FOLDER: Final = "thread-writer-locks"
_THREAD_ID: Final = re.compile(r"[0-9A-Za-z_-]{1,64}$")

# Who has which file: (major, minor, inode) → pid.
Owners = dict[tuple[int, int, int], int]


def lock_path(home: Path, thread_id: str) -> Path | None:
    """Return the lock file of a thread; `None` for what can be no thread's id."""
    if not _THREAD_ID.match(thread_id):
        return None
    return home / FOLDER / f"{thread_id}.lock"
