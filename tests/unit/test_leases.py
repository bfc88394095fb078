"""One writer a thread, a bounded number of them: the lease table as a state machine."""

from itertools import count

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from agent.app_servers.leases import LeaseBook, LeaseError, Step
from transport.protocol.gateway import LeaseState

MOST = 4
THREADS = st.sampled_from([f"thr{number}" for number in range(6)])
OURS = (LeaseState.LOADING, LeaseState.HELD, LeaseState.RELEASING)


class LeaseMachine(RuleBasedStateMachine):
    """Every step in any order: what is not allowed raises and changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.book = LeaseBook(most=MOST)
        self.processes: dict[str, str] = {}  # key → process that lives for it
        self.numbers = count()

    def step(self, key: str, step: Step) -> bool:
        before = (self.book.state(key), self.book.count)
        try:
            self.book.take(key, step, at=1)
        except LeaseError:
            assert (self.book.state(key), self.book.count) == before
            return False
        return True

    @rule(key=THREADS)
    def open(self, key: str) -> None:
        full = len(self.processes) >= MOST
        lives = key in self.processes
        assert self.step(key, Step.OPEN) == (not full and not lives)
        if not full and not lives:
            self.processes[key] = f"p{next(self.numbers)}"

    @rule()
    def open_unnamed(self) -> None:
        key = f"new-{next(self.numbers)}"
        if self.book.is_full:
            with pytest.raises(LeaseError):
                self.book.open_unnamed(key, at=1)
        else:
            self.book.open_unnamed(key, at=1)
            self.processes[key] = key

    @rule(thread_id=THREADS)
    def name(self, thread_id: str) -> None:
        unnamed = [key for key in self.processes if key.startswith("new-")]
        if not unnamed:
            return
        if thread_id in self.processes:
            with pytest.raises(LeaseError):
                self.book.name(unnamed[0], thread_id)
        else:
            self.book.name(unnamed[0], thread_id)
            self.processes[thread_id] = self.processes.pop(unnamed[0])

    @rule(key=THREADS, step=st.sampled_from([Step.HOLD, Step.RELEASE]))
    def move(self, key: str, step: Step) -> None:
        if self.step(key, step):
            assert key in self.processes

    @rule(key=THREADS, step=st.sampled_from([Step.END, Step.LOSE]))
    def end(self, key: str, step: Step) -> None:
        releasing = self.book.state(key) is LeaseState.RELEASING
        assert self.step(key, step) == releasing
        if releasing:
            del self.processes[key]

    @rule(key=THREADS)
    def forget(self, key: str) -> None:
        self.book.forget_elsewhere(key)

    @invariant()
    def a_thread_has_a_writer_or_none(self) -> None:
        assert self.book.count == len(self.processes) <= MOST
        named = {key for key in self.processes if not key.startswith("new-")}
        assert {row.thread_id for row in self.book.rows()} == named
        for key in named:
            assert self.book.state(key) in OURS


TestLeases = LeaseMachine.TestCase


def test_a_thread_is_free_only_after_the_end() -> None:
    book = LeaseBook(most=1)
    for step in (Step.OPEN, Step.HOLD, Step.RELEASE):
        book.take("thr", step, at=1)
        with pytest.raises(LeaseError):
            book.take("thr", Step.OPEN, at=1)
    assert book.take("thr", Step.END, at=1) is LeaseState.NONE
    book.take("thr", Step.OPEN, at=1)


def test_a_thread_met_elsewhere_is_told_so_and_can_be_tried_again() -> None:
    book = LeaseBook(most=1)
    for step in (Step.OPEN, Step.RELEASE, Step.LOSE):
        book.take("thr", step, at=1)
    assert book.state("thr") is LeaseState.ELSEWHERE
    assert book.rows() == []
    book.take("thr", Step.OPEN, at=1)


def test_threads_met_elsewhere_are_not_remembered_without_bound() -> None:
    book = LeaseBook(most=1)
    for number in range(1_000):
        for step in (Step.OPEN, Step.RELEASE, Step.LOSE):
            book.take(f"thr{number}", step, at=1)
    kept = [n for n in range(1_000) if book.state(f"thr{n}") is LeaseState.ELSEWHERE]
    assert len(kept) == 256
    assert kept[-1] == 999
