"""What is concluded about threads and turns that others may be at work in."""

import pytest

from agent.reading.standing import Others, judged_thread, judged_turn
from tests.support.fake_threads import make_thread, make_turn
from transport.protocol.gateway import LeaseState, Writer, WriterKind
from transport.protocol.threads import ThreadStatus
from transport.protocol.turns import TurnStatus

HOLDER = Writer(kind=WriterKind.CLI, name="x", pid=7, since=1)
OPEN = make_turn("t2", "thr", TurnStatus.INTERRUPTED)
ENDED = make_turn("t1", "thr")
UNKNOWN = make_thread("thr").model_copy(update={"status": ThreadStatus.UNKNOWN})


@pytest.mark.parametrize(
    ("others", "newest", "status"),
    [
        (Others(), True, TurnStatus.INTERRUPTED),
        (Others(holder=HOLDER), True, TurnStatus.IN_PROGRESS),
        (Others(lockless=True), True, TurnStatus.UNKNOWN),
        (Others(holder=HOLDER, lockless=True), True, TurnStatus.IN_PROGRESS),
        (Others(holder=HOLDER), False, TurnStatus.INTERRUPTED),
        (Others(lockless=True), False, TurnStatus.INTERRUPTED),
    ],
)
def test_a_turn_without_end_is_judged_by_who_may_run_it(
    others: Others, status: TurnStatus, *, newest: bool
) -> None:
    judged = judged_turn(OPEN, others, newest=newest)
    assert judged.status is status
    assert judged.inferred


def test_a_turn_whose_end_is_known_is_believed() -> None:
    assert judged_turn(ENDED, Others(holder=HOLDER), newest=True) == ENDED


def test_a_thread_held_elsewhere_names_its_holder() -> None:
    thread = judged_thread(UNKNOWN, Others(holder=HOLDER), turns_known=False)
    assert thread.lease is LeaseState.ELSEWHERE
    assert thread.writer == HOLDER
    assert thread.status is ThreadStatus.UNKNOWN
    assert thread.inferred


def test_a_threads_status_follows_from_its_newest_turn() -> None:
    others = Others(holder=HOLDER)
    running = judged_turn(OPEN, others, newest=True)
    thread = judged_thread(UNKNOWN, others, newest=running, turns_known=True)
    assert (thread.status, thread.inferred) == (ThreadStatus.RUNNING, True)
    assert thread.last_turn_id == "t2"
    thread = judged_thread(UNKNOWN, others, newest=ENDED, turns_known=True)
    assert (thread.status, thread.inferred) == (ThreadStatus.IDLE, True)


def test_a_thread_that_nobody_has_is_idle_and_that_is_no_guess() -> None:
    thread = judged_thread(UNKNOWN, Others(), newest=ENDED, turns_known=True)
    assert (thread.status, thread.inferred) == (ThreadStatus.IDLE, None)
    assert thread.lease is LeaseState.NONE
