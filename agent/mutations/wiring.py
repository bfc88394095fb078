"""Joins what mutations are made of. Trio shell, no decisions."""

from collections.abc import Callable
from dataclasses import dataclass

from agent.files.blobs import Blobs
from agent.following.follower import Follower
from agent.ground import Given, Ground
from agent.mutations.admission import Acts, Admission
from agent.mutations.background_commands import BackgroundCommands
from agent.mutations.inputs import Inputs
from agent.mutations.outcomes import Outcomes
from agent.mutations.passage import Passage
from agent.mutations.taking import Taking
from agent.mutations.thread_acts import ThreadActs
from agent.mutations.thread_fork import ThreadFork
from agent.mutations.thread_goal import ThreadGoal
from agent.mutations.thread_revert import ThreadRevert
from agent.mutations.thread_runs import ThreadRuns
from agent.mutations.thread_settings import SettingsChange
from agent.mutations.thread_start import ThreadStart
from agent.mutations.turn_interrupt import TurnInterrupt
from agent.mutations.turn_start import TurnStart
from agent.mutations.turn_steer import TurnSteer
from agent.mutations.way import Way
from agent.queue.backlog import Backlog
from agent.queue.message_queue import MessageQueue
from agent.queue.queue_table import QueueTable
from agent.queue.sent_before import SentBefore
from agent.records.ledger import Ledger
from agent.records.request_keys import RequestKeys
from transport.protocol.threads import Thread

Judged = Callable[[Thread], Thread]
"""A thread of the store as it stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutations:
    """All of them, wired."""

    acts: Acts
    admission: Admission
    backlog: Backlog
    sent_before: SentBefore
    keys: RequestKeys


def build_way(
    given: Given, ground: Ground, *, ledger: Ledger, blobs: Blobs, follower: Follower
) -> Way:
    """Wire what all mutations need on their way."""
    return Way(
        supervisor=ground.supervisor,
        keeper=ground.keeper,
        leases=ground.leases,
        pool=ground.pool,
        sight=ground.sight,
        watch=ground.eyes,
        ledger=ledger,
        inputs=Inputs(blobs, run=given.run),
        emit=ground.supervisor.tell,
        now_ms=given.now_ms,
        hand_over=follower.hand_over,
    )


def build_mutations(
    given: Given, ground: Ground, *, way: Way, judged: Judged
) -> Mutations:
    """Wire all that go this way. Raises: StoreUnavailableError."""
    keys = RequestKeys(way.ledger)
    passage = Passage(way, ground.locks, keys)
    outcomes = Outcomes(way, judged=judged)
    table = QueueTable(given.store)
    backlog = _backlog(given, way.ledger, table)
    acts = _acts(given, way, judged, table, backlog)
    return Mutations(
        acts=acts,
        admission=Admission(passage, acts, outcomes),
        backlog=backlog,
        sent_before=SentBefore(way),
        keys=keys,
    )


def _acts(
    given: Given, way: Way, judged: Judged, table: QueueTable, backlog: Backlog
) -> Acts:
    taking = Taking(way)
    steer = TurnSteer(way)
    return Acts(
        turn_start=TurnStart(way, taking, steer),
        turn_steer=steer,
        turn_interrupt=TurnInterrupt(way),
        thread_start=ThreadStart(way),
        thread_fork=ThreadFork(way),
        thread_acts=ThreadActs(way, judged=judged),
        settings=SettingsChange(way, taking),
        runs=ThreadRuns(way, taking),
        revert=ThreadRevert(way, taking, judged=judged),
        goal=ThreadGoal(way, taking, head=given.head),
        background=BackgroundCommands(way, head=given.head),
        queue=MessageQueue(table, backlog, way, head=given.head, now_ms=given.now_ms),
    )


def _backlog(given: Given, ledger: Ledger, table: QueueTable) -> Backlog:
    return Backlog(
        table,
        emit=given.emit,
        now_ms=given.now_ms,
        ages=ledger.ages,
        insist=given.reserve.insist,
        note=given.audit.note,
        run=given.run,
    )
