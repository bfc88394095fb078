"""The Agent's queue on the disk: messages that wait. Blocking I/O over `store`.

PROTOCOL.md section 4. A message is there before its client hears that it is queued, and
until it was delivered, dropped or taken back. What is told of one that was dropped comes
in the same write in which it goes.
"""

from collections.abc import Mapping
from typing import Final

from agent.queue.dropped_book import Dropped
from agent.queue.queue_book import Waiting, preview_of
from agent.records.key_row import KeyRow
from agent.records.store import Store

_COLUMNS: Final = "id, thread, device, params, created_at, expires_at, until"
_DROPPED: Final = "id, thread, device, preview, code, message, whole, error, at, since"


class QueueTable:
    """The tables `queue` and `dropped` of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def load(self) -> list[Waiting]:
        """Return all that wait, oldest first. Raises: StoreUnavailableError."""
        with self._store.transaction() as db:
            rows = db.execute(
                f"SELECT {_COLUMNS} FROM queue ORDER BY number"  # noqa: S608 - a constant
            ).fetchall()
        return [
            Waiting(
                queue_id=queue_id,
                thread_id=thread,
                device_id=device,
                params=params,
                preview=preview_of(params),
                created_at=created_at,
                expires_at=expires_at,
                until=until,
                found=True,
            )
            for queue_id, thread, device, params, created_at, expires_at, until in rows
        ]

    def put(self, one: Waiting, key: KeyRow) -> None:
        """Write a message together with the ledger's row of the act that queued it.

        Raises: StoreUnavailableError, StoreFullError; then neither is there.
        """
        values = (
            one.queue_id,
            one.thread_id,
            one.device_id,
            one.params,
            one.created_at,
            one.expires_at,
            one.until,
        )
        with self._store.transaction() as db:
            self._store.hand_in(db, key)
            db.execute(
                f"INSERT INTO queue ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - a constant
                values,
            )

    def load_dropped(self) -> list[Dropped]:
        """Return what is told of dropped ones, oldest first. Raises: as `load`."""
        with self._store.transaction() as db:
            rows = db.execute(
                f"SELECT {_DROPPED} FROM dropped ORDER BY since, rowid"  # noqa: S608 - a constant
            ).fetchall()
        return [
            Dropped(
                queue_id=queue_id,
                thread_id=thread,
                device_id=device,
                preview=preview,
                code=code,
                message=message,
                whole=whole,
                error=error,
                at=at,
                since=since,
            )
            for (
                queue_id,
                thread,
                device,
                preview,
                code,
                message,
                whole,
                error,
                at,
                since,
            ) in rows
        ]

    def remove(
        self, queue_ids: list[str], told: Mapping[str, Dropped | None] | None = None
    ) -> None:
        """Forget messages; `told`: write what is told of one, or forget that.

        Raises: StoreUnavailableError; then all is as before.
        """
        with self._store.transaction() as db:
            db.executemany(
                "DELETE FROM queue WHERE id = ?", [(one,) for one in queue_ids]
            )
            for queue_id, one in (told or {}).items():
                if one is None:
                    db.execute("DELETE FROM dropped WHERE id = ?", (queue_id,))
                else:
                    db.execute(
                        f"INSERT OR REPLACE INTO dropped ({_DROPPED}) VALUES"  # noqa: S608 - a constant
                        " (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        _values(one),
                    )


def _values(one: Dropped) -> tuple[str | int | None, ...]:
    return (
        one.queue_id,
        one.thread_id,
        one.device_id,
        one.preview,
        one.code,
        one.message,
        one.whole,
        one.error,
        one.at,
        one.since,
    )
