"""What is on record of every keyed act, and written when. Trio shell over `store`.

PROTOCOL.md section 3 (Request keys). Who asks with a key comes by `request_keys`; what a
full disk does not take is in `unsaved`.
"""

from collections.abc import Callable, Container
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from agent.errors import AuditUnavailableError, StoreFullError, StoreUnavailableError
from agent.mutations.refusals import storage_failed
from agent.offload import Runner, in_thread
from agent.records.ages import Ages, Instant
from agent.records.audit import Audit
from agent.records.flight import Flight
from agent.records.key_row import UNNAMED_IS_UNDONE, Key, KeyRow, RowState, done_row
from agent.records.store import Store
from agent.records.unsaved import Unsaved
from transport.errors import Overloaded, Refusal
from transport.protocol.base import WireModel

_NOT_WRITTEN: Final = (StoreUnavailableError, AuditUnavailableError)


class Ledger:
    """The rows of all request keys. `clocks`: what they say now."""

    def __init__(
        self,
        store: Store,
        audit: Audit,
        *,
        clocks: Callable[[], Instant],
        run: Runner = in_thread,
    ) -> None:
        """Raises: StoreUnavailableError."""
        self._store = store
        self._audit = audit
        self._clocks = clocks
        self._run = run
        self._ages = store.ages() or Ages.begin(clocks())
        self._unsaved = Unsaved(store, run=run)

    # before the act

    async def find(self, flight: Flight) -> KeyRow | None:
        """Return what is on record of its key. Raises: Internal."""
        try:
            return await self._unsaved.find(flight.key)
        except StoreUnavailableError as exc:
            raise storage_failed("ledger") from exc

    async def check_room(self, flight: Flight) -> None:
        """Refuse before anything was begun what would find no room for its row."""
        if flight.ending:
            return
        row = flight.row
        try:
            await self._run(
                partial(self._store.check_room, row.device, row.key, row.at)
            )
        except StoreUnavailableError as exc:
            raise _not_written(exc) from exc

    async def hand(self, flight: Flight) -> None:
        """Write audit and row, durable when this returns: the act may begin.

        Raises: Internal, Overloaded, unless it is `ending`; then there is no row.
        """
        row = flight.row
        try:
            await self._run(partial(self._hand, row, ending=flight.ending))
        except _NOT_WRITTEN as exc:
            if not flight.ending:
                raise _not_written(exc) from exc
            if not isinstance(exc, StoreFullError):  # else it goes without a row
                self._unsaved.keep(flight.key, row)
        else:
            self._unsaved.saved(flight.key)
        flight.handed = True

    def _hand(self, row: KeyRow, *, ending: bool) -> None:
        write_down = self._audit.note if ending else self._audit.record
        write_down(row.method, **_fields(row))
        self._store.drop(row.device, row.key)  # what a full disk once kept us from
        self._store.hand(row)

    # what comes of it

    async def note_thread(self, flight: Flight, thread_id: str) -> None:
        """Codex has told the id of the thread that this act makes.

        Raises: Internal where the act must not go on without that on the disk.
        """
        flight.row = replace(flight.row, thread=thread_id)
        try:
            await self._run(partial(self._store.put, flight.row))
        except StoreUnavailableError as exc:
            if flight.row.method == UNNAMED_IS_UNDONE:
                raise storage_failed("ledger") from exc
            # Else the row says unknown without it, too.

    async def done(
        self, flight: Flight, result: WireModel, turn_id: str | None = None
    ) -> None:
        """Store the answer for repeats; `turn_id`: of the turn that the act started."""
        at = self.ages().least
        flight.row = done_row(flight.row, result, turn=turn_id, at=at)
        await self._unsaved.write(flight.key, flight.row)

    async def keep(
        self,
        flight: Flight,
        event: str,
        result: WireModel,
        store: Callable[[KeyRow], None],
    ) -> None:
        """An act of ours alone: it and its answer are on the disk together, or neither.

        `store` writes both, in one transaction. Raises: Internal, Overloaded.
        """
        row = done_row(flight.row, result, turn=None, at=self.ages().least)

        def work() -> None:
            self._audit.record(event, **_fields(row))
            self._store.drop(*flight.key)  # what a full disk once kept us from
            store(row)

        try:
            await self._run(work)
        except _NOT_WRITTEN as exc:
            raise _not_written(exc) from exc
        self._unsaved.saved(flight.key)
        flight.row = row

    async def unknown(self, flight: Flight) -> None:
        """Nobody knows whether it happened; it will never be sent again."""
        flight.row = replace(flight.row, state=RowState.UNKNOWN)
        await self._unsaved.write(flight.key, flight.row)

    async def drop(self, flight: Flight) -> None:
        """It certainly did not happen: the key is free again, for this call too."""
        await self._unsaved.write(flight.key, None)
        flight.row, flight.handed = flight.asked, False

    async def catch_up(self, flying: Container[Key]) -> None:
        """Write what a full disk did not take, as far as it goes now."""
        await self._unsaved.catch_up(flying)

    # what is asked of all of them

    async def key_is_shared(self, row: KeyRow) -> bool:
        """Whether another device has sent to the same thread with the same key."""
        return await self._run(partial(self._store.key_is_shared, row))

    async def is_used(self, key: str) -> bool:
        """Whether any device has begun anything with this key."""
        return await self._run(partial(self._store.is_used, key))

    async def is_ours(self, thread_id: str, turn_id: str) -> bool:
        """Whether a turn was started through this ledger."""
        try:
            return await self._run(partial(self._store.knows_turn, thread_id, turn_id))
        except StoreUnavailableError:
            return False

    async def has_unknown(self, thread_id: str) -> bool:
        """Whether some act on this thread was never answered."""
        try:
            return await self._run(partial(self._store.has_unknown, thread_id))
        except StoreUnavailableError:
            return False

    # their age

    def ages(self) -> Ages:
        """Return how old things are to be taken for now; no jump of a clock is in it."""
        self._ages = self._ages.until(self._clocks())
        return self._ages

    async def prune(self) -> None:
        """Forget what is past its time, and write down how late it is."""
        ages = self.ages()
        with suppress(StoreUnavailableError):
            await self._run(partial(self._store.prune, ages.least))
            await self._run(partial(self._store.keep_ages, ages))


def _fields(row: KeyRow) -> dict[str, str | None]:
    """Return what the audit log says of an act."""
    return {"device": row.device, "thread": row.thread, "key": row.key}


def _not_written(exc: Exception) -> Refusal:
    if isinstance(exc, StoreFullError):
        return _full(exc)
    audit = isinstance(exc, AuditUnavailableError)
    return storage_failed("audit log" if audit else "ledger")


def _full(exc: StoreFullError) -> Overloaded:
    whose = "this device has" if exc.of_one else "all devices together have"
    return Overloaded(
        f"As many changes as {whose} are kept on record for a day already ({exc.limit}), "
        "so that none is made twice. The oldest makes room when its day is over.",
        data={"limit": exc.limit},
        retry_after_ms=exc.wait_ms,
    )
