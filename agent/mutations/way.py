"""What all mutations need on their way: the last look, a writer, a record. Trio shell.

PROTOCOL.md section 3, "The way". The steps themselves: `turn_start`, `thread_start` and
`turn_interrupt`; before them all stand `admission` and `passage`.
"""

from collections.abc import Awaitable, Callable

from adapter.errors import AdapterError, ChildExitedError
from adapter.runtime.acts import Guard
from adapter.runtime.events import Emit, Emitted
from adapter.runtime.threads import Loaded, Wishes
from agent.access.scopes import Caller, check_alive
from agent.access.sight import Sight
from agent.app_servers.lease import Lease
from agent.app_servers.lease_pool import LeasePool
from agent.app_servers.lease_registry import LeaseRegistry
from agent.app_servers.supervisor import Supervisor
from agent.gate.gatekeeper import GateKeeper
from agent.gate.writers import Watch
from agent.limits import OURS_KEPT
from agent.mutations.carry import Carrier
from agent.mutations.inputs import Inputs
from agent.mutations.newest_turn import NewestTurns
from agent.mutations.refusals import (
    failed_before,
    owned_elsewhere,
    start_failed,
    writer_down,
)
from agent.records.flight import Flight
from agent.records.key_row import KeyRow
from agent.records.ledger import Ledger
from transport.errors import Overloaded, Refusal
from transport.protocol.base import WireModel
from transport.protocol.events import (
    Notice,
    NoticeLevel,
    ThreadChanged,
    ThreadReverted,
)
from transport.protocol.gateway import LeaseState, Writer
from transport.protocol.thread_acts import ThreadForkParams
from transport.protocol.threads import Thread
from transport.protocol.turns import Turn, TurnStartParams

HandOver = Callable[[str, str | None], Awaitable[None]]
"""Told a thread and its newest turn before a writer of ours works in it."""


