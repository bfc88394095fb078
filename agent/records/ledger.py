"""One act a request key, one outcome for all who ask with it. Trio shell over `store`.

PROTOCOL.md section 3 (Request keys). Repeats of a running call wait for it and get what
it got. What the disk refuses to take down is kept in memory, so that a full disk cannot
turn a done act into one that may be done again.
"""

import hashlib
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Generic, TypeVar

import trio

from adapter.errors import AdapterError
from agent.access.scopes import Caller
from agent.errors import AuditUnavailableError, StoreFullError, StoreUnavailableError
from agent.limits import OUTCOME_BYTES, SETTLE_S, UNSAVED
from agent.mutations.refusals import outcome_unknown, storage_failed
from agent.offload import Runner, in_thread
from agent.records.ages import Ages, Instant
from agent.records.audit import Audit
from agent.records.store import UNNAMED_IS_UNDONE, KeyRow, RowState, Store
from transport.errors import Conflict, OutcomeUnknown, Overloaded, Refusal
from transport.protocol.base import (
    MutationParams,
    Params,
    WireModel,
    thread_of,
)
from transport.protocol.methods import Method

R = TypeVar("R", bound=WireModel)
Key = tuple[str, str]

_NOT_SEEN: Final = (AdapterError, Refusal, StoreUnavailableError)
_NOT_WRITTEN: Final = (StoreUnavailableError, AuditUnavailableError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled(Generic[R]):
    """What shows of an act of unknown outcome. No `result`: it stays unknown.

    `turn_id`: of the turn that it started. `new_turns`: how many there are since.
    """

    result: R | None = None
    turn_id: str | None = None
    new_turns: int | None = None


Settle = Callable[[KeyRow], Awaitable[Settled[R]]]


@dataclass(slots=True, eq=False)
class Flight:
    """A keyed call that runs now. `row` is what its ledger row says, `asked` what it
    says before anything is known of the act. `ending`: the act only ends something, so
    it happens even where neither audit nor row can be written."""

    row: KeyRow
    ending: bool = False
    asked: KeyRow = field(init=False)
    landed: trio.Event = field(default_factory=trio.Event)
    result: WireModel | None = None
    refusal: Refusal | None = None
    handed: bool = False

    def __post_init__(self) -> None:
        """Nothing is known yet."""
        self.asked = self.row

    @property
    def key(self) -> Key:
        """The device and its request key."""
        return self.row.device, self.row.key


def digest(method: str, params: Params) -> str:
    """Return what makes two calls the same: method and params, key and patience aside."""
    values = params.wire()
    for name in ("requestKey", "waitMs"):
        values.pop(name, None)
    canonical = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{method}\0{canonical}".encode()).hexdigest()


class Ledger:
    """All request keys: those in flight, those on disk. `clocks`: what they say now."""

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
        self._flights: dict[Key, Flight] = {}
        self._unsaved: dict[Key, KeyRow | None] = {}
        self._catching_up = trio.Lock()

    async def once(
        self,
        caller: Caller,
        method: Method[Any, R],
        params: MutationParams,
        *,
        act: Callable[[Flight], Awaitable[R]],
        ending: bool = False,
        settle: Settle[R] | None = None,
        shown: Callable[[KeyRow], Awaitable[None]] | None = None,
    ) -> R:
        """Run `act` unless its key has run already; return the one outcome.

        `settle`: looks whether an act of unknown outcome has happened after all, which
        is then its outcome. `shown`: raises where its thread does not exist (any more)
        for who asks; nothing else stands between a repeat and its answer.

        Raises: Conflict (requestKey) for other params, OutcomeUnknown, Overloaded where
        the device has no room for one more row (but `ending`), what `act` raises.
        """
        row = self._row(caller, method.name, params)
        while (other := self._flights.get((row.device, row.key))) is not None:
            _check_same(other.row, row)
            await other.landed.wait()
            if (landed := _landed(other, method.result)) is not None:
                return landed
        flight = self._flights[row.device, row.key] = Flight(row, ending)
        try:
            result = await self._flown(flight, method.result, act, settle, shown)
        except Refusal as refusal:
            flight.refusal = refusal
            raise
        else:
            flight.result = result
            return result
        finally:
            del self._flights[flight.key]
            flight.landed.set()

    def _row(self, caller: Caller, method: str, params: MutationParams) -> KeyRow:
        return KeyRow(
            device=caller.device_id,
            key=params.request_key,
            digest=digest(method, params),
            method=method,
            state=RowState.HANDED,
            thread=thread_of(params),
            last_turn=None,
            turn=None,
            outcome=None,
            at=self.ages().least,
        )

    async def _flown(
        self,
        flight: Flight,
        result: type[R],
        act: Callable[[Flight], Awaitable[R]],
        settle: Settle[R] | None,
        shown: Callable[[KeyRow], Awaitable[None]] | None,
    ) -> R:
        known = await self._find(flight)
        if known is None:
            await self._check_room(flight)
            return await self._acted(flight, act, settle)
        _check_same(known, flight.row)
        if shown is not None:
            await shown(known)
        return await self._repeated(flight, known, result, settle)

    async def _acted(
        self,
        flight: Flight,
        act: Callable[[Flight], Awaitable[R]],
        settle: Settle[R] | None,
    ) -> R:
        try:
            return await act(flight)
        except OutcomeUnknown:
            if settle is None or flight.row.state is not RowState.UNKNOWN:
                raise
        return await self._settled(flight, flight.row, settle)

    async def _repeated(
        self,
        flight: Flight,
        known: KeyRow,
        result: type[R],
        settle: Settle[R] | None,
    ) -> R:
        if known.state is RowState.DONE and known.outcome is not None:
            return result.model_validate_json(known.outcome)
        if settle is None:
            raise outcome_unknown(known.key, known.method, known.thread)
        return await self._settled(flight, known, settle)

    async def _settled(self, flight: Flight, known: KeyRow, settle: Settle[R]) -> R:
        """Look once, and write down what shows. Raises: OutcomeUnknown."""
        found: Settled[R] = Settled()
        with trio.move_on_after(SETTLE_S), suppress(*_NOT_SEEN):
            found = await settle(known)
        if found.result is None:
            raise outcome_unknown(
                known.key, known.method, known.thread, new_turns=found.new_turns
            )
        flight.row = known
        await self.done(flight, found.result, found.turn_id)
        return found.result

    async def _find(self, flight: Flight) -> KeyRow | None:
        async with self._catching_up:
            pass  # what is being written about this key just now is on the disk then
        if flight.key in self._unsaved:
            return self._unsaved[flight.key]
        try:
            return await self._run(partial(self._store.find, *flight.key))
        except StoreUnavailableError as exc:
            raise storage_failed("ledger") from exc

    async def _check_room(self, flight: Flight) -> None:
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

    async def hand(self, flight: Flight, event: str) -> None:
        """Write audit and row, durable when this returns: the act may begin.

        Raises: Internal, Overloaded, unless it is `ending`; then there is no row.
        """
        row = flight.row
        fields = {"device": row.device, "thread": row.thread, "key": row.key}
        if flight.ending:
            self._audit.note(event, **fields)
        work = partial(self._hand, row, event, fields, audited=flight.ending)
        try:
            await self._run(work)
        except _NOT_WRITTEN as exc:
            if not flight.ending:
                raise _not_written(exc) from exc
            if not isinstance(exc, StoreFullError):  # else it goes without a row
                self._keep_unsaved(flight.key, row)
        else:
            self._unsaved.pop(flight.key, None)
        flight.handed = True

    async def catch_up(self) -> None:
        """Write what a full disk did not take, as far as it goes now."""
        for key, row in list(self._unsaved.items()):
            async with self._catching_up:
                if key in self._flights:
                    continue  # it has its own outcome soon
                work = partial(self._store.drop, *key)
                if row is not None:
                    work = partial(self._store.put, row)
                try:
                    await self._run(work)
                except StoreFullError:
                    pass  # it ended something; its device has no room for its row by now
                except StoreUnavailableError:
                    return
                if self._unsaved.get(key) is row:
                    self._unsaved.pop(key, None)

    def _keep_unsaved(self, key: Key, row: KeyRow | None) -> None:
        """Hold what the disk did not take. Where it is let go, the disk says `handed`:
        then it reads as unknown, and is not done again."""
        self._unsaved.pop(key, None)
        self._unsaved[key] = row
        while len(self._unsaved) > UNSAVED:
            del self._unsaved[next(iter(self._unsaved))]

    def _hand(
        self, row: KeyRow, event: str, fields: dict[str, str | None], *, audited: bool
    ) -> None:
        if not audited:
            self._audit.record(event, **fields)
        self._store.drop(row.device, row.key)  # what a full disk once kept us from
        self._store.hand(row)

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
        flight.row = self._as_done(flight.row, result, turn_id)
        await self._settle(flight, partial(self._store.put, flight.row), flight.row)

    def _as_done(self, row: KeyRow, result: WireModel, turn_id: str | None) -> KeyRow:
        outcome = result.model_dump_json(by_alias=True, exclude_none=True)
        if len(outcome) > OUTCOME_BYTES:
            outcome = _without_items(result)
        at = self.ages().least
        return replace(row, state=RowState.DONE, turn=turn_id, outcome=outcome, at=at)

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
        row = self._as_done(flight.row, result, None)
        fields = {"device": row.device, "thread": row.thread, "key": row.key}

        def work() -> None:
            self._audit.record(event, **fields)
            self._store.drop(*flight.key)  # what a full disk once kept us from
            store(row)

        try:
            await self._run(work)
        except _NOT_WRITTEN as exc:
            raise _not_written(exc) from exc
        self._unsaved.pop(flight.key, None)
        flight.row = row

    async def unknown(self, flight: Flight) -> None:
        """Nobody knows whether it happened; it will never be sent again."""
        flight.row = replace(flight.row, state=RowState.UNKNOWN)
        await self._settle(flight, partial(self._store.put, flight.row), flight.row)

    async def drop(self, flight: Flight) -> None:
        """It certainly did not happen: the key is free again, for this call too."""
        await self._settle(flight, partial(self._store.drop, *flight.key), None)
        flight.row, flight.handed = flight.asked, False

    async def _settle(
        self, flight: Flight, work: Callable[[], None], row: KeyRow | None
    ) -> None:
        try:
            await self._run(work)
        except StoreFullError:
            self._unsaved.pop(
                flight.key, None
            )  # it is `ending`, and goes without a row
        except StoreUnavailableError:
            self._keep_unsaved(flight.key, row)
        else:
            self._unsaved.pop(flight.key, None)

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


def _check_same(one: KeyRow, other: KeyRow) -> None:
    if one.digest != other.digest:
        raise Conflict(
            "This request key was used for something else. Use a new key for a new act.",
            data={"what": "requestKey"},
        )


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


def _landed(flight: Flight, result: type[R]) -> R | None:
    """Return or raise what the first call got; `None`: it ended without a trace."""
    if flight.refusal is not None:
        first = flight.refusal
        raise type(first)(
            first.message,
            data=first.data,
            retryable=first.retryable,
            retry_after_ms=first.retry_after_ms,
        )
    return None if flight.result is None else _as(flight.result, result)


def _as(value: WireModel, result: type[R]) -> R:
    assert isinstance(value, result)
    return value


def _without_items(result: WireModel) -> str:
    values = result.model_dump(
        by_alias=True, exclude_none=True, exclude={"turn": {"items"}}
    )
    return json.dumps(values)
