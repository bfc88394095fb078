"""Messages that wait until their thread is free, and what ends their waiting. Trio shell.

PROTOCOL.md section 4. What waits holds no lease, survives restarts, and is dropped with a
notice when it gets too old or its device is revoked; who did not hear that is told for a
day (`dropped_book`). The memory (`queue_book`) decides who waits; the disk follows.
"""

import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

import trio

from adapter.runtime.events import Emit, Emitted
from agent.errors import StoreUnavailableError
from agent.offload import Runner
from agent.queue.dropped_book import (
    EVENT,
    SHUT_OUT,
    Dropped,
    DroppedBook,
    Why,
    dropped,
    entry_of,
)
from agent.queue.queue_book import QueueBook, Said, Waiting
from agent.queue.queue_table import QueueTable
from agent.records.ages import Ages
from agent.records.reserve import Insist
from transport.protocol.events import Notice, NoticeLevel, QueueChanged
from transport.protocol.queue import WaitsFor

_LOG: Final = logging.getLogger(__name__)
UNKNOWN: Final = "queueUnknown"


class Backlog:
    """All messages that wait. `delivering`: which of them are being sent right now.

    `changed` is called whenever something became possible.
    """

    def __init__(
        self,
        table: QueueTable,
        *,
        emit: Emit,
        now_ms: Callable[[], int],
        ages: Callable[[], Ages],
        insist: Insist,
        note: Callable[..., None],
        run: Runner,
    ) -> None:
        """`insist`: runs a write for which a full disk has kept room. `note`: writes an
        entry of the audit log.

        Raises: StoreUnavailableError.
        """
        self._table = table
        self._emit = emit
        self._now_ms = now_ms
        self._ages = ages
        self._insist = insist
        self._note = note
        self._run = run
        self._left: set[str] = set()  # gone from the memory, not yet from the disk
        self._unnoted: deque[Dropped] = deque()  # not yet in the audit log
        self._alone = trio.Lock()  # else older words could come last on the disk
        self.book = QueueBook(table.load())
        self.dropped = DroppedBook(table.load_dropped())
        self.delivering: set[str] = set()
        self.changed: Callable[[], None] = _nobody

    def threads(self) -> set[str]:
        """Return the threads of all that waits or was dropped."""
        return self.dropped.threads() | self.book.threads()

    def age_ms(self) -> int:
        """Return now, on the clock that `Waiting.until` is of."""
        return self._ages().most

    def waits(self, row: Waiting, why: WaitsFor, said: Said | None = None) -> None:
        """Note and tell why it still waits. `said`: what whoever it waits for says."""
        if self.book.waits(row.queue_id, why, said):
            self.tell(row.thread_id)

    def tell(self, thread_id: str) -> None:
        """Tell everybody who sees the thread what waits for it now."""
        brief, data = (
            QueueChanged(
                thread_id=thread_id, queue=self.book.shown(thread_id, whole=whole)
            )
            for whole in (False, True)
        )
        self._emit(
            Emitted(
                at=self._now_ms(),
                thread_id=thread_id,
                data=data,
                public=None if data == brief else brief,
            )
        )
        self.changed()

    # what ends a message's waiting

    async def leave(self, row: Waiting) -> None:
        """It was delivered, though its device may have been shut out meanwhile."""
        if self.book.take(row.queue_id) is not None:
            self.tell(row.thread_id)
        self.dropped.forget(row.queue_id)
        await self.forget([row.queue_id])

    async def drop(
        self,
        row: Waiting,
        code: str,
        why: str,
        *,
        whole: str | None = None,
        error: str | None = None,
    ) -> None:
        """It will not be delivered; everybody who sees the thread is told.

        `whole`: what the workstation is told in place of `why`. `error`: the code of the
        refusal that says so.
        """
        await self._drop([row], Why(code=code, brief=why, whole=whole, error=error))

    async def drop_old(self) -> None:
        """Drop what is past its time; try again what the disk would not forget.

        Of what is being sent right now its delivery tells.
        """
        day = "A queued message waited for a day and was dropped; it was not sent."
        old = self.book.expired(self.age_ms(), but=self.delivering)
        await self._drop(old, Why(code="queueExpired", brief=day))
        self.dropped.prune(self._ages().least)
        await self.catch_up()

    def withdraw(self, device_id: str) -> list[Waiting]:
        """Take away what a device has queued, at once; `catch_up` writes that down.

        No checkpoint. What is being delivered right now ends with the device's acts.
        """
        rows = self.book.of_device(device_id)
        for row in rows:
            self.book.take(row.queue_id)
        going = [row for row in rows if row.queue_id in self.delivering]
        self._say([row for row in rows if row not in going], SHUT_OUT)
        why = (
            "A device was shut out while a queued message of it was being sent. Look at "
            "the thread: it is not sent again."
        )
        self._say(going, Why(code=UNKNOWN, brief=why))
        self.dropped.blank(device_id)
        self._left.update(row.queue_id for row in rows)
        return rows

    async def _drop(self, rows: list[Waiting], why: Why) -> None:
        rows = [
            row
            for row in rows
            if row.stored and self.book.take(row.queue_id) is not None
        ]
        self._say(rows, why)
        await self.forget([row.queue_id for row in rows])

    def _say(self, rows: list[Waiting], why: Why) -> None:
        for row in rows:
            self._keep(row, why)
            brief = _notice(row, why.code, why.brief)
            data = brief if why.whole is None else _notice(row, why.code, why.whole)
            self._emit(
                Emitted(
                    at=self._now_ms(),
                    thread_id=row.thread_id,
                    data=data,
                    public=None if data == brief else brief,
                )
            )
        for thread_id in dict.fromkeys(row.thread_id for row in rows):
            self.tell(thread_id)

    def _keep(self, row: Waiting, why: Why) -> None:
        one = dropped(row, why, at=self._now_ms(), since=self._ages().least)
        self.dropped.add(one)
        self._unnoted.append(one)

    # the disk

    async def forget(self, queue_ids: list[str]) -> None:
        """The disk forgets; if it cannot now, it will be asked again."""
        self._left.update(queue_ids)
        await self.catch_up()

    async def catch_up(self) -> bool:
        """Write what the disk lacks; what it does not take now is tried again.

        Return whether it has nothing any more that is not to be sent after a restart.
        """
        async with self._alone:
            await self._write_down()
        return not self._left

    async def _write_down(self) -> None:
        left, told = sorted(self._left), self.dropped.unwritten()
        if not left and not told and not self._unnoted:
            return
        try:
            whole = await self._run(partial(self._write, left, told))
        except StoreUnavailableError as exc:
            _LOG.warning("the queue could not be written: %s", type(exc).__name__)
            return
        self._left.difference_update(left)
        if whole:
            self.dropped.written(told)

    def _write(self, left: list[str], told: dict[str, Dropped | None]) -> bool:
        """Return whether what is told is on the disk, too. Blocking."""
        with suppress(IndexError):
            while True:
                self._note(EVENT, **entry_of(self._unnoted.popleft()))
        if not left:
            self._table.remove([], told)
            return True
        try:
            self._insist(partial(self._table.remove, left, told))
        except StoreUnavailableError:
            # That it is not sent counts more than that it is told.
            self._table.remove(left)
            return False
        return True


def _nobody() -> None:
    """Nobody delivers yet."""


def _notice(row: Waiting, code: str, why: str) -> Notice:
    return Notice(
        level=NoticeLevel.WARNING,
        code=code,
        message=f"{why} (queue id {row.queue_id})",
        thread_id=row.thread_id,
    )
