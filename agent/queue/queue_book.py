"""Which messages wait for which thread, in order. Sans-IO. PROTOCOL.md section 4.

First come, first served in each thread; threads do not wait for each other.
"""

import json
from dataclasses import dataclass, replace
from typing import Any, cast

from agent.limits import QUEUE_A_THREAD, QUEUE_ALL, QUEUE_PREVIEW
from transport.errors import Overloaded
from transport.protocol.queue import QueuedMessage, WaitsFor


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """One message. `params`: the turn/start that delivers it, as JSON.

    `stored`: it is on the disk, so it may be delivered. `expires_at`, for people, in ms
    since the epoch; what counts is `until`, in ms of `Ages.most`.
    """

    queue_id: str
    thread_id: str
    device_id: str
    params: str
    preview: str
    created_at: int
    expires_at: int
    until: int
    waits_for: WaitsFor | None = None
    stored: bool = True


class QueueBook:
    """All messages that wait."""

    def __init__(self, rows: list[Waiting]) -> None:
        self._rows: dict[str, Waiting] = {row.queue_id: row for row in rows}

    def __len__(self) -> int:
        return len(self._rows)

    def check_room(self, thread_id: str) -> None:
        """Raise `Overloaded` where no further message may wait."""
        limit, waiting = QUEUE_A_THREAD, len(self.of_thread(thread_id))
        if waiting < limit:
            limit, waiting = QUEUE_ALL, len(self._rows)
        if waiting >= limit:
            raise Overloaded(
                f"{limit} messages wait already. Take one back (queue/delete), or wait "
                "until one was delivered.",
                data={"limit": limit},
            )

    def put(self, row: Waiting) -> int:
        """Add a message at the end of its thread's queue; return its position from 1."""
        self._rows[row.queue_id] = row
        return len(self.of_thread(row.thread_id))

    def stored(self, queue_id: str) -> bool:
        """It is on the disk now; False where it was taken away meanwhile."""
        row = self._rows.get(queue_id)
        if row is not None:
            self._rows[queue_id] = replace(row, stored=True)
        return row is not None

    def get(self, queue_id: str) -> Waiting | None:
        """Return one message."""
        return self._rows.get(queue_id)

    def take(self, queue_id: str) -> Waiting | None:
        """Remove one message; return it."""
        return self._rows.pop(queue_id, None)

    def waits(self, queue_id: str, why: WaitsFor | None) -> bool:
        """Note why a message waits; return whether that is news."""
        row = self._rows.get(queue_id)
        if row is None or row.waits_for is why:
            return False
        self._rows[queue_id] = replace(row, waits_for=why)
        return True

    def heads(self) -> list[Waiting]:
        """Return the next message of each thread."""
        first: dict[str, Waiting] = {}
        for row in self._rows.values():
            first.setdefault(row.thread_id, row)
        return list(first.values())

    def of_thread(self, thread_id: str) -> list[Waiting]:
        """Return a thread's messages, the next one first."""
        return [row for row in self._rows.values() if row.thread_id == thread_id]

    def of_device(self, device_id: str) -> list[Waiting]:
        """Return what a device has queued."""
        return [row for row in self._rows.values() if row.device_id == device_id]

    def expired(self, now: int) -> list[Waiting]:
        """Return what is past its time (`Ages.most`, ms)."""
        return [row for row in self._rows.values() if row.until <= now]

    def next_expiry(self) -> int | None:
        """Return when the first message is past its time (`Ages.most`, ms)."""
        return min((row.until for row in self._rows.values()), default=None)

    def shown(self, thread_id: str | None = None) -> list[QueuedMessage]:
        """Return the messages of one thread, or of all, as clients see them."""
        threads = dict.fromkeys(row.thread_id for row in self._rows.values())
        wanted = [thread_id] if thread_id is not None else list(threads)
        return [
            _shown(row, position)
            for one in wanted
            for position, row in enumerate(self.of_thread(one), start=1)
        ]


def _shown(row: Waiting, position: int) -> QueuedMessage:
    return QueuedMessage(
        queue_id=row.queue_id,
        thread_id=row.thread_id,
        position=position,
        preview=row.preview,
        device_id=row.device_id,
        created_at=row.created_at,
        expires_at=row.expires_at,
        waits_for=row.waits_for,
    )


def preview_of(params: str) -> str:
    """Return the first words of a stored turn/start, on one line."""
    given = cast("list[dict[str, Any]]", json.loads(params).get("input", []))
    words = " ".join(
        str(one.get("text") or f"[{one.get('type')}]") for one in given
    ).split()
    line = "".join(c for c in " ".join(words) if c.isprintable())
    return line if len(line) <= QUEUE_PREVIEW else f"{line[: QUEUE_PREVIEW - 1]}…"
