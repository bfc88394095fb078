"""The Agent's own queue: messages that wait until their thread is free. Trio shell.

PROTOCOL.md section 4. Queueing is the keyed act; what waits holds no lease, survives
restarts, and is dropped with a notice when it gets too old or its device is revoked. The
memory decides who waits; the disk follows. How they are delivered: `delivering`.
"""

import logging
import secrets
from collections.abc import Callable
from functools import partial
from typing import Final

import trio

from adapter.runtime.events import Emit, Emitted
from agent.access.scopes import Caller, check_alive
from agent.errors import StoreUnavailableError
from agent.limits import ACT_S, QUEUE_MS
from agent.mutations.newest_turn import check_expected
from agent.mutations.way import Way
from agent.offload import Runner
from agent.queue.queue_book import QueueBook, Waiting, preview_of
from agent.queue.queue_table import QueueTable
from agent.records.ledger import Flight, Settled
from agent.records.reserve import Insist
from agent.records.store import KeyRow
from transport.errors import Conflict, NotFound, Refusal
from transport.protocol.events import Notice, NoticeLevel, QueueChanged
from transport.protocol.methods import QUEUE_DELETE
from transport.protocol.queue import (
    QueueDeleteParams,
    QueueDeleteResult,
    QueueListParams,
    QueueListResult,
    WaitsFor,
)
from transport.protocol.turns import Queued, TurnStartParams, TurnStartResult

_LOG: Final = logging.getLogger(__name__)
_QUEUED: Final = "queued"
ACTION: Final = "turn/queue"  # in the audit


