"""What all parts of the door stand on: runtime, gate, writers, sight. Trio shell, no decisions."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import trio

from adapter.errors import AdapterError
from adapter.runtime.events import Emit
from adapter.runtime.reader import PendingWork
from adapter.runtime.runtime import Runtime
from agent.access.roots import Roots
from agent.access.sight import Sight
from agent.app_servers.lease_pool import LeasePool
from agent.app_servers.lease_registry import LeaseRegistry
from agent.app_servers.lifecycle import Lifecycle
from agent.app_servers.settling import Settling
from agent.app_servers.supervisor import Supervisor
from agent.config import Config
from agent.gate.engines import Programs
from agent.gate.gatekeeper import GateKeeper
from agent.gate.writers import Watch, WriterWatch
from agent.mutations.thread_locks import ThreadLocks
from agent.offload import Runner
from agent.reading.standing import Others, mode_of
from agent.records.ages import Instant
from agent.records.audit import Audit
from agent.records.reserve import Reserve
from agent.records.store import Store
from transport.errors import Refusal
from transport.protocol.threads import ThreadMode


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What the door is built of; `build_door` says what each is."""

    config: Config
    runtime: Runtime
    emit: Emit
    head: Callable[[], int]
    now_ms: Callable[[], int]
    handler_nursery: trio.Nursery
    store: Store
    audit: Audit
    reserve: Reserve
    clocks: Callable[[], Instant]
    run: Runner


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The parts, wired. `eyes` look for foreign writers; `table`: where they are ours."""

    supervisor: Supervisor
    table: WriterWatch | None
    eyes: Watch
    keeper: GateKeeper
    leases: LeaseRegistry
    pool: LeasePool
    sight: Sight
    locks: ThreadLocks


def lay_ground(given: Given, watch: Watch | None) -> Ground:
    """Build and wire them. `watch`: another look than this machine's process table."""
    now_ms = given.now_ms
    supervisor = Supervisor(runtime=given.runtime, emit=given.emit, now_ms=now_ms)
    table = _table(given) if watch is None else None
    eyes = watch or table
    assert eyes is not None
    keeper = GateKeeper(
        watch=eyes,
        supervisor=supervisor,
        emit=given.emit,
        now_ms=now_ms,
        read_only=given.config.read_only,
    )
    _tell_keeper(supervisor, keeper, table)
    leases = LeaseRegistry(
        emit=given.emit, now_ms=now_ms, mode_of=partial(_mode_of, keeper, eyes)
    )
    return Ground(
        supervisor=supervisor,
        table=table,
        eyes=eyes,
        keeper=keeper,
        leases=leases,
        pool=_pool(given, supervisor, keeper, leases),
        sight=Sight(
            supervisor=supervisor,
            leases=leases,
            roots=Roots(),
            now_ms=now_ms,
            run=given.run,
        ),
        locks=ThreadLocks(),
    )


def _table(given: Given) -> WriterWatch:
    patterns = given.config.desktop
    return WriterWatch(
        own_pids=given.runtime.own_pids,
        home=given.config.codex_home,
        programs=Programs(apps=patterns.apps, engines=patterns.engines),
    )


def _tell_keeper(
    supervisor: Supervisor, keeper: GateKeeper, table: WriterWatch | None
) -> None:
    supervisor.on_change = partial(_runtime_changed, supervisor, keeper, table)
    if table is not None:
        supervisor.hold_s = table.settling_s
        table.on_look = keeper.saw


def _runtime_changed(
    supervisor: Supervisor, keeper: GateKeeper, table: WriterWatch | None
) -> None:
    if table is not None and supervisor.is_up and supervisor.info is not None:
        table.know(supervisor.info)
    keeper.runtime_changed()


def _pool(
    given: Given, supervisor: Supervisor, keeper: GateKeeper, leases: LeaseRegistry
) -> LeasePool:
    settling = Settling(partial(_pending, supervisor))
    lifecycle = Lifecycle(
        leases,
        runtime=given.runtime,
        keeper=keeper,
        settling=settling,
        pause_goal=partial(_pause_goal, supervisor),
        idle_s=given.config.idle_s,
    )
    return LeasePool(leases, lifecycle, settling, handler_nursery=given.handler_nursery)


async def _pending(supervisor: Supervisor, thread_id: str) -> PendingWork:
    return await supervisor.reader.pending_work(thread_id)


async def _pause_goal(supervisor: Supervisor, thread_id: str) -> None:
    try:
        await supervisor.reader.pause_goal(thread_id)
    except (AdapterError, Refusal):
        return  # the goal's turns are ours and end with their writer


def _mode_of(keeper: GateKeeper, eyes: Watch, thread_id: str) -> ThreadMode:
    """Return the mode of a thread that no writer of ours has."""
    holder = eyes.holders([thread_id]).get(thread_id)
    return mode_of(Others(holder=holder, lockless=keeper.last_look.is_crowded))
