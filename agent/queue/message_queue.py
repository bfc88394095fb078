"""The Agent's own queue, as clients use it: put in, listed, taken back. Trio shell.

PROTOCOL.md section 4. Queueing is the keyed act. What waits is in `backlog`; how it is
delivered: `delivering`.
"""

import secrets
from collections.abc import Callable
from functools import partial
from typing import Final

import trio

from agent.access.scopes import Caller, check_alive, local_caller
from agent.access.sight import is_fenced
from agent.limits import ACT_S, QUEUE_MS
from agent.mutations.newest_turn import check_expected
from agent.mutations.refusals import storage_failed
from agent.mutations.way import Way
from agent.queue.backlog import Backlog
from agent.queue.queue_book import Waiting, preview_of
from agent.queue.queue_table import QueueTable
from agent.records.flight import Flight, Settled
from agent.records.key_row import KeyRow
from transport.errors import CodexUnavailable, Conflict, NotFound, Refusal
from transport.protocol.queue import (
    QueueDeleteParams,
    QueueDeleteResult,
    QueueListParams,
    QueueListResult,
)
from transport.protocol.turns import Queued, TurnStartParams, TurnStartResult

_QUEUED: Final = "queued"
ACTION: Final = "turn/queue"  # in the audit
_OWNER: Final = local_caller()


class MessageQueue:
    """`turn/start` with `delivery: queue`, `queue/list`, `queue/delete`."""

    def __init__(
        self,
        table: QueueTable,
        backlog: Backlog,
        way: Way,
        *,
        head: Callable[[], int],
        now_ms: Callable[[], int],
    ) -> None:
        self._table = table
        self._backlog = backlog
        self._way = way
        self._head = head
        self._now_ms = now_ms
        self._alone = trio.Lock()
        self._unplaced = backlog.threads()  # nobody has asked yet where these are

    async def put(
        self, caller: Caller, params: TurnStartParams, flight: Flight
    ) -> TurnStartResult:
        """Queue a message. Raises: Refusal; then it does not wait."""
        check_alive(caller)
        await self._check_newest(params)
        async with self._alone:
            check_alive(caller)
            self._backlog.book.check_room(params.thread_id, caller.device_id)
            row = self._row(caller, params)
            position = self._backlog.book.put(row)
            queued = Queued(queue_id=row.queue_id, position=position)
            result = TurnStartResult(queued=queued, delivery=_QUEUED)
            await self._store(row, flight, result)
        self._backlog.tell(row.thread_id)
        return result

    async def _check_newest(self, params: TurnStartParams) -> None:
        expected = params.expected_last_turn_id
        if expected is None:
            return
        newest = await self._way.newest.read(params.thread_id)
        lease = self._way.leases.lease_of(params.thread_id)
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
            until=self._backlog.age_ms() + QUEUE_MS,
            stored=False,
        )

    async def _store(
        self, row: Waiting, flight: Flight, result: TurnStartResult
    ) -> None:
        """Raises: Refusal; then it does not wait, and is not on the disk."""
        store = partial(self._table.put, row)
        try:
            with trio.fail_after(ACT_S, shield=True):
                await self._way.ledger.keep(flight, ACTION, result, store)
        except trio.TooSlowError as exc:
            self._backlog.book.take(row.queue_id)
            raise storage_failed("ledger") from exc
        except BaseException:  # what stays would keep all behind it waiting
            self._backlog.book.take(row.queue_id)
            raise
        if self._backlog.book.stored(row.queue_id):
            return
        # Its device was put out meanwhile, and this act cancelled.
        with trio.move_on_after(ACT_S, shield=True):
            await self._backlog.forget([row.queue_id])

    async def waiting(self, caller: Caller, params: QueueListParams) -> QueueListResult:
        """Return what waits in the threads that exist for the caller, and what was dropped
        there. Raises: Refusal."""
        head = self._head()
        theirs: tuple[str, ...] = ()
        if params.thread_id is not None:
            await self._way.sight.thread(caller, params.thread_id)
            theirs = (await self._way.newest.pending(params.thread_id)).queue
        elif is_fenced(caller):
            await self._place()
        sees = partial(self._way.sight.sees, caller)
        whole = caller.is_local
        shown = self._backlog.book.shown(params.thread_id, whole=whole)
        dropped = self._backlog.dropped.shown(params.thread_id, whole=whole)
        return QueueListResult(
            queue=[one for one in shown if sees(one.thread_id)],
            codex_queue=[*theirs],
            dropped=[one for one in dropped if sees(one.thread_id)],
            head=head,
        )

    async def _place(self) -> None:
        """Learn where the threads are whose messages an earlier run has left."""
        for thread_id in sorted(self._unplaced):
            try:
                await self._way.sight.thread(_OWNER, thread_id)
            except CodexUnavailable:
                return  # the next one who asks
            except Refusal:
                pass  # it is there for nobody
            self._unplaced.discard(thread_id)

    async def delete(
        self, caller: Caller, params: QueueDeleteParams, flight: Flight
    ) -> QueueDeleteResult:
        """Take a message back. Raises: NotFound, Conflict (queue)."""
        check_alive(caller)
        row = self._backlog.book.get(params.queue_id)
        if row is None or not self._way.sight.sees(caller, row.thread_id):
            raise _not_there(params.queue_id)
        if row.queue_id in self._backlog.delivering:
            raise Conflict(
                "This message is being sent right now; interrupt its turn instead.",
                data={"what": "queue"},
            )
        self._backlog.book.take(row.queue_id)
        self._backlog.tell(row.thread_id)
        with trio.move_on_after(ACT_S, shield=True):
            await self._way.ledger.hand(flight)
        # However long that took: what is told to be forgotten is forgotten in the end.
        with trio.move_on_after(ACT_S, shield=True):
            await self._backlog.forget([row.queue_id])
            await self._way.ledger.done(flight, QueueDeleteResult(), None)
        return QueueDeleteResult()

    async def deleted(
        self, _caller: Caller, params: QueueDeleteParams, _row: KeyRow
    ) -> Settled[QueueDeleteResult]:
        """A `queue/delete`: it waits no more, and was not sent instead."""
        if self._backlog.book.get(params.queue_id) is not None:
            return Settled()
        if await self._way.ledger.is_used(params.queue_id):
            return Settled()  # as a key: its delivery was begun
        return Settled(result=QueueDeleteResult())


def _not_there(queue_id: str) -> NotFound:
    return NotFound(
        "No such message waits: it was sent, dropped or taken back. "
        "`threadgate queue list` shows those that do.",
        data={"kind": "queue", "id": queue_id},
    )
