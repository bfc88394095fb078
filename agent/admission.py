"""The one door for every mutation. Trio shell. PROTOCOL.md section 3, "The way".

Scope and ceiling → request key → look → newest turn by the reader → writer: start, look,
load → effective settings → newest turn again through the writer → `handed` on the disk →
look → act → outcome on the disk → answer. Every no is typed, and leaves nothing behind:
no row, no writer. From `handed` on the act is carried to its recorded end (`carry`).
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

import trio

from adapter.errors import AdapterError, CodexRefusedError
from adapter.runtime import Emit, Emitted, Guard, Loaded, NewThread, ThreadWriter
from agent.carry import Carrier, Sent
from agent.gatekeeper import GateKeeper
from agent.lease import Lease
from agent.lease_pool import LeasePool
from agent.ledger import Flight, Ledger
from agent.limits import LOCK_POLL_S, OURS_KEPT, TEXT_INPUT
from agent.newest_turn import NewestTurns, check_expected, check_idle, check_pending
from agent.refusals import failed_before, is_lock, owned_elsewhere, running
from agent.scopes import (
    Caller,
    check_access,
    check_alive,
    check_settings,
    check_wishes,
)
from agent.sight import Sight
from agent.supervisor import Supervisor
from agent.thread_locks import ThreadLocks
from agent.writers import Watch
from transport.errors import (
    CodexUnavailable,
    NotFound,
    Refusal,
    ThreadOwnedElsewhere,
    TooLarge,
)
from transport.protocol.base import WireModel
from transport.protocol.events import Notice, NoticeLevel
from transport.protocol.methods import THREAD_START, TURN_INTERRUPT, TURN_START
from transport.protocol.threads import ThreadStartParams, ThreadStartResult
from transport.protocol.turns import (
    TextInput,
    Turn,
    TurnInterruptParams,
    TurnResult,
    TurnStartParams,
    TurnStartResult,
)

R = TypeVar("R", bound=WireModel)
_STARTED: Final = "started"
_NOT_RUNNING: Final = "This turn does not run (any more); nothing was stopped."


class Admission:
    """`turn/start`, `thread/start` and `turn/interrupt`, from any caller."""

    def __init__(
        self,
        *,
        supervisor: Supervisor,
        keeper: GateKeeper,
        pool: LeasePool,
        sight: Sight,
        watch: Watch,
        ledger: Ledger,
        emit: Emit,
        now_ms: Callable[[], int],
    ) -> None:
        self._keeper = keeper
        self._pool = pool
        self._sight = sight
        self._watch = watch
        self._ledger = ledger
        self._emit = emit
        self._now_ms = now_ms
        self._locks = ThreadLocks()
        self._carrier = Carrier(ledger=ledger, pool=pool, now_ms=now_ms)
        self._newest = NewestTurns(
            supervisor=supervisor, pool=pool, ledger=ledger, now_ms=now_ms
        )
        self._starters: dict[str, str] = {}  # turn → device

    # the three methods

    async def start_turn(
        self, caller: Caller, params: TurnStartParams
    ) -> TurnStartResult:
        """Continue a thread. Raises: Refusal."""
        check_access(caller, TURN_START)
        _check_size(params.input)
        await self._sight.thread(caller, params.thread_id)

        async def attempt(flight: Flight) -> TurnStartResult:
            async with self._locks.holding(params.thread_id):
                return await self._turn(caller, params, flight)

        async def act(flight: Flight) -> TurnStartResult:
            return await self._patiently(
                params.wait_ms, params.thread_id, lambda: attempt(flight)
            )

        return await self._ledger.once(
            caller,
            TURN_START.name,
            params,
            key=params.request_key,
            result=TurnStartResult,
            act=act,
        )

    async def start_thread(
        self, caller: Caller, params: ThreadStartParams
    ) -> ThreadStartResult:
        """Make a thread with its first turn, as one act. Raises: Refusal."""
        check_access(caller, THREAD_START)
        _check_size(params.input)
        check_wishes(caller, sandbox=params.sandbox, policy=params.approval_policy)
        folder = await self._sight.folder(caller, params.cwd)

        async def act(flight: Flight) -> ThreadStartResult:
            return await self._patiently(
                params.wait_ms,
                None,
                lambda: self._thread(caller, params, folder, flight),
            )

        return await self._ledger.once(
            caller,
            THREAD_START.name,
            params,
            key=params.request_key,
            result=ThreadStartResult,
            act=act,
        )

    async def interrupt(
        self, caller: Caller, params: TurnInterruptParams
    ) -> TurnResult:
        """Stop a turn that a writer of ours runs; the gate may be closed."""
        check_access(caller, TURN_INTERRUPT)
        await self._sight.thread(caller, params.thread_id)

        async def act(flight: Flight) -> TurnResult:
            return await self._stop(caller, params, flight)

        return await self._ledger.once(
            caller,
            TURN_INTERRUPT.name,
            params,
            key=params.request_key,
            result=TurnResult,
            act=act,
        )

    async def stop_turns_of(self, device_id: str) -> list[str]:
        """Interrupt what this device started (`revoke --stop`); return the turns."""
        stopped: list[str] = []
        for lease in self._pool.held():
            turn_id = lease.writer.running_turn_id if lease.writer else None
            if turn_id is None or self._starters.get(turn_id) != device_id:
                continue
            with lease.used() as writer:
                try:
                    await writer.interrupt(turn_id)
                except (AdapterError, Refusal):
                    continue  # it has ended by itself, or its process has
            stopped.append(turn_id)
        return stopped

    # patience

    async def _patiently(
        self, wait_ms: int, thread_id: str | None, attempt: Callable[[], Awaitable[R]]
    ) -> R:
        """Try again while the client has patience. No lock is held in between."""
        deadline = trio.current_time() + wait_ms / 1_000
        while True:
            try:
                return await attempt()
            except (CodexUnavailable, ThreadOwnedElsewhere) as refusal:
                if not refusal.retryable or trio.current_time() >= deadline:
                    raise
                with trio.move_on_at(deadline) as patience:
                    await self._wait_for_change(refusal, thread_id)  # noqa: ASYNC120
                if patience.cancelled_caught:
                    raise

    async def _wait_for_change(self, refusal: Refusal, thread_id: str | None) -> None:
        # At least one pause: what refused may not be what we can see from here.
        await trio.sleep(LOCK_POLL_S)
        if isinstance(refusal, CodexUnavailable):
            await self._keeper.wait_open()
            return
        assert thread_id is not None
        while self._watch.holders([thread_id]):  # noqa: ASYNC110 - nothing tells of a foreign lock's end
            await trio.sleep(LOCK_POLL_S)

    # turn/start

    async def _turn(
        self, caller: Caller, params: TurnStartParams, flight: Flight
    ) -> TurnStartResult:
        check_alive(caller)
        self._keeper.check(params.thread_id)
        lease = self._pool.lease_of(params.thread_id)
        if lease is not None:
            _check_root(lease, params.thread_id)
            with lease.used():
                if await self._fits(caller, params, lease, flight):
                    return await self._send_turn(caller, params, lease, flight)
            await self._pool.end(lease)
        lease = await self._fresh(caller, params, flight)
        with lease.used():
            return await self._send_turn(caller, params, lease, flight)

    async def _fits(
        self, caller: Caller, params: TurnStartParams, lease: Lease, flight: Flight
    ) -> bool:
        """Whether a held writer knows all that is on the disk; else it is too old.

        Raises: Conflict (running, lastTurn), Forbidden.
        """
        assert lease.writer is not None
        assert lease.loaded is not None
        check_idle(lease)
        newest = await self._newest.read(params.thread_id)
        told = newest.id if newest else None
        known = lease.writer.last_turn_id
        check_idle(lease)
        check_expected(params.expected_last_turn_id, newest, told, known)
        if told != known:
            if told is not None and not lease.writer.knows_turn(told):
                self._notice_foreign(params.thread_id)
            return False
        check_settings(caller, lease.loaded.settings, self._inside(caller))
        flight.row = replace(flight.row, last_turn=told)
        return True

    async def _fresh(
        self, caller: Caller, params: TurnStartParams, flight: Flight
    ) -> Lease:
        """Return a lease that was loaded just now. Any failure leaves no writer."""
        thread_id, expected = params.thread_id, params.expected_last_turn_id
        newest = await self._newest.read(thread_id)
        check_expected(expected, newest, newest.id if newest else None)
        pending = await self._newest.pending(thread_id)
        check_pending(pending, allowed=params.allow_pending)
        guard = self._guard(caller, thread_id)
        lease = await self._open(thread_id, guard)
        try:
            loaded = await self._resume(lease, thread_id, guard)
            check_settings(caller, loaded.settings, self._inside(caller))
            if await self._newest.check_loaded(thread_id, loaded, newest, expected):
                self._notice_recovered(thread_id)
        except BaseException as exc:  # Cancelled too: nothing may be left
            lost = isinstance(exc, ThreadOwnedElsewhere)
            await self._carrier.leave_nothing(lease, lost=lost)  # noqa: ASYNC102 - shields itself, with a deadline
            raise
        lease.has_goal = pending.goal is not None
        last = loaded.last_turn.id if loaded.last_turn else None
        flight.row = replace(flight.row, last_turn=last)
        self._pool.hold(lease, loaded)
        return lease

    async def _resume(self, lease: Lease, thread_id: str, guard: Guard) -> Loaded:
        try:
            return await _writer(lease).resume(thread_id, guard=guard)
        except AdapterError as exc:
            if is_lock(exc):
                holder = self._watch.holders([thread_id]).get(thread_id)
                raise owned_elsewhere(thread_id, holder) from exc
            raise self._before(exc, thread_id) from exc

    async def _send_turn(
        self, caller: Caller, params: TurnStartParams, lease: Lease, flight: Flight
    ) -> TurnStartResult:
        check_idle(lease)

        async def steps(sent: Sent) -> TurnStartResult:
            await self._ledger.hand(flight, TURN_START.name)
            turn = await _writer(lease).start_turn(
                _texts(params.input),
                client_key=params.request_key,
                guard=sent.behind(self._guard(caller, params.thread_id)),
            )
            result = TurnStartResult(turn=turn, delivery=_STARTED)
            await self._record(caller, flight, result, turn)
            return result

        return await self._carrier.carry(flight, lease, steps)

    # thread/start

    async def _thread(
        self, caller: Caller, params: ThreadStartParams, folder: str, flight: Flight
    ) -> ThreadStartResult:
        check_alive(caller)
        self._keeper.check()
        guard = self._guard(caller)
        lease = await self._open(None, guard)

        async def steps(sent: Sent) -> ThreadStartResult:
            await self._ledger.hand(flight, THREAD_START.name)
            writer = _writer(lease)
            # Without a turn no thread is stored: until then nothing has happened.
            new = _new_thread(params, folder)
            loaded = await writer.start_thread(new, guard=guard)
            check_settings(caller, loaded.settings, self._inside(caller))
            await self._ledger.note_thread(flight, loaded.thread.id)
            self._sight.learn([loaded.thread])
            self._pool.hold(lease, loaded)
            turn = await writer.start_turn(
                _texts(params.input),
                client_key=params.request_key,
                guard=sent.behind(guard),
            )
            thread = self._pool.dressed(lease, lease.thread or loaded.thread)
            result = ThreadStartResult(
                thread=thread.model_copy(update={"last_turn_id": turn.id}), turn=turn
            )
            await self._record(caller, flight, result, turn)
            return result

        with lease.used():
            return await self._carrier.carry(flight, lease, steps)

    # turn/interrupt

    async def _stop(
        self, caller: Caller, params: TurnInterruptParams, flight: Flight
    ) -> TurnResult:
        check_alive(caller)
        lease = self._pool.lease_of(params.thread_id)
        if lease is None or not _writer(lease).knows_turn(params.turn_id):
            raise self._not_ours(params.thread_id)

        async def steps(sent: Sent) -> TurnResult:
            await self._ledger.hand(flight, TURN_INTERRUPT.name, ending=True)
            check_alive(caller)
            sent.is_out = True
            try:
                turn = await _writer(lease).interrupt(params.turn_id)
            except (NotFound, CodexRefusedError) as exc:
                raise running(None, _NOT_RUNNING) from exc
            result = TurnResult(turn=turn)
            await self._ledger.done(flight, result, turn.id)
            return result

        with lease.used():
            return await self._carrier.carry(flight, lease, steps, ends_writer=False)

    def _not_ours(self, thread_id: str) -> Refusal:
        holder = self._watch.holders([thread_id]).get(thread_id)
        if holder is not None:
            return owned_elsewhere(thread_id, holder)
        return running(None, _NOT_RUNNING)

    # what they share

    def _guard(self, caller: Caller, thread_id: str | None = None) -> Guard:
        """Return the last look: the device may still, and nobody else writes."""

        def guard() -> None:
            check_alive(caller)
            self._keeper.check(thread_id)

        return guard

    def _inside(self, caller: Caller) -> Callable[[str], bool]:
        return lambda cwd: self._sight.roots.contains(caller, cwd)

    async def _open(self, thread_id: str | None, guard: Guard) -> Lease:
        try:
            return await self._pool.open(thread_id, guard=guard)
        except AdapterError as exc:
            raise self._before(exc, thread_id or "") from exc

    def _before(self, exc: AdapterError, thread_id: str) -> Refusal:
        return failed_before(exc, thread_id=thread_id, at_ms=self._now_ms())

    async def _record(
        self, caller: Caller, flight: Flight, result: WireModel, turn: Turn
    ) -> None:
        self._starters[turn.id] = caller.device_id
        for old in list(self._starters)[: -OURS_KEPT or None]:
            del self._starters[old]
        await self._ledger.done(flight, result, turn.id)

    def _notice_foreign(self, thread_id: str) -> None:
        self._notice(
            "foreignTurn",
            "Another program has continued this thread meanwhile. It is loaded anew, so "
            "that the next turn knows what was added.",
            thread_id,
        )

    def _notice_recovered(self, thread_id: str) -> None:
        self._notice(
            "turnRecovered",
            "A turn that this Agent had started before a crash shows again as the newest "
            "one; it was interrupted.",
            thread_id,
        )

    def _notice(self, code: str, message: str, thread_id: str) -> None:
        data = Notice(
            level=NoticeLevel.INFO, code=code, message=message, thread_id=thread_id
        )
        self._emit(Emitted(at=self._now_ms(), thread_id=thread_id, data=data))


def _writer(lease: Lease) -> ThreadWriter:
    assert lease.writer is not None
    return lease.writer


def _check_root(lease: Lease, thread_id: str) -> None:
    if lease.key != thread_id:
        raise running(
            None,
            "This is a sub-agent's thread; its parent is being worked in. Send to the "
            f"parent thread ({lease.key}).",
        )


def _texts(given: Sequence[TextInput]) -> list[str]:
    return [one.text for one in given]


def _check_size(given: Sequence[TextInput]) -> None:
    if sum(len(one.text.encode()) for one in given) > TEXT_INPUT:
        raise TooLarge(
            f"A message may have at most {TEXT_INPUT} bytes.",
            data={"field": "input", "limit": TEXT_INPUT},
        )


def _new_thread(params: ThreadStartParams, folder: str) -> NewThread:
    return NewThread(
        cwd=folder,
        name=params.name,
        model=params.model,
        effort=params.effort,
        sandbox=params.sandbox,
        approval_policy=params.approval_policy,
    )
