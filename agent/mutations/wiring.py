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
from agent.queue.message_queue import MessageQueue
from agent.queue.queue_table import QueueTable
from agent.records.ledger import Ledger
from transport.protocol.threads import Thread

Judged = Callable[[Thread], Thread]
"""A thread of the store as it stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutations:
    """All of them, wired."""

    acts: Acts
    admission: Admission
    thread_acts: ThreadActs
    thread_fork: ThreadFork


def build_way(
    given: Given, ground: Ground, *, ledger: Ledger, blobs: Blobs, follower: Follower
) -> Way:
    """Wire what all mutations need on their way."""
    return Way(
        supervisor=ground.supervisor,
        keeper=ground.keeper,
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
    passage = Passage(way, ground.locks)
    outcomes = Outcomes(way, judged=judged)
    acts = _acts(given, way, judged)
    return Mutations(
        acts=acts,
        admission=Admission(passage, acts, outcomes),
        thread_acts=ThreadActs(way, passage, judged=judged),
        thread_fork=ThreadFork(way, passage, outcomes),
    )


def _acts(given: Given, way: Way, judged: Judged) -> Acts:
    taking = Taking(way)
    steer = TurnSteer(way)
    return Acts(
        turn_start=TurnStart(way, taking, steer),
        turn_steer=steer,
        turn_interrupt=TurnInterrupt(way),
        thread_start=ThreadStart(way),
        settings=SettingsChange(way, taking),
        runs=ThreadRuns(way, taking),
        revert=ThreadRevert(way, taking, judged=judged),
        goal=ThreadGoal(way, taking, head=given.head),
        background=BackgroundCommands(way, head=given.head),
        queue=_queue(given, way),
    )


def _queue(given: Given, way: Way) -> MessageQueue:
    return MessageQueue(
        QueueTable(given.store),
        way,
        emit=given.emit,
        head=given.head,
        now_ms=given.now_ms,
        insist=given.insist,
        run=given.run,
    )
