"""The panic switch of an Agent that does not run, or cannot be reached. Blocking I/O.

PROTOCOL.md section 3. The next start finds the gate locked, and drops what devices had
queued. Where it is unlocked before that, it is dropped here.
"""

from contextlib import closing
from pathlib import Path
from typing import Final

from agent.access.scopes import LOCAL
from agent.clocks import wall_ms
from agent.gate.panic import LockFile
from agent.lockfile import hold_folder
from agent.queue.dropped_book import SHUT_OUT, dropped
from agent.queue.queue_table import QueueTable
from agent.records.audit import Audit
from agent.records.reserve import Reserve
from agent.records.store import Store

_LEDGER: Final = "ledger.sqlite"
_AUDIT: Final = "audit.jsonl"


def mark_locked(folder: Path) -> None:
    """Have the next start find the gate locked, also while an Agent has the folder.

    Raises: KeyFileError, OSError.
    """
    LockFile(folder).put()


def lock_at_rest(folder: Path) -> None:
    """Have the next start find the gate locked. Raises: FolderInUseError, KeyFileError,
    OSError."""
    with hold_folder(folder):
        LockFile(folder, insist=Reserve(folder).insist).put()
        with closing(Audit(folder / _AUDIT, now_ms=wall_ms)) as audit:
            audit.note("gateway/lock", stop=False)


def unlock_at_rest(folder: Path) -> None:
    """Have the next start find the gate open, and nothing of before the lock in the queue.

    Raises: FolderInUseError, KeyFileError, StorageError, OSError; it stays locked then.
    """
    with hold_folder(folder), closing(Audit(folder / _AUDIT, now_ms=wall_ms)) as audit:
        file = LockFile(folder)
        if file.is_there():
            _drop_queues(folder, audit)
            audit.record("gateway/unlock")
        file.remove()


def _drop_queues(folder: Path, audit: Audit) -> None:
    """Forget what waits of devices; the workstation's own waits on."""
    if not (folder / _LEDGER).exists():
        return
    with closing(Store.open(folder / _LEDGER)) as store:
        table = QueueTable(store)
        waiting = [one for one in table.load() if one.device_id != LOCAL]
        at, ages = wall_ms(), store.ages()
        since = at if ages is None else ages.least
        told = [dropped(one, SHUT_OUT, at=at, since=since) for one in waiting]
        table.remove(
            [one.queue_id for one in told], {one.queue_id: one for one in told}
        )
    for device_id in dict.fromkeys(one.device_id for one in waiting):
        count = sum(one.device_id == device_id for one in waiting)
        audit.note("queue/dropped", device=device_id, count=count)