class Way:
    """The door's parts as mutations use them; remembers who started which turn."""

    def __init__(
        self,
        *,
        supervisor: Supervisor,
        keeper: GateKeeper,
        leases: LeaseRegistry,
        pool: LeasePool,
        sight: Sight,
        watch: Watch,
        ledger: Ledger,
        inputs: Inputs,
        emit: Emit,
        now_ms: Callable[[], int],
        hand_over: HandOver | None = None,
    ) -> None:
        self._hand_over = hand_over
        self.keeper = keeper
        self.leases = leases
        self.pool = pool
        self.sight = sight
        self.watch = watch
        self.ledger = ledger
        self.inputs = inputs
        self.supervisor = supervisor
        self.carrier = Carrier(
            ledger=ledger, pool=pool, begun=self._begun, now_ms=now_ms
        )
        self.newest = NewestTurns(
            supervisor=supervisor, leases=leases, ledger=ledger, now_ms=now_ms
        )
        self._emit = emit
        self._now_ms = now_ms
        self._starters: dict[str, str] = {}  # turn → device

    async def hand_over(self, thread_id: str, newest: str | None) -> None:
        """From now on a writer of ours tells of the thread; the rest is told first."""
        if self._hand_over is not None:
            await self._hand_over(thread_id, newest)

    def guard(self, caller: Caller, thread_id: str | None = None) -> Guard:
        """Return the last look: the device may still, and nobody else writes."""

        def guard() -> None:
            check_alive(caller)
            self.keeper.check(thread_id)

        return guard

    def holder(self, thread_id: str) -> Writer | None:
        """Return the other program that has the thread, if one is known."""
        return self.watch.holders([thread_id]).get(thread_id)

    def not_ours(self, thread_id: str, otherwise: Refusal) -> Refusal:
        """Return why no writer of ours has it: another program does, or `otherwise`."""
        holder = self.holder(thread_id)
        return otherwise if holder is None else owned_elsewhere(thread_id, holder)

    def inside(self, caller: Caller) -> Callable[[str], bool]:
        """Return the test whether a folder lies inside the caller's roots."""
        return lambda cwd: self.sight.roots.contains(caller, cwd)

    async def folder(self, caller: Caller, cwd: str | None) -> str | None:
        """Return the folder that a client names, looked at; None: it names none."""
        return None if cwd is None else await self.sight.folder(caller, cwd)

    async def open(self, caller: Caller, thread_id: str | None, guard: Guard) -> Lease:
        """Start a fresh writer. Raises: Refusal; then nothing is left."""
        try:
            return await self.pool.open(thread_id, guard=guard, asker=caller.device_id)
        except Overloaded as refusal:
            raise self._shown(caller, refusal) from None
        except ChildExitedError as exc:  # it had not loaded the thread yet
            raise start_failed(exc, at_ms=self._now_ms()) from exc
        except AdapterError as exc:
            raise self.failed_before(exc, thread_id or "") from exc

    def hold(self, lease: Lease, loaded: Loaded) -> None:
        """The thread is loaded. Raises: CodexUnavailable: the writer has died since."""
        if self.leases.state(lease.key) is not LeaseState.LOADING:
            raise writer_down("it ended by itself", at_ms=self._now_ms())
        self.leases.hold(lease, loaded)

    async def first_turn(
        self, lease: Lease, loaded: Loaded, send: Callable[[], Awaitable[Turn]]
    ) -> tuple[Thread, Turn]:
        """Hold a thread that was just made, and send its first turn; return both."""
        self.sight.learn([loaded.thread])
        self.hold(lease, loaded)
        turn = await send()
        thread = self.now(lease).model_copy(update={"last_turn_id": turn.id})
        return thread, turn

    def now(self, lease: Lease) -> Thread:
        """Return a held lease's thread as it is now."""
        assert lease.thread is not None
        return self.leases.dressed(lease, lease.thread)

    def _shown(self, caller: Caller, refusal: Overloaded) -> Overloaded:
        """Name only those busy threads that exist for the caller."""
        data = dict(refusal.data)
        busy: list[str] = data.pop("threads", [])
        if seen := [one for one in busy if self.sight.sees(caller, one)]:
            data["threads"] = seen
        return Overloaded(
            refusal.message, data=data, retry_after_ms=refusal.retry_after_ms
        )

    def failed_before(self, exc: AdapterError, thread_id: str) -> Refusal:
        """Return what a client is told of an error before anything was handed in."""
        return failed_before(exc, thread_id=thread_id, at_ms=self._now_ms())

    async def record(
        self, caller: Caller, flight: Flight, result: WireModel, turn: Turn
    ) -> None:
        """Write down, durably, that the turn has started."""
        self._begun(caller.device_id, turn.id)
        await self.ledger.done(flight, result, turn.id)

    def _begun(self, device_id: str, turn_id: str) -> None:
        self._starters.setdefault(turn_id, device_id)
        for old in list(self._starters)[: -OURS_KEPT or None]:
            del self._starters[old]

    def shown(self, caller: Caller) -> Callable[[KeyRow], Awaitable[None]]:
        """Return the test whether an old act's thread still exists for the caller."""

        async def shown(row: KeyRow) -> None:
            if row.thread is not None and not self.sight.sees(caller, row.thread):
                await self.sight.thread(caller, row.thread)  # perhaps not known yet

        return shown

    def tell(self, thread: Thread) -> None:
        """Tell everybody who sees the thread how it looks now."""
        data = ThreadChanged(thread=thread)
        self._emit(Emitted(at=self._now_ms(), thread_id=thread.id, data=data))

    def tell_reverted(self, thread_id: str, last_turn_id: str) -> None:
        """Tell everybody who sees the thread that what came behind this turn is gone."""
        data = ThreadReverted(thread_id=thread_id, last_turn_id=last_turn_id)
        self._emit(Emitted(at=self._now_ms(), thread_id=thread_id, data=data))

    def starter_of(self, turn_id: str, lease: Lease) -> str | None:
        """Return the device that started this turn, or whose goal may have."""
        return self._starters.get(turn_id, lease.goal_by)

    def notice(self, code: str, message: str, thread_id: str) -> None:
        """Tell everybody who sees the thread; nothing needs to be done."""
        data = Notice(
            level=NoticeLevel.INFO, code=code, message=message, thread_id=thread_id
        )
        self._emit(Emitted(at=self._now_ms(), thread_id=thread_id, data=data))


def turn_wishes(
    params: TurnStartParams | ThreadForkParams, folder: str | None
) -> Wishes:
    """Return what a turn is to run with. `folder`: `params.cwd`, checked."""
    return Wishes(
        model=params.model, effort=params.effort, mode=params.mode, cwd=folder
    )
