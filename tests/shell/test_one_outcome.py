"""Whatever happens, in whatever order: one act a request key, and one outcome."""

import tempfile
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from adapter.errors import CodexRefusedError, NoAnswerError
from agent.store import Store
from tests.support.door import LOCAL, House, open_house, send
from tests.support.fake_runtime import FakeRuntime
from transport.errors import OutcomeUnknown, Refusal

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
            outcome = (await house.door.admission.start_turn(LOCAL, params)).turn.id
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
