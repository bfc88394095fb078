"""The ledger's rows on disk. Blocking I/O over `ledger_file`.

PROTOCOL.md section 3 (Request keys). A row says that an act was handed to Codex, and what
came of it. It is there before the act's first byte is.
"""

import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from agent.errors import StoreUnavailableError
from agent.records.ages import Ages, Instant
from agent.records.key_row import UNNAMED_IS_UNDONE, KeyRow, RowState
from agent.records.ledger_file import open_ledger
from agent.records.row_counts import Room
from agent.records.row_room import RowRoom

_COLUMNS: Final = (
    "device, key, digest, method, state, thread, last_turn, turn, outcome, at"
)
_MARKS: Final = ", ".join("?" * 10)
_ROOM: Final = Room()


class Store:
    """One connection, one caller at a time (any thread). Closed by `close`."""

    def __init__(self, connection: sqlite3.Connection, *, room: Room = _ROOM) -> None:
        self._connection = connection
        self._room = RowRoom(room)
        self._alone = threading.Lock()

    @classmethod
    def open(cls, path: Path, *, room: Room = _ROOM) -> Self:
        """Open or create the file. Raises: StoreUnavailableError."""
        return cls(open_ledger(path), room=room)

    def close(self) -> None:
        """Close the file; later calls raise StoreUnavailableError."""
        with self._alone:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """All that is done in the block is on the disk at its end, or nothing is.

        Raises: StoreUnavailableError.
        """
        with self._using() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                self._room.recount()
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    @contextmanager
    def _using(self) -> Generator[sqlite3.Connection]:
        try:
            with self._alone:
                yield self._connection
        except sqlite3.Error as exc:
            raise StoreUnavailableError(str(exc)) from exc

    def find(self, device: str, key: str) -> KeyRow | None:
        """Return the row of a key."""
        with self._using() as db:
            rows = db.execute(
                f"SELECT {_COLUMNS} FROM keys WHERE device = ? AND key = ?",  # noqa: S608 - a constant
                (device, key),
            ).fetchall()
        return _row(rows[0]) if rows else None

    def hand(self, row: KeyRow) -> None:
        """Write a new row, durable when this returns.

        Raises: StoreUnavailableError; StoreFullError where its device has no room.
        """
        with self._using() as db:
            self.hand_in(db, row)

    def hand_in(self, db: sqlite3.Connection, row: KeyRow) -> None:
        """Write a new row, inside a transaction. Raises: as `hand`."""
        self._room.check(db, row.device, row.key, row.at)
        db.execute(f"INSERT INTO keys ({_COLUMNS}) VALUES ({_MARKS})", _values(row))  # noqa: S608 - constants
        self._room.add(row.device, 1)

    def put(self, row: KeyRow) -> None:
        """Write what is known of an act now, whatever was there before.

        Raises: StoreUnavailableError; StoreFullError where nothing was, and no room is.
        """
        with self._using() as db:
            there = db.execute(
                "SELECT 1 FROM keys WHERE device = ? AND key = ?", (row.device, row.key)
            ).fetchone()
            if there is None:
                self.hand_in(db, row)
                return
            db.execute(
                f"INSERT OR REPLACE INTO keys ({_COLUMNS}) VALUES ({_MARKS})",  # noqa: S608 - constants
                _values(row),
            )

    def check_room(self, device: str, key: str, now: int) -> None:
        """Raise StoreFullError where this row would not fit (`now` as `prune`)."""
        with self._using() as db:
            self._room.check(db, device, key, now)

    def drop(self, device: str, key: str) -> None:
        """The act certainly did not happen: the key may be used again."""
        with self._using() as db:
            gone = db.execute(
                "DELETE FROM keys WHERE device = ? AND key = ?", (device, key)
            ).rowcount
            self._room.add(device, -gone)

    def recover(self) -> int:
        """At start: what was handed and not answered is unknown; return how many.

        A new thread that Codex had not named yet certainly is not there: its key is free.
        """
        with self.transaction() as db:
            self._room.recount()
            db.execute(
                "DELETE FROM keys WHERE state = 'handed' AND method = ?"
                " AND thread IS NULL",
                (UNNAMED_IS_UNDONE,),
            )
            return db.execute(
                "UPDATE keys SET state = 'unknown' WHERE state = 'handed'"
            ).rowcount

    def knows_turn(self, thread: str, turn: str) -> bool:
        """Whether a turn was started by us."""
        with self._using() as db:
            found = db.execute(
                "SELECT 1 FROM keys WHERE thread = ? AND turn = ?", (thread, turn)
            ).fetchone()
        return found is not None

    def has_unknown(self, thread: str) -> bool:
        """Whether an act on this thread was never answered."""
        with self._using() as db:
            found = db.execute(
                "SELECT 1 FROM keys WHERE thread = ? AND state = 'unknown'", (thread,)
            ).fetchone()
        return found is not None

    def key_is_shared(self, row: KeyRow) -> bool:
        """Whether another device has used the same key on the same thread."""
        with self._using() as db:
            found = db.execute(
                "SELECT 1 FROM keys WHERE thread = ? AND key = ? AND device <> ?",
                (row.thread, row.key, row.device),
            ).fetchone()
        return found is not None

    def is_used(self, key: str) -> bool:
        """Whether any device has a row of this key. Looks through all of them."""
        with self._using() as db:
            found = db.execute("SELECT 1 FROM keys WHERE key = ?", (key,)).fetchone()
        return found is not None

    def ages(self) -> Ages | None:
        """Return the counts that were kept last."""
        with self._using() as db:
            found = db.execute(
                "SELECT least, most, wall, boot, up FROM clock"
            ).fetchone()
        if found is None:
            return None
        least, most, wall, boot, up = found
        return Ages(least=least, most=most, at=Instant(wall=wall, boot=boot, up=up))

    def keep_ages(self, ages: Ages) -> None:
        """Write the counts down, for the next run."""
        at = ages.at
        with self._using() as db:
            db.execute(
                "INSERT OR REPLACE INTO clock VALUES (1, ?, ?, ?, ?, ?)",
                (ages.least, ages.most, at.wall, at.boot, at.up),
            )

    def prune(self, now: int) -> int:
        """Forget what is past its time (`Ages.least`, ms); return how many rows went."""
        with self._using() as db:
            return self._room.prune(db, now)


def _row(values: tuple[str, str, str, str, str, str, str, str, str, int]) -> KeyRow:
    device, key, digest, method, state, thread, last_turn, turn, outcome, at = values
    return KeyRow(
        device=device,
        key=key,
        digest=digest,
        method=method,
        state=RowState(state),
        thread=thread,
        last_turn=last_turn,
        turn=turn,
        outcome=outcome,
        at=at,
    )


def _values(row: KeyRow) -> tuple[str | int | None, ...]:
    return (
        row.device,
        row.key,
        row.digest,
        row.method,
        str(row.state),
        row.thread,
        row.last_turn,
        row.turn,
        row.outcome,
        row.at,
    )
