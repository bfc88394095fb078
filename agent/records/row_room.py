"""Whether the ledger has room for one more row. Blocking I/O over a store's connection.

PROTOCOL.md section 3 (Request keys). Rows are counted (`row_counts`) as they come and go,
and anew where that may be wrong. Who calls has the connection alone.
"""

import sqlite3
from typing import Final

from agent.access.scopes import LOCAL
from agent.errors import StoreFullError
from agent.limits import DONE_MS, UNKNOWN_MS
from agent.records.row_counts import Full, Room, RowCounts

_KEPT_MS: Final = {"done": DONE_MS, "unknown": UNKNOWN_MS}


class RowRoom:
    """The room that there is. `now`: `Ages.least`, ms."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._counts: RowCounts | None = None  # to be counted

    def check(self, db: sqlite3.Connection, device: str, key: str, now: int) -> None:
        """Raise StoreFullError where this row would not fit."""
        counts = self._counted(db)
        if counts.full_for(device) and self.prune(db, now):
            counts = self._counted(db)  # something was past its time by now
        full = counts.full_for(device)
        if full is not None and not _is_promised(db, device, key):
            raise StoreFullError(
                full.limit,
                of_one=full.device is not None,
                wait_ms=_wait_ms(db, full, now),
            )

    def add(self, device: str, more: int) -> None:
        """So many rows of the device have come, or (below zero) gone."""
        if self._counts is not None:
            self._counts.add(device, more)

    def recount(self) -> None:
        """What was counted may be wrong: count anew, when it is asked for."""
        self._counts = None

    def prune(self, db: sqlite3.Connection, now: int) -> int:
        """Forget what is past its time; return how many rows went."""
        gone = db.execute(
            "DELETE FROM keys WHERE (state = 'done' AND at < ?)"
            " OR (state = 'unknown' AND at < ?)",
            (now - DONE_MS, now - UNKNOWN_MS),
        ).rowcount
        if gone:
            self.recount()
        return gone

    def _counted(self, db: sqlite3.Connection) -> RowCounts:
        if self._counts is None:
            rows = db.execute("SELECT device, count(*) FROM keys GROUP BY device")
            self._counts = RowCounts(dict(rows.fetchall()), room=self._room)
        return self._counts


def _wait_ms(db: sqlite3.Connection, full: Full, now: int) -> int | None:
    """Return when the first of the rows that fill it is past its time."""
    whose = "device <> ?" if full.device is None else "device = ?"
    waits: list[int] = []
    for state, kept_ms in _KEPT_MS.items():
        oldest = db.execute(
            f"SELECT at FROM keys WHERE state = ? AND {whose} ORDER BY at LIMIT 1",  # noqa: S608 - constants
            (state, full.device or LOCAL),
        ).fetchone()
        if oldest is not None:
            waits.append(oldest[0] + kept_ms + 1 - now)
    return min(waits, default=None)


def _is_promised(db: sqlite3.Connection, device: str, key: str) -> bool:
    """Whether it is the delivery of a message that waits: it has had its row for that, so
    such rows beyond the bound are no more than there are within it."""
    found = db.execute(
        "SELECT 1 FROM queue WHERE id = ? AND device = ?", (key, device)
    ).fetchone()
    return found is not None
