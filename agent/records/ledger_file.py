"""The file of the ledger and the queue: SQLite, WAL, every write synced. Blocking I/O.

Its tables: `keys` (`store`), `queue` and `dropped` (`queue_table`), `clock` (`ages`).
"""

import os
import sqlite3
from pathlib import Path
from typing import Final

from agent.errors import StoreUnavailableError

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS keys (
    device TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    method TEXT NOT NULL,
    state TEXT NOT NULL,
    thread TEXT,
    last_turn TEXT,
    turn TEXT,
    outcome TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (device, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS keys_by_thread ON keys (thread, turn);
CREATE INDEX IF NOT EXISTS keys_by_age ON keys (state, at);
CREATE TABLE IF NOT EXISTS queue (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    thread TEXT NOT NULL,
    device TEXT NOT NULL,
    params TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    until INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS dropped (
    id TEXT NOT NULL PRIMARY KEY,
    thread TEXT NOT NULL,
    device TEXT NOT NULL,
    preview TEXT NOT NULL,
    code TEXT NOT NULL,
    message TEXT NOT NULL,
    whole TEXT,
    error TEXT,
    at INTEGER NOT NULL,
    since INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS clock (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    least INTEGER NOT NULL,
    most INTEGER NOT NULL,
    wall INTEGER NOT NULL,
    boot TEXT NOT NULL,
    up INTEGER NOT NULL
);
"""
_LATEST: Final = "SELECT 1 FROM sqlite_master WHERE name = 'dropped'"
_VERSION: Final = 2


def open_ledger(path: Path) -> sqlite3.Connection:
    """Open or create the file (0600), ready for a Store.

    Raises: StoreUnavailableError; a damaged file stays as it is.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.close(descriptor)
        connection = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, timeout=5.0
        )
    except (OSError, sqlite3.Error) as exc:
        raise StoreUnavailableError(str(path), str(exc)) from exc
    try:
        _prepare(connection)
    except (sqlite3.Error, StoreUnavailableError) as exc:
        connection.close()
        raise StoreUnavailableError(str(path), str(exc)) from exc
    return connection


def _prepare(db: sqlite3.Connection) -> None:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > _VERSION:
        reason = f"written by a newer version (format {version})"
        raise StoreUnavailableError(reason)
    if version < _VERSION and db.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise StoreUnavailableError(
            f"written before the first release (format {version}): move it away; what "
            "waited in it is not sent, and request keys from before are forgotten"
        )
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    # Else nothing is written: the disk may be full. A table may be new in this version.
    if version < _VERSION or not db.execute(_LATEST).fetchone():
        mark = f"PRAGMA user_version = {_VERSION};"
        db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} {mark} COMMIT;")
