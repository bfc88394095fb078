"""More words for a running turn: into that turn alone, once, or not at all."""

from pathlib import Path

import pytest
from trio.testing import MockClock

from adapter.errors import CodexRefusedError, NoAnswerError
from agent.records.key_row import RowState
from tests.support.door import DESKTOP, HOLDER, LOCAL, House, device, open_house, send
from tests.support.mutations import at_the_desk, row_state
from transport.errors import (
    CodexUnavailable,
    Conflict,
    Forbidden,
    InvalidParams,
    OutcomeUnknown,
    RuntimeFailure,
    ThreadOwnedElsewhere,
    TooLarge,
)
from transport.protocol.turns import TextInput, TurnSteerParams

KEY = "steer-0123456789abcdef"


def steer(
    turn_id: str, text: str = "and quickly", *, key: str = KEY
) -> TurnSteerParams:
    return TurnSteerParams(
        thread_id="thr",
        turn_id=turn_id,
        input=[TextInput(type="text", text=text)],
        request_key=key,
    )


async def start(house: House) -> str:
    house.runtime.add("thr", "t1")
    return (await house.door.admission.start_turn(LOCAL, send())).sent.id


async def test_words_go_into_the_turn_that_is_named_and_once(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        turn_id = await start(house)
        for _ in range(3):
            result = await house.door.admission.steer(LOCAL, steer(turn_id))
            assert result.turn.id == turn_id
            assert result.pending is None
        writer = house.runtime.writers[0]
        assert [text for text, _ in writer.sent] == ["go on", "and quickly"]
        assert house.runtime.log.count("start_turn") == 1
        assert len(house.runtime.writers) == 1


async def test_words_that_the_model_has_not_taken_yet_are_pending(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        turn_id = await start(house)
        house.runtime.writers[0].thinks = True
        result = await house.door.admission.steer(LOCAL, steer(turn_id))
        assert result.pending is True


async def test_another_turn_than_the_running_one_is_a_conflict_that_names_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        turn_id = await start(house)
        with pytest.raises(Conflict) as caught:
            await house.door.admission.steer(LOCAL, steer("t1"))
        assert caught.value.data["what"] == "running"
        assert caught.value.data["turn"]["id"] == turn_id
        house.runtime.writers[0].finish_turn()
        with pytest.raises(Conflict):
            await house.door.admission.steer(LOCAL, steer(turn_id))
        assert row_state(tmp_path, KEY) is None
        assert len(house.runtime.writers[0].sent) == 1


async def test_a_turn_of_somebody_else_names_who_has_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.hold("thr")
        with pytest.raises(ThreadOwnedElsewhere) as caught:
            await house.door.admission.steer(LOCAL, steer("t1"))
        assert caught.value.data["writer"]["pid"] == HOLDER.pid
        assert house.runtime.writers == []


async def test_a_turn_that_ends_in_that_moment_is_a_conflict_and_leaves_no_row(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        turn_id = await start(house)
        writer = house.runtime.writers[0]
        house.runtime.at("steer", writer.finish_turn)
        with pytest.raises(Conflict) as caught:
            await house.door.admission.steer(LOCAL, steer(turn_id))
        assert caught.value.data["what"] == "running"
        assert row_state(tmp_path, KEY) is None


async def test_an_unanswered_steer_is_unknown_and_never_sent_again(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        turn_id = await start(house)

        def silence() -> None:
            raise NoAnswerError("turn/steer")

        house.runtime.at("steer:done", silence)
        for _ in range(3):
            with pytest.raises(OutcomeUnknown):
                await house.door.admission.steer(LOCAL, steer(turn_id))
        assert row_state(tmp_path, KEY) is RowState.UNKNOWN
        assert [key for _, key in house.runtime.writers[0].sent].count(KEY) == 1
        assert not house.runtime.writers[0].reaped  # the turn runs on


async def test_the_gate_the_scope_and_the_ceiling_hold_for_steering_too(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        turn_id = await start(house)
        with pytest.raises(Forbidden):
            await house.door.admission.steer(device("read"), steer(turn_id))
        narrow = device(sandbox="read-only")
        with pytest.raises(Forbidden) as caught:
            await house.door.admission.steer(narrow, steer(turn_id))
        assert "ceiling" in caught.value.data
        house.runtime.at("steer", house.open_desktop)
        with pytest.raises(CodexUnavailable):
            await house.door.admission.steer(LOCAL, steer(turn_id))
        assert DESKTOP in house.watch.foreign
        assert len(house.runtime.writers[0].sent) == 1
        with pytest.raises(TooLarge):
            await house.door.admission.steer(LOCAL, steer(turn_id, "x" * 200_001))


async def test_delivery_steer_steers_what_runs_and_starts_what_does_not(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        admission = house.door.admission
        first = await admission.start_turn(LOCAL, send(delivery="steer"))
        assert first.delivery == "started"
        more = send(text="more", key=KEY, delivery="steer", expected=first.sent.id)
        second = await admission.start_turn(LOCAL, more)
        assert second.delivery == "steered"
        assert second.sent.id == first.sent.id
        late = send(text="late", key="late-0123456789abcdef", delivery="steer")
        with pytest.raises(Conflict) as caught:
            await admission.start_turn(
                LOCAL, late.model_copy(update={"expected_last_turn_id": "t1"})
            )
        assert caught.value.data["what"] == "lastTurn"
        assert house.runtime.log.count("start_turn") == 1


async def test_settings_do_not_go_into_a_running_turn(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        with pytest.raises(InvalidParams) as caught:
            await house.door.admission.start_turn(
                LOCAL, send(delivery="steer", model="m-2")
            )
        assert caught.value.data["field"] == "model"


async def test_a_refusal_while_the_turn_runs_on_is_told_as_codex_said_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        turn_id = await start(house)

        def refuse() -> None:
            raise CodexRefusedError("turn/steer", -32600, "input must not be empty")

        house.runtime.at("steer", refuse)
        with pytest.raises(RuntimeFailure) as refused:
            await house.door.admission.steer(LOCAL, steer(turn_id))
        assert "must not be empty" in at_the_desk(refused.value)
        assert row_state(tmp_path, KEY) is None