class MessageQueue:
    """`turn/start` with `delivery: queue`, `queue/list`, `queue/delete`."""

    def __init__(
        self,
        table: QueueTable,
        way: Way,
        *,
        emit: Emit,
        head: Callable[[], int],
        now_ms: Callable[[], int],
        insist: Insist,
        run: Runner,
    ) -> None:
        """`insist`: runs a write for which a full disk has kept room.

        Raises: StoreUnavailableError.
        """
        self._table = table
        self._way = way
        self._emit = emit
        self._head = head
        self._now_ms = now_ms
        self._insist = insist
        self._run = run
        self._alone = trio.Lock()
        self._left: set[str] = set()  # gone from the memory, not yet from the disk
        self.book = QueueBook(table.load())
        self.delivering: set[str] = set()
        self.changed: Callable[[], None] = _nobody

    def age_ms(self) -> int:
        """Return now, on the clock that `Waiting.until` is of."""
        return self._way.ledger.ages().most

    # what clients ask

    async def put(
        self, caller: Caller, params: TurnStartParams, flight: Flight
    ) -> TurnStartResult:
        """Queue a message. Raises: Refusal; then it does not wait."""
        check_alive(caller)
        await self._check_newest(params)
        async with self._alone:
            check_alive(caller)
            self.book.check_room(params.thread_id)
            row = self._row(caller, params)
            position = self.book.put(row)
            queued = Queued(queue_id=row.queue_id, position=position)
            result = TurnStartResult(queued=queued, delivery=_QUEUED)
            with trio.move_on_after(ACT_S, shield=True):
                await self._store(row, flight, result)
        self._tell(row.thread_id)
        return result

    async def _check_newest(self, params: TurnStartParams) -> None:
        expected = params.expected_last_turn_id
        if expected is None:
            return
        newest = await self._way.newest.read(params.thread_id)
        lease = self._way.pool.lease_of(params.thread_id)
        live = lease.started_writer.last_turn_id if lease else None
        check_expected(expected, newest, newest.id if newest else None, live)

    def _row(self, caller: Caller, params: TurnStartParams) -> Waiting:
        queue_id = f"q-{secrets.token_hex(16)}"
        kept = params.model_copy(
            update={
                "delivery": "start",
                "expected_last_turn_id": None,  # compared now; later it could not hold
                "request_key": queue_id,
                "wait_ms": 0,
            }
        )
        text = kept.model_dump_json(by_alias=True, exclude_none=True)
        now = self._now_ms()
        return Waiting(
            queue_id=queue_id,
            thread_id=params.thread_id,
            device_id=caller.device_id,
            params=text,
            preview=preview_of(text),
            created_at=now,
            expires_at=now + QUEUE_MS,
            until=self.age_ms() + QUEUE_MS,
            stored=False,
        )

    async def _store(
        self, row: Waiting, flight: Flight, result: TurnStartResult
    ) -> None:
        try:
            store = partial(self._table.put, row)
            await self._way.ledger.keep(flight, ACTION, result, store)
        except Refusal:
            self.book.take(row.queue_id)
            raise
        if not self.book.stored(row.queue_id):  # its device was revoked meanwhile
            await self._forget([row.queue_id])

    async def waiting(self, caller: Caller, params: QueueListParams) -> QueueListResult:
        """Return what waits in the threads that exist for the caller. Raises: Refusal."""
        head = self._head()
        theirs: tuple[str, ...] = ()
        if params.thread_id is not None:
            await self._way.sight.thread(caller, params.thread_id)
            theirs = (await self._way.newest.pending(params.thread_id)).queue
        shown = [
            one
            for one in self.book.shown(params.thread_id)
            if self._way.sight.sees(caller, one.thread_id)
        ]
        return QueueListResult(queue=shown, codex_queue=[*theirs], head=head)

    async def delete(
        self, caller: Caller, params: QueueDeleteParams, flight: Flight
    ) -> QueueDeleteResult:
        """Take a message back. Raises: NotFound, Conflict (queue)."""
        check_alive(caller)
        row = self.book.get(params.queue_id)
        if row is None or not self._way.sight.sees(caller, row.thread_id):
            raise _not_there(params.queue_id)
        if row.queue_id in self.delivering:
            raise Conflict(
                "This message is being sent right now; interrupt its turn instead.",
                data={"what": "queue"},
            )
        self.book.take(row.queue_id)
        self._tell(row.thread_id)
        with trio.move_on_after(ACT_S, shield=True):
            await self._way.ledger.hand(flight, QUEUE_DELETE.name)
            await self._forget([row.queue_id])
            await self._way.ledger.done(flight, QueueDeleteResult(), None)
        return QueueDeleteResult()

    async def deleted(
        self, _caller: Caller, params: QueueDeleteParams, _row: KeyRow
    ) -> Settled[QueueDeleteResult]:
        """A `queue/delete`: it waits no more, and was not sent instead."""
        if self.book.get(params.queue_id) is not None:
            return Settled()
        if await self._way.ledger.is_used(params.queue_id):
            return Settled()  # as a key: its delivery was begun
        return Settled(result=QueueDeleteResult())

    # what ends a message's waiting

    async def leave(self, row: Waiting) -> None:
        """It was delivered."""
        if self.book.take(row.queue_id) is not None:
            self._tell(row.thread_id)
        await self._forget([row.queue_id])

    async def drop(self, row: Waiting, code: str, why: str) -> None:
        """It will not be delivered; everybody who sees the thread is told."""
        await self._drop([row], code, why)

    async def drop_old(self) -> None:
        """Drop what is past its time; try again what the disk would not forget."""
        day = "A queued message waited for a day and was dropped; it was not sent."
        await self._drop(self.book.expired(self.age_ms()), "queueExpired", day)
        await self._forget([])

    async def catch_up(self) -> None:
        """Forget on the disk what a full one would not forget."""
        if self._left:
            await self._forget([])

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
        await self._forget([])

    async def _drop(self, rows: list[Waiting], code: str, why: str) -> None:
        rows = [
            row
            for row in rows
            if row.stored and self.book.take(row.queue_id) is not None
        ]
        self._say(rows, code, why)
        await self._forget([row.queue_id for row in rows])

    def _say(self, rows: list[Waiting], code: str, why: str) -> None:
        for row in rows:
            data = Notice(
                level=NoticeLevel.WARNING,
                code=code,
                message=f"{why} (queue id {row.queue_id})",
                thread_id=row.thread_id,
            )
            self._emit(Emitted(at=self._now_ms(), thread_id=row.thread_id, data=data))
        for thread_id in dict.fromkeys(row.thread_id for row in rows):
            self._tell(thread_id)

    def waits(self, row: Waiting, why: WaitsFor) -> None:
        """Note and tell why it still waits."""
        if self.book.waits(row.queue_id, why):
            self._tell(row.thread_id)

    async def _forget(self, queue_ids: list[str]) -> None:
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

    def _tell(self, thread_id: str) -> None:
        data = QueueChanged(thread_id=thread_id, queue=self.book.shown(thread_id))
        self._emit(Emitted(at=self._now_ms(), thread_id=thread_id, data=data))
        self.changed()


def _nobody() -> None:
    """Nobody delivers yet."""


def _not_there(queue_id: str) -> NotFound:
    return NotFound(
        "No such message waits: it was sent, dropped or taken back. "
        "`threadgate queue` lists those that do.",
        data={"kind": "queue", "id": queue_id},
    )
