"""Which messages wait for which thread, in order. Sans-IO. PROTOCOL.md section 4.

First come, first served in each thread; threads do not wait for each other.
"""

import json
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

from agent.access.scopes import LOCAL
from agent.limits import (
    OWNER_QUEUE,
    QUEUE_A_DEVICE,
    QUEUE_A_THREAD,
    QUEUE_A_THREAD_A_DEVICE,
    QUEUE_ALL,
    QUEUE_PREVIEW,
)
from transport.errors import Overloaded
from transport.protocol.queue import QueuedMessage, WaitsFor


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What whoever a message waits for says: `brief` to devices, `whole` at admin.sock."""

    brief: str
    whole: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """One message. `params`: the turn/start that delivers it, as JSON.

    `stored`: it is on the disk, so it may be delivered. `found`: it was there when the
    Agent began, so it may have been sent before. `expires_at`, for people, in ms since the
    epoch; what counts is `until`, in ms of `Ages.most`.
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
    said: Said | None = None
    stored: bool = True
    found: bool = False


class QueueBook:
    """All messages that wait."""

    def __init__(self, rows: list[Waiting]) -> None:
        self._rows: dict[str, Waiting] = {row.queue_id: row for row in rows}

    def __len__(self) -> int:
        return len(self._rows)

    def check_room(self, thread_id: str, device_id: str) -> None:
        """Raise `Overloaded` where no further message of this device may wait."""
        for limit, whose, waiting in self._shares(thread_id, device_id):
            if waiting >= limit:
                raise Overloaded(
                    f"{limit} messages{whose} wait already. Take one back (`threadgate "
                    "queue delete`), or wait until one was sent.",
                    data={"limit": limit},
                )

    def _shares(self, thread_id: str, device_id: str) -> Iterator[tuple[int, str, int]]:
        """Yield each bound, of whose messages it is, and how many of these there are."""
        own = self.of_device(device_id)
        own_here = sum(row.thread_id == thread_id for row in own)
        if device_id == LOCAL:
            yield QUEUE_A_THREAD, " of the workstation in this thread", own_here
            yield OWNER_QUEUE, " of the workstation", len(own)
            return
        all_of_them = [row for row in self._rows.values() if row.device_id != LOCAL]
        all_here = sum(row.thread_id == thread_id for row in all_of_them)
        yield QUEUE_A_THREAD_A_DEVICE, " of this device in this thread", own_here
        yield QUEUE_A_THREAD, " in this thread", all_here
        yield QUEUE_A_DEVICE, " of this device", len(own)
        yield QUEUE_ALL, "", len(all_of_them)

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

    def waits(self, queue_id: str, why: WaitsFor, said: Said | None = None) -> bool:
        """Note why a message waits; return whether that is news."""
        row = self._rows.get(queue_id)
        if row is None or (row.waits_for, row.said) == (why, said):
            return False
        self._rows[queue_id] = replace(row, waits_for=why, said=said)
        return True

    def looked_for(self, queue_id: str) -> None:
        """It is not in its thread: from now on only this run can send it."""
        row = self._rows.get(queue_id)
        if row is not None:
            self._rows[queue_id] = replace(row, found=False)

    def threads(self) -> set[str]:
        """Return the threads in which something waits."""
        return {row.thread_id for row in self._rows.values()}

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

    def expired(self, now: int, *, but: Container[str]) -> list[Waiting]:
        """Return what is past its time (`Ages.most`, ms), but for these."""
        rows = self._rows.values()
        return [one for one in rows if one.until <= now and one.queue_id not in but]

    def next_expiry(self, *, but: Container[str]) -> int | None:
        """Return when the first message, but for these, is past its time (as `expired`)."""
        rows = self._rows.values()
        times = (one.until for one in rows if one.queue_id not in but)
        return min(times, default=None)

    def shown(
        self, thread_id: str | None = None, *, whole: bool = False
    ) -> list[QueuedMessage]:
        """Return the messages of one thread, or of all, as clients see them.

        `whole`: as the workstation does.
        """
        threads = dict.fromkeys(row.thread_id for row in self._rows.values())
        wanted = [thread_id] if thread_id is not None else list(threads)
        return [
            _shown(row, position, whole=whole)
            for one in wanted
            for position, row in enumerate(self.of_thread(one), start=1)
        ]


def _shown(row: Waiting, position: int, *, whole: bool) -> QueuedMessage:
    said = row.said
    return QueuedMessage(
        queue_id=row.queue_id,
        thread_id=row.thread_id,
        position=position,
        preview=row.preview,
        device_id=row.device_id,
        created_at=row.created_at,
        expires_at=row.expires_at,
        waits_for=row.waits_for,
        waits_message=None if said is None else said.whole if whole else said.brief,
    )


def preview_of(params: str) -> str:
    """Return the first words of a stored turn/start, on one line."""
    given = cast("list[dict[str, Any]]", json.loads(params).get("input", []))
    words = " ".join(
        str(one.get("text") or f"[{one.get('type')}]") for one in given
    ).split()
    line = "".join(c for c in " ".join(words) if c.isprintable())
    return line if len(line) <= QUEUE_PREVIEW else f"{line[: QUEUE_PREVIEW - 1]}…"
