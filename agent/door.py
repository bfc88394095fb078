"""Joins everything that stands between a caller and Codex. Trio shell, no decisions.

Who owns the tree (agent/app.py) starts, in this order: `door.supervisor.serve`,
`door.watch.serve`, `door.delivering.serve`, then opens its accept loops.
`handler_nursery` runs the writers; it is closed after every session has ended and
before the reader.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import trio

from adapter.errors import AdapterError
from adapter.runtime import Emit, PendingWork, Runtime, RuntimeEvent
from agent.access.roots import Roots
from agent.access.sight import Sight
from agent.app_servers.lease_pool import LeasePool
from agent.app_servers.offering import Offering
from agent.app_servers.supervisor import Supervisor
from agent.clocks import instant
from agent.config import Config
from agent.files.blob_files import BlobFiles
from agent.files.blobs import Blobs
from agent.files.file_search import FileSearch
from agent.files.pictures import Pictures
from agent.files.private import PrivateFolders
from agent.following.follower import Follower
from agent.gate.engines import Programs
from agent.gate.gatekeeper import GateKeeper
from agent.gate.writers import Watch, WriterWatch
from agent.mutations.admission import Acts, Admission
from agent.mutations.background_commands import BackgroundCommands
from agent.mutations.inputs import Inputs
from agent.mutations.passage import Passage
from agent.mutations.settling import Settling
from agent.mutations.taking import Taking
from agent.mutations.thread_acts import ThreadActs
from agent.mutations.thread_fork import ThreadFork
from agent.mutations.thread_goal import ThreadGoal
from agent.mutations.thread_locks import ThreadLocks
from agent.mutations.thread_revert import ThreadRevert
from agent.mutations.thread_runs import ThreadRuns
from agent.mutations.thread_settings import SettingsChange
from agent.mutations.thread_start import ThreadStart
from agent.mutations.turn_interrupt import TurnInterrupt
from agent.mutations.turn_start import TurnStart
from agent.mutations.turn_steer import TurnSteer
from agent.mutations.way import Way
from agent.offload import Runner, in_thread
from agent.queue.delivering import Delivering
from agent.queue.message_queue import MessageQueue
from agent.queue.queue_table import QueueTable
from agent.reading.approving import Approving
from agent.reading.contents import Contents
from agent.reading.kept_threads import KeptThreads
from agent.reading.output_cache import OutputCache
from agent.reading.reading import Reading
from agent.reading.standing import Others, mode_of
from agent.records.ages import Instant
from agent.records.audit import Audit
from agent.records.ledger import Ledger
from agent.records.store import Store
from transport.errors import Refusal
from transport.protocol.threads import ThreadMode


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """The parts, wired. `watch` is `None` where another look was given."""

    supervisor: Supervisor
    watch: WriterWatch | None
    keeper: GateKeeper
    pool: LeasePool
    sight: Sight
    ledger: Ledger
    reading: Reading
    approving: Approving
    admission: Admission
    acts: Acts
    delivering: Delivering
    offering: Offering
    blobs: Blobs
    pictures: Pictures
    file_search: FileSearch
    follower: Follower
    contents: Contents
    thread_acts: ThreadActs
    thread_fork: ThreadFork


def build_door(
    config: Config,
    *,
    runtime: Runtime,
    emit: Emit,
    head: Callable[[], int],
    now_ms: Callable[[], int],
    handler_nursery: trio.Nursery,
    store: Store,
    audit: Audit,
    watch: Watch | None = None,
    clocks: Callable[[], Instant] = instant,
    run: Runner = in_thread,
) -> Door:
    """Build and wire the parts; nothing runs yet. Raises: StoreUnavailableError.

    Call `store.recover()` before, when the processes of an earlier run are known dead.
    `watch`: another look at foreign writers than this machine's process table.
    """
    cache = OutputCache()
    emit = partial(_tell_both, emit, cache)

    def tell_of_store(event: RuntimeEvent) -> None:
        emit(event)
        follower.heard_of_store(event)

    supervisor = Supervisor(runtime=runtime, emit=tell_of_store, now_ms=now_ms)
    table = _watch(config, runtime) if watch is None else None
    eyes = watch or table
    assert eyes is not None
    keeper = GateKeeper(
        watch=eyes,
        supervisor=supervisor,
        emit=emit,
        now_ms=now_ms,
        read_only=config.read_only,
    )
    pool = LeasePool(
        runtime=runtime,
        emit=emit,
        handler_nursery=handler_nursery,
        keeper=keeper,
        now_ms=now_ms,
        pending=partial(_pending, supervisor),
        pause_goal=partial(_pause_goal, supervisor),
        mode_of=partial(_mode_of, keeper, eyes),
        idle_s=config.idle_s,
    )
    supervisor.on_change = partial(_runtime_changed, supervisor, keeper, table)
    if table is not None:
        supervisor.hold_s = table.settling_s
        table.on_look = keeper.saw
    sight = Sight(
        supervisor=supervisor, pool=pool, roots=Roots(), now_ms=now_ms, run=run
    )
    ledger = Ledger(store, audit, clocks=clocks, run=run)
    blobs = Blobs(
        BlobFiles(config.state_dir / "uploads"),
        now_ms=lambda: ledger.ages().most,
        now_s=lambda: clocks().up / 1_000,
        run=run,
    )
    private = PrivateFolders(codex_home=config.codex_home, state_dir=config.state_dir)
    pictures = Pictures(
        blobs=blobs,
        sight=sight,
        codex_home=config.codex_home,
        private=private,
        run=run,
    )
    locks = ThreadLocks()
    follower = Follower(
        supervisor=supervisor,
        keeper=keeper,
        pool=pool,
        sight=sight,
        watch=eyes,
        locks=locks,
        emit=emit,
        now_ms=now_ms,
    )
    pool.listen(follower.heard)
    way = Way(
        supervisor=supervisor,
        keeper=keeper,
        pool=pool,
        sight=sight,
        watch=eyes,
        ledger=ledger,
        inputs=Inputs(blobs, run=run),
        emit=tell_of_store,
        now_ms=now_ms,
        hand_over=follower.hand_over,
    )
    taking = Taking(way)
    passage = Passage(way, locks)
    turn_steer = TurnSteer(way)
    acts = Acts(
        turn_start=TurnStart(way, taking, turn_steer),
        turn_steer=turn_steer,
        turn_interrupt=TurnInterrupt(way),
        thread_start=ThreadStart(way),
        settings=SettingsChange(way, taking),
        runs=ThreadRuns(way, taking),
        revert=ThreadRevert(
            way, taking, judged=lambda thread: reading.judged([thread])[0]
        ),
        goal=ThreadGoal(way, taking, supervisor=supervisor, head=head),
        background=BackgroundCommands(way, head=head),
        queue=MessageQueue(
            QueueTable(store), way, emit=emit, head=head, now_ms=now_ms, run=run
        ),
    )
    settling = Settling(way, judged=lambda thread: reading.judged([thread])[0])
    admission = Admission(passage, acts, settling)
    delivering = Delivering(
        acts.queue,
        deliver=admission.start_turn,
        keeper=keeper,
        pool=pool,
        watch=eyes,
    )
    kept = KeptThreads(pool=pool, keeper=keeper, emit=emit, now_ms=now_ms)
    keeper.on_change = partial(_gate_changed, pool, delivering, kept)
    reading = Reading(
        supervisor=supervisor,
        keeper=keeper,
        pool=pool,
        sight=sight,
        watch=eyes,
        head=head,
        now_ms=now_ms,
        run=run,
    )
    return Door(
        supervisor=supervisor,
        watch=table,
        keeper=keeper,
        pool=pool,
        sight=sight,
        ledger=ledger,
        reading=reading,
        approving=Approving(
            pool=pool,
            keeper=keeper,
            sight=sight,
            audit=audit,
            head=head,
            now_ms=now_ms,
            run=run,
        ),
        admission=admission,
        acts=acts,
        delivering=delivering,
        offering=Offering(supervisor=supervisor, keeper=keeper, now_ms=now_ms),
        blobs=blobs,
        pictures=pictures,
        file_search=FileSearch(
            supervisor=supervisor,
            sight=sight,
            private=private,
            now_ms=now_ms,
            run=run,
        ),
        follower=follower,
        contents=Contents(
            supervisor=supervisor,
            pool=pool,
            sight=sight,
            reading=reading,
            cache=cache,
            head=head,
            now_ms=now_ms,
        ),
        thread_acts=ThreadActs(
            way, passage, judged=lambda thread: reading.judged([thread])[0]
        ),
        thread_fork=ThreadFork(way, passage, settling),
    )


def _gate_changed(pool: LeasePool, delivering: Delivering, kept: KeptThreads) -> None:
    pool.gate_changed()
    delivering.ring()
    kept.gate_changed()


def _tell_both(emit: Emit, cache: OutputCache, event: RuntimeEvent) -> None:
    """Every event goes to the clients, and its texts to who keeps them whole."""
    emit(event)
    cache.take(event)


def _runtime_changed(
    supervisor: Supervisor, keeper: GateKeeper, watch: WriterWatch | None
) -> None:
    if watch is not None and supervisor.is_up and supervisor.info is not None:
        watch.know(supervisor.info)
    keeper.runtime_changed()


def _mode_of(keeper: GateKeeper, watch: Watch, thread_id: str) -> ThreadMode:
    """Return the mode of a thread that no writer of ours has."""
    holder = watch.holders([thread_id]).get(thread_id)
    return mode_of(Others(holder=holder, lockless=keeper.last_look.is_crowded))


def _watch(config: Config, runtime: Runtime) -> WriterWatch:
    patterns = config.desktop
    return WriterWatch(
        own_pids=runtime.own_pids,
        home=config.codex_home,
        programs=Programs(apps=patterns.apps, engines=patterns.engines),
    )


async def _pause_goal(supervisor: Supervisor, thread_id: str) -> None:
    try:
        await supervisor.reader.pause_goal(thread_id)
    except (AdapterError, Refusal):
        return  # the goal's turns are ours and end with their writer


async def _pending(supervisor: Supervisor, thread_id: str) -> PendingWork:
    return await supervisor.reader.pending_work(thread_id)
