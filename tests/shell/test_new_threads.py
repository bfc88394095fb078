"""thread/start: a thread and its first turn are one act, which is done whole or leaves nothing."""

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from adapter.errors import (
    CodexRefusedError,
    NoAnswerError,
)
from agent.records.key_row import RowState
from agent.records.store import Store
from tests.support.door import (
    LOCAL,
    open_house,
)
from tests.support.mutations import (
    KEY,
    at_the_desk,
    new_thread,
    nothing_is_left,
    raiser,
    row_state,
)
from transport.errors import (
    CodexUnavailable,
    OutcomeUnknown,
    Refusal,
    RuntimeFailure,
)
from transport.protocol.gateway import LeaseState


async def test_a_new_thread_and_its_first_turn_are_one_act(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        result = await house.door.admission.start_thread(
            LOCAL, new_thread(str(tmp_path))
        )
        assert result.thread.cwd == str(tmp_path)
        assert result.thread.lease is LeaseState.HELD
        assert result.turn.thread_id == result.thread.id
        assert row_state(tmp_path) is RowState.DONE
        again = await house.door.admission.start_thread(
            LOCAL, new_thread(str(tmp_path))
        )
        assert again == result
        assert len(house.runtime.writers) == 1


@pytest.mark.parametrize(
    "step",
    [
        "writer.open",
        "writer.open:done",
        "start_thread",
        "start_thread:done",
        "start_turn",
    ],
)
async def test_a_desktop_that_opens_while_a_thread_is_made_leaves_no_thread(
    step: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.at(step, house.open_desktop)
        with pytest.raises(CodexUnavailable):
            await house.door.admission.start_thread(LOCAL, new_thread(str(tmp_path)))
        await nothing_is_left(house, tmp_path)
        assert house.runtime.threads == {}


async def test_a_thread_start_that_is_tried_again_is_undone_until_its_thread_is_named(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.at("start_turn", house.open_desktop)
        undone: list[int] = []

        def dies() -> None:
            """What a restart makes of the row, were it now."""
            store = Store.open(tmp_path / "ledger.sqlite")
            try:
                undone.append(store.recover())
                assert store.find("local", KEY) is None
            finally:
                store.close()

        house.runtime.at("start_thread", lambda: None)
        house.runtime.at("start_thread", dies)
        async with trio.open_nursery() as nursery:

            async def closes() -> None:
                await trio.sleep(20)
                await house.close_desktop()

            nursery.start_soon(closes)
            params = new_thread(str(tmp_path), wait_ms=60_000)
            result = await house.door.admission.start_thread(LOCAL, params)
        assert undone == [0]
        assert [*house.runtime.threads] == [result.thread.id]


async def test_a_refused_first_turn_drops_the_new_thread(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        error = CodexRefusedError("turn/start", -32600, "unknown model")
        house.runtime.at("start_turn", raiser(error))
        with pytest.raises(RuntimeFailure) as refused:
            await house.door.admission.start_thread(LOCAL, new_thread(str(tmp_path)))
        assert "unknown model" in at_the_desk(refused.value)
        await nothing_is_left(house, tmp_path)
        assert house.runtime.threads == {}


async def test_a_new_thread_of_unknown_outcome_is_named_in_the_answer(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.keeps_keys = False
        house.runtime.at("start_turn:done", raiser(NoAnswerError("turn/start")))
        with pytest.raises(OutcomeUnknown) as caught:
            await house.door.admission.start_thread(LOCAL, new_thread(str(tmp_path)))
        assert caught.value.data["threadId"] == house.runtime.writers[0].thread_id
        with pytest.raises(OutcomeUnknown) as again:
            await house.door.admission.start_thread(LOCAL, new_thread(str(tmp_path)))
        assert again.value.data == caught.value.data


async def test_an_unanswered_thread_start_certainly_made_nothing(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.at("start_thread:done", raiser(NoAnswerError("thread/start")))
        with pytest.raises(Refusal) as caught:
            await house.door.admission.start_thread(LOCAL, new_thread(str(tmp_path)))
        assert caught.value.retryable
        await nothing_is_left(house, tmp_path)
