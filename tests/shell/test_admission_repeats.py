"""A request key that comes again: in flight, after its client has left, after a restart, for something else."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from adapter.errors import CodexRefusedError
from agent.records.key_row import RowState
from agent.records.store import Store
from tests.support.door import (
    LOCAL,
    open_house,
    send,
)
from tests.support.fake_runtime import FakeRuntime
from tests.support.mutations import (
    KEY,
    at_the_desk,
    nothing_is_left,
    raiser,
    row_state,
    stop,
)
from transport.errors import (
    CodexUnavailable,
    Conflict,
    OutcomeUnknown,
    Refusal,
    RuntimeFailure,
)


async def test_a_client_that_leaves_before_the_act_leaves_nothing(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    for step in ("list_turns", "pending_work", "writer.open", "resume", "resume:done"):
        path = tmp_path / step.replace(":", "-")
        path.mkdir()
        async with open_house(path) as house:
            house.runtime.add("thr", "t1")
            house.runtime.at(step, trio.sleep_forever)
            with trio.move_on_after(5) as scope:
                await house.door.admission.start_turn(LOCAL, send())
            assert scope.cancelled_caught
            await nothing_is_left(house, path)


async def test_a_client_that_leaves_during_the_act_finds_its_outcome_later(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        with trio.CancelScope() as scope:
            house.runtime.at("start_turn", lambda: scope.cancel(reason="phone is gone"))
            house.runtime.at("start_turn:done", partial(trio.sleep, 3))
            await house.door.admission.start_turn(LOCAL, send())
            await trio.lowlevel.checkpoint()
        assert scope.cancelled_caught
        assert row_state(tmp_path) is RowState.DONE
        again = await house.door.admission.start_turn(LOCAL, send())
        assert again.sent.id == house.runtime.writers[0].running_turn_id
        assert len(house.runtime.writers[0].sent) == 1


async def test_repeats_in_flight_share_the_one_outcome(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.runtime.at("resume", partial(trio.sleep, 2))
        turns: list[str] = []

        async def call() -> None:
            result = await house.door.admission.start_turn(LOCAL, send())
            turns.append(result.sent.id)

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(call)
        assert len(turns) == 5
        assert len(set(turns)) == 1
        assert len(house.runtime.writers) == 1
        assert len(house.runtime.writers[0].sent) == 1


async def test_repeats_in_flight_share_a_refusal_too(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.runtime.at("resume", partial(trio.sleep, 2))
        house.runtime.at("resume:done", house.open_desktop)
        refused: list[Refusal] = []

        async def call() -> None:
            try:
                await house.door.admission.start_turn(LOCAL, send())
            except CodexUnavailable as refusal:
                refused.append(refusal)

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(call)
        assert len(refused) == 3
        assert len(house.runtime.writers) == 1


async def test_repeats_in_flight_hear_codex_s_words_too(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """What the workstation is told in place of our sentence."""
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        error = CodexRefusedError("turn/start", -32600, "unknown model")
        house.runtime.at("start_turn", raiser(error))
        refused: list[Refusal] = []

        async def call() -> None:
            try:
                await house.door.admission.start_turn(LOCAL, send())
            except RuntimeFailure as refusal:
                refused.append(refusal)

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(call)
        assert ["unknown model" in at_the_desk(one) for one in refused] == [True] * 3


async def test_a_repeat_takes_over_when_the_first_client_has_left(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.runtime.at("pending_work", trio.sleep_forever)
        async with trio.open_nursery() as nursery:

            async def first() -> None:
                with trio.move_on_after(1):
                    await house.door.admission.start_turn(LOCAL, send())

            nursery.start_soon(first)
            await wait_all_tasks_blocked()
            result = await house.door.admission.start_turn(LOCAL, send())
        assert result.sent.id == house.runtime.writers[-1].running_turn_id


async def test_the_same_key_for_something_else_is_a_conflict(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        await house.door.admission.start_turn(LOCAL, send())
        with pytest.raises(Conflict) as caught:
            await house.door.admission.start_turn(LOCAL, send(text="other words"))
        assert caught.value.data["what"] == "requestKey"
        with pytest.raises(Conflict):
            turn_id = house.runtime.writers[0].running_turn_id
            assert turn_id is not None
            await house.door.admission.interrupt(LOCAL, stop(turn_id, key=KEY))


async def test_a_stored_answer_is_given_again_after_a_restart(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    runtime = FakeRuntime()
    runtime.add("thr", "t1")
    async with open_house(tmp_path, runtime=runtime) as house:
        first = await house.door.admission.start_turn(LOCAL, send())
    async with open_house(tmp_path, runtime=runtime) as house:
        again = await house.door.admission.start_turn(LOCAL, send())
    assert again == first
    assert len(runtime.writers) == 1


async def test_what_was_handed_when_the_agent_died_is_unknown_after_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    runtime = FakeRuntime()
    runtime.keeps_keys = False
    runtime.add("thr", "t1")
    async with open_house(tmp_path, runtime=runtime) as house:
        await house.door.admission.start_turn(LOCAL, send())
    store = Store.open(tmp_path / "ledger.sqlite")
    row = store.find("local", KEY)
    assert row is not None
    store.put(replace(row, state=RowState.HANDED, outcome=None))  # as a crash leaves it
    assert store.recover() == 1
    async with open_house(tmp_path, runtime=runtime, store=store) as house:
        with pytest.raises(OutcomeUnknown) as caught:
            await house.door.admission.start_turn(LOCAL, send())
    assert caught.value.data["threadId"] == "thr"
