"""Whatever happens, in whatever order: one act a request key, and one outcome."""

import sqlite3
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from adapter.errors import CodexRefusedError, NoAnswerError
from agent.errors import StoreUnavailableError
from agent.records.store import Store
from tests.support.door import LOCAL, House, open_house, send
from tests.support.fake_runtime import FakeRuntime
from transport.errors import Internal, OutcomeUnknown, Refusal

KEYS = [f"key-number-{number}-0123456789" for number in range(3)]
THREADS = ["thr0", "thr1"]


class Trouble(StrEnum):
    """What goes wrong during a call, if anything."""

    NONE = "none"
    REFUSED = "refused"
    SILENT_BEFORE = "no answer, nothing done"
    SILENT_AFTER = "no answer, but done"
    DESKTOP = "a desktop opens right before the act"
    CLIENT_LEAVES = "the client leaves"
    WRITER_DIES = "the writer dies in the act"
    AGENT_RESTARTS = "the Agent restarts before the call"


CALLS = st.lists(
    st.tuples(
        st.sampled_from(KEYS), st.sampled_from(THREADS), st.sampled_from(list(Trouble))
    ),
    min_size=1,
    max_size=12,
)


def arrange(house: House, trouble: Trouble, leave: Callable[[], None]) -> None:
    def refuse() -> None:
        raise CodexRefusedError("turn/start", -32600, "no")

    def silence() -> None:
        raise NoAnswerError("turn/start")

    def dies() -> None:
        house.runtime.live[-1].die()
        raise NoAnswerError("turn/start")

    match trouble:
        case Trouble.REFUSED:
            house.runtime.at("start_turn", refuse)
        case Trouble.SILENT_BEFORE:
            house.runtime.at("start_turn", silence)
        case Trouble.SILENT_AFTER:
            house.runtime.at("start_turn:done", silence)
        case Trouble.DESKTOP:
            house.runtime.at("start_turn", house.open_desktop)
        case Trouble.CLIENT_LEAVES:
            house.runtime.at("start_turn", leave)
        case Trouble.WRITER_DIES:
            house.runtime.at("start_turn:done", dies)
        case _:
            pass


async def settle(house: House) -> None:
    house.runtime.forget_actions()
    for writer in house.runtime.live:
        if writer.running_turn_id is not None:
            writer.finish_turn()
    if house.watch.foreign:
        await house.close_desktop()


async def play(calls: list[tuple[str, str, Trouble]], path: Path) -> None:
    runtime = FakeRuntime()
    for thread_id in THREADS:
        runtime.add(thread_id, "t1")
    outcomes: dict[str, str] = {}  # key → turn, or unknown
    left = list(calls)
    while left:
        store = Store.open(path / "ledger.sqlite")
        store.recover()
        async with open_house(path, runtime=runtime, store=store) as house:
            first = True
            while left and (first or left[0][2] is not Trouble.AGENT_RESTARTS):
                first = False
                key, thread_id, trouble = left.pop(0)
                await call(house, key, thread_id, trouble, outcomes)
                await settle(house)


async def call(
    house: House, key: str, thread_id: str, trouble: Trouble, outcomes: dict[str, str]
) -> None:
    outcome: str | None = None
    with trio.CancelScope() as scope:
        arrange(house, trouble, lambda: scope.cancel(reason="gone"))
        params = send(thread_id, text=f"{key}", key=key)
        try:
            outcome = (await house.door.admission.start_turn(LOCAL, params)).sent.id
        except OutcomeUnknown:
            outcome = "unknown"
        except Refusal:
            outcome = None
    sent = [one for writer in house.runtime.writers for one in writer.sent]
    assert sent.count((key, key)) <= 1  # never sent twice, whatever was answered
    if key in outcomes and outcome is not None:
        assert outcomes[key] == outcome
    if outcome is not None:
        outcomes[key] = outcome
        assert outcome == "unknown" or (key, key) in sent


