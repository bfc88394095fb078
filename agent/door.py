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

from adapter.runtime.events import Emit, RuntimeEvent
from adapter.runtime.runtime import Runtime
from agent.access.sight import Sight
from agent.app_servers.lease_pool import LeasePool
from agent.app_servers.lease_registry import LeaseRegistry
from agent.app_servers.offering import Offering
from agent.app_servers.supervisor import Supervisor
from agent.approvals.approvals import Approvals
from agent.approvals.approving import Approving
from agent.approvals.kept_threads import KeptThreads
from agent.clocks import instant
from agent.config import Config
from agent.files.blob_files import BlobFiles
from agent.files.blobs import Blobs
from agent.files.file_search import FileSearch
from agent.files.pictures import Pictures
from agent.files.private import PrivateFolders
from agent.files.uploads import Uploads
from agent.following.follower import Follower
from agent.gate.gatekeeper import GateKeeper
from agent.gate.writers import Watch, WriterWatch
from agent.ground import Given, Ground, lay_ground
from agent.mutations.admission import Acts, Admission
from agent.mutations.wiring import Mutations, build_mutations, build_way
from agent.offload import Runner, in_thread
from agent.queue.backlog import Backlog
from agent.queue.delivering import Delivering
from agent.reading.contents import Contents
from agent.reading.output_cache import OutputCache
from agent.reading.reading import Reading
from agent.reading.wiring import build_readings
from agent.reading.word_search import WordSearch
from agent.records.ages import Instant
from agent.records.audit import Audit
from agent.records.ledger import Ledger
from agent.records.request_keys import RequestKeys
from agent.records.reserve import Reserve
from agent.records.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """The parts, wired. `watch` is `None` where another look was given."""

    supervisor: Supervisor
    watch: WriterWatch | None
    keeper: GateKeeper
    leases: LeaseRegistry
    pool: LeasePool
    sight: Sight
    ledger: Ledger
    reading: Reading
    approvals: Approvals
    approving: Approving
    admission: Admission
    acts: Acts
    backlog: Backlog
    keys: RequestKeys
    delivering: Delivering
    offering: Offering
    uploads: Uploads
    pictures: Pictures
    file_search: FileSearch
    follower: Follower
    contents: Contents
    words: WordSearch


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
    reserve: Reserve,
    watch: Watch | None = None,
    clocks: Callable[[], Instant] = instant,
    run: Runner = in_thread,
) -> Door:
    """Build and wire the parts; nothing runs yet. Raises: StoreUnavailableError.

    Call `store.recover()` before, when the processes of an earlier run are known dead.
    `watch`: another look at foreign writers than this machine's process table.
    """
    cache = OutputCache()
    given = Given(
        config=config,
        runtime=runtime,
        emit=partial(_tell_both, emit, cache),
        head=head,
        now_ms=now_ms,
        handler_nursery=handler_nursery,
        store=store,
        audit=audit,
        reserve=reserve,
        clocks=clocks,
        run=run,
    )
    ground = lay_ground(given, watch)
    ledger = Ledger(store, audit, clocks=clocks, run=run)
    files = BlobFiles(config.state_dir / "uploads")
    dated = partial(_age_ms, ledger)
    blobs = Blobs(files, now_ms=dated, run=run)
    readings = build_readings(given, ground, cache)
    follower = _follower(given, ground)
    way = build_way(given, ground, ledger=ledger, blobs=blobs, follower=follower)
    mutations = build_mutations(given, ground, way=way, judged=readings.judge.thread)
    private = PrivateFolders(codex_home=config.codex_home, state_dir=config.state_dir)
    return Door(
        supervisor=ground.supervisor,
        watch=ground.table,
        keeper=ground.keeper,
        leases=ground.leases,
        pool=ground.pool,
        sight=ground.sight,
        ledger=ledger,
        reading=readings.reading,
        approvals=readings.approvals,
        approving=readings.approving,
        admission=mutations.admission,
        acts=mutations.acts,
        backlog=mutations.backlog,
        keys=mutations.keys,
        delivering=_delivering(given, ground, mutations),
        offering=Offering(
            supervisor=ground.supervisor,
            keeper=ground.keeper,
            has_room=lambda: reserve.has_room,
            now_ms=now_ms,
        ),
        uploads=_uploads(given, files, dated),
        pictures=_pictures(given, ground, blobs, private),
        file_search=_file_search(given, ground, private),
        follower=follower,
        contents=readings.contents,
        words=readings.words,
    )


def _tell_both(emit: Emit, cache: OutputCache, event: RuntimeEvent) -> None:
    """Every event goes to the clients, and its texts to who keeps them whole."""
    emit(event)
    cache.take(event)


def _age_ms(ledger: Ledger) -> int:
    """What files are dated with: their age needs no wall clock."""
    return ledger.ages().most


def _uploads(given: Given, files: BlobFiles, dated: Callable[[], int]) -> Uploads:
    return Uploads(
        files,
        now_ms=dated,
        now_s=lambda: given.clocks().up / 1_000,
        run=given.run,
    )


def _follower(given: Given, ground: Ground) -> Follower:
    """It hears what our writers tell, and what the store does."""
    follower = Follower(
        supervisor=ground.supervisor,
        keeper=ground.keeper,
        leases=ground.leases,
        sight=ground.sight,
        watch=ground.eyes,
        locks=ground.locks,
        emit=given.emit,
        now_ms=given.now_ms,
    )
    ground.leases.listen(follower.heard)
    ground.supervisor.listen(follower.heard_of_store)
    return follower


def _delivering(given: Given, ground: Ground, mutations: Mutations) -> Delivering:
    """It hears of the gate, as do the writers and who tells of questions that wait."""
    leases, keeper = ground.leases, ground.keeper
    delivering = Delivering(
        mutations.backlog,
        deliver=mutations.admission.start_turn,
        sent_before=mutations.sent_before.has,
        keeper=keeper,
        leases=leases,
        watch=ground.eyes,
    )
    kept = KeptThreads(
        leases=leases, keeper=keeper, emit=given.emit, now_ms=given.now_ms
    )
    keeper.on_change = partial(_gate_changed, ground.pool, delivering, kept)
    return delivering


def _gate_changed(pool: LeasePool, delivering: Delivering, kept: KeptThreads) -> None:
    pool.gate_changed()
    delivering.ring()
    kept.gate_changed()


def _pictures(
    given: Given, ground: Ground, blobs: Blobs, private: PrivateFolders
) -> Pictures:
    return Pictures(
        blobs=blobs,
        sight=ground.sight,
        codex_home=given.config.codex_home,
        private=private,
        run=given.run,
    )


def _file_search(given: Given, ground: Ground, private: PrivateFolders) -> FileSearch:
    return FileSearch(
        supervisor=ground.supervisor,
        sight=ground.sight,
        private=private,
        now_ms=given.now_ms,
        run=given.run,
    )
