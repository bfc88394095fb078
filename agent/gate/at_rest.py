"""The panic switch of an Agent that does not run, or cannot be reached. Blocking I/O.

PROTOCOL.md section 3. The next start finds the gate locked, and drops what devices had
queued. Where it is unlocked before that, it is dropped here.
"""

from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from agent.access.scopes import LOCAL
from agent.clocks import wall_ms
from agent.gate.panic import LockFile
from agent.lockfile import hold_folder
from agent.queue.dropped_book import (
    EVENT,
    SHUT_OUT,
    Dropped,
    DroppedBook,
    dropped,
    entry_of,
)
from agent.queue.queue_book import Waiting
from agent.queue.queue_table import QueueTable
from agent.records.audit import Audit
from agent.records.reserve import Reserve
from agent.records.store import Store
from agent.sessions.eviction import note_dropped
from agent.state import AUDIT, LEDGER


def mark_locked(folder: Path) -> None:
    """Have the next start find the gate locked, also while an Agent has the folder.

    Raises: KeyFileError, OSError.
    """
    LockFile(folder, insist=Reserve(folder).insist).put()


def lock_at_rest(folder: Path) -> None:
    """Have the next start find the gate locked. Raises: FolderInUseError, KeyFileError,
    OSError."""
    with hold_folder(folder):
        mark_locked(folder)
        with closing(_audit(folder)) as audit:
            audit.note("gateway/lock", stop=False)


def unlock_at_rest(folder: Path) -> None:
    """Have the next start find the gate open, and nothing of before the lock in the queue.

    Raises: FolderInUseError, KeyFileError, StorageError, OSError; it stays locked then.
    """
    with hold_folder(folder), closing(_audit(folder)) as audit:
        file = LockFile(folder)
        if file.is_there():
            _drop_queues(folder, audit)
            audit.record("gateway/unlock")
        file.remove()


def _audit(folder: Path) -> Audit:
    return Audit(folder / AUDIT, now_ms=wall_ms)


def _drop_queues(folder: Path, audit: Audit) -> None:
    """Forget what waits of devices, and all words of theirs; the workstation's own waits on."""
    if not (folder / LEDGER).exists():
        return
    with closing(Store.open(folder / LEDGER)) as store:
        table = QueueTable(store)
        waiting = [one for one in table.load() if one.device_id != LOCAL]
        told = _told(waiting, store)
        for one in told:
            audit.note(EVENT, **entry_of(one))
        book = _book(table.load_dropped(), told)
        table.remove([one.queue_id for one in told], book.unwritten())
    note_dropped(audit, Counter(one.device_id for one in told))


def _told(waiting: Iterable[Waiting], store: Store) -> list[Dropped]:
    at, ages = wall_ms(), store.ages()
    since = at if ages is None else ages.least
    return [dropped(one, SHUT_OUT, at=at, since=since) for one in waiting]


def _book(before: list[Dropped], more: list[Dropped]) -> DroppedBook:
    book = DroppedBook(before)
    for one in more:
        book.add(one)
    for device_id in {one.device_id for one in before} - {LOCAL}:
        book.blank(device_id)
    return book