@given(CALLS)
def test_no_key_is_ever_sent_twice_and_its_outcome_never_changes(
    calls: list[tuple[str, str, Trouble]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        clock = trio.testing.MockClock(autojump_threshold=0)
        trio.run(play, calls, Path(folder), clock=clock)


class QueueTrouble(StrEnum):
    """What goes wrong around a message that waits, if anything."""

    NONE = "none"
    REFUSED = "refused"
    SILENT_BEFORE = "no answer, nothing done"
    SILENT_AFTER = "no answer, but done"
    DESKTOP = "a desktop opens right before the delivery"
    WRITER_DIES = "the writer dies in the delivery"
    KILLED_BEFORE = "the Agent is killed before the message is handed over"
    KILLED_HANDED = "the Agent is killed when the message is handed over"
    KILLED_AFTER = "the Agent is killed when the message has arrived"


QUEUED = st.lists(
    st.tuples(st.sampled_from(THREADS), st.sampled_from(list(QueueTrouble))),
    min_size=1,
    max_size=8,
)
_KILLED = {
    QueueTrouble.KILLED_BEFORE: "list_turns",
    QueueTrouble.KILLED_HANDED: "start_turn",
    QueueTrouble.KILLED_AFTER: "start_turn:done",
}


class DeadStore(Store):
    """A store whose process was killed: from then on nothing reaches the disk."""

    killed = False

    @contextmanager
    def _using(self) -> Generator[sqlite3.Connection]:
        if self.killed:
            raise StoreUnavailableError("killed")
        with super()._using() as db:
            yield db


def trouble_delivery(
    house: House, trouble: QueueTrouble, kill: Callable[[], None]
) -> None:
    match trouble:
        case QueueTrouble.REFUSED:
            arrange(house, Trouble.REFUSED, kill)
        case QueueTrouble.SILENT_BEFORE:
            arrange(house, Trouble.SILENT_BEFORE, kill)
        case QueueTrouble.SILENT_AFTER:
            arrange(house, Trouble.SILENT_AFTER, kill)
        case QueueTrouble.DESKTOP:
            arrange(house, Trouble.DESKTOP, kill)
        case QueueTrouble.WRITER_DIES:
            arrange(house, Trouble.WRITER_DIES, kill)
        case _ if trouble in _KILLED:
            house.runtime.at(_KILLED[trouble], kill)
        case _:
            pass


async def play_queue(messages: list[tuple[str, QueueTrouble]], path: Path) -> None:
    runtime = FakeRuntime()
    for thread_id in THREADS:
        runtime.add(thread_id, "t1")
    left = list(enumerate(messages))
    while True:
        store = DeadStore.open(path / "ledger.sqlite")
        store.recover()
        killed = False
        with trio.CancelScope() as scope:

            def kill(store: DeadStore = store, scope: trio.CancelScope = scope) -> None:
                store.killed = True
                scope.cancel(reason="killed")

            async with open_house(path, runtime=runtime, store=store) as house:
                house.door.keeper.look()
                while left:
                    number, (thread_id, trouble) = left.pop(0)
                    trouble_delivery(house, trouble, kill)
                    try:
                        await put_one(house, thread_id, number)
                    except Internal:
                        assert store.killed  # its client never hears of it
                        left.insert(0, (number, (thread_id, QueueTrouble.NONE)))
                    await trio.sleep(20)
                    check_sent_once(runtime)
                    await settle(house)
                while len(house.door.backlog.book):
                    await trio.sleep(20)
                    await settle(house)
        killed = scope.cancelled_caught
        check_sent_once(runtime)
        for stored in runtime.threads.values():
            stored.locked_by = None  # the next Agent ends what the killed one left
        if not killed:
            break
    if all(trouble in SURE for _, trouble in messages):
        texts = [text for writer in runtime.writers for text, _ in writer.sent]
        assert sorted(texts) == [f"message {n}" for n in range(len(messages))]


SURE = (QueueTrouble.NONE, QueueTrouble.DESKTOP, QueueTrouble.KILLED_AFTER)


async def put_one(house: House, thread_id: str, number: int) -> None:
    params = send(
        thread_id,
        f"message {number}",
        key=f"queue-key-{number:04}-abc",
        delivery="queue",
    )
    result = await house.door.admission.start_turn(LOCAL, params)
    assert result.queued is not None


def check_sent_once(runtime: FakeRuntime) -> None:
    texts = [text for writer in runtime.writers for text, _ in writer.sent]
    assert len(texts) == len(set(texts))


@given(QUEUED)
def test_a_queued_message_is_delivered_at_most_once_whatever_crashes(
    messages: list[tuple[str, QueueTrouble]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        clock = trio.testing.MockClock(autojump_threshold=0)
        trio.run(play_queue, messages, Path(folder), clock=clock)
