"""Messages that wait until their thread is free, and what ends their waiting. Trio shell.

PROTOCOL.md section 4. What waits holds no lease, survives restarts, and is dropped with a
notice when it gets too old or its device is revoked. The memory (`queue_book`) decides
who waits; the disk follows.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from adapter.runtime.events import Emit, Emitted
from agent.errors import StoreUnavailableError
from agent.offload import Runner
from agent.queue.queue_book import QueueBook, Waiting
from agent.queue.queue_table import QueueTable
from agent.records.reserve import Insist
from transport.protocol.events import Notice, NoticeLevel, QueueChanged
from transport.protocol.queue import WaitsFor

_LOG: Final = logging.getLogger(__name__)


class Backlog:
    """All messages that wait. `delivering`: which of them are being sent right now.

    `age_ms`: now, on the clock that `Waiting.until` is of. `changed` is called whenever
    something became possible.
    """

    def __init__(
        self,
        table: QueueTable,
        *,
        emit: Emit,
        now_ms: Callable[[], int],
        age_ms: Callable[[], int],
        insist: Insist,
        run: Runner,
    ) -> None:
        """`insist`: runs a write for which a full disk has kept room.

        Raises: StoreUnavailableError.
        """
        self._table = table
        self._emit = emit
        self._now_ms = now_ms
        self._insist = insist
        self._run = run
        self._left: set[str] = set()  # gone from the memory, not yet from the disk
        self.age_ms = age_ms
        self.book = QueueBook(table.load())
        self.delivering: set[str] = set()
        self.changed: Callable[[], None] = _nobody

    def waits(self, row: Waiting, why: WaitsFor) -> None:
        """Note and tell why it still waits."""
        if self.book.waits(row.queue_id, why):
            self.tell(row.thread_id)

    def tell(self, thread_id: str) -> None:
        """Tell everybody who sees the thread what waits for it now."""
        data = QueueChanged(thread_id=thread_id, queue=self.book.shown(thread_id))
        self._emit(Emitted(at=self._now_ms(), thread_id=thread_id, data=data))
        self.changed()

    # what ends a message's waiting

    async def leave(self, row: Waiting) -> None:
        """It was delivered."""
        if self.book.take(row.queue_id) is not None:
            self.tell(row.thread_id)
        await self.forget([row.queue_id])

    async def drop(
        self, row: Waiting, code: str, why: str, *, whole: str | None = None
    ) -> None:
        """It will not be delivered; everybody who sees the thread is told.

        `whole`: what the workstation is told in place of `why`.
        """
        await self._drop([row], code, why, whole)

    async def drop_old(self) -> None:
        """Drop what is past its time; try again what the disk would not forget."""
        day = "A queued message waited for a day and was dropped; it was not sent."
        await self._drop(self.book.expired(self.age_ms()), "queueExpired", day)
        await self.forget([])

    def withdraw(self, device_id: str) -> list[Waiting]:
        """Take away what a device has queued, at once. No checkpoint.

        What is being delivered right now ends with the device's acts.
        """
        rows = self.book.of_device(device_id)
        for row in rows:
            self.book.take(row.queue_id)
        why = "A queued message of a device that was shut out was dropped; it was not sent."
        self._say(rows, "queueDropped", why)
        self._left.update(row.queue_id for row in rows)
        return rows

    async def drop_device(self, device_id: str) -> None:
        """`withdraw`, and forget it on the disk too."""
        self.withdraw(device_id)
        await self.forget([])

    async def _drop(
        self, rows: list[Waiting], code: str, why: str, whole: str | None = None
    ) -> None:
        rows = [
            row
            for row in rows
            if row.stored and self.book.take(row.queue_id) is not None
        ]
        self._say(rows, code, why, whole)
        await self.forget([row.queue_id for row in rows])

    def _say(
        self, rows: list[Waiting], code: str, why: str, whole: str | None = None
    ) -> None:
        for row in rows:
            brief = _notice(row, code, why)
            data = brief if whole is None else _notice(row, code, whole)
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

    # the disk

    async def forget(self, queue_ids: list[str]) -> None:
        """The disk forgets; if it cannot now, it will be asked again."""
        self._left.update(queue_ids)
        if not (left := sorted(self._left)):
            return
        remove = partial(self._table.remove, left)
        try:
            await self._run(partial(self._insist, remove))
        except StoreUnavailableError as exc:
            _LOG.warning("the queue could not be written: %s", type(exc).__name__)
        else:
            self._left.difference_update(left)

    async def catch_up(self) -> None:
        """Forget on the disk what a full one would not forget."""
        if self._left:
            await self.forget([])


def _nobody() -> None:
    """Nobody delivers yet."""


def _notice(row: Waiting, code: str, why: str) -> Notice:
    return Notice(
        level=NoticeLevel.WARNING,
        code=code,
        message=f"{why} (queue id {row.queue_id})",
        thread_id=row.thread_id,
    )
