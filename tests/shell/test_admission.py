"""The one door for mutations: a message finds a writer, a fresh one or the one that is held."""

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from adapter.errors import (
    ChildExitedError,
    CodexRefusedError,
    HandshakeFailedError,
)
from agent.records.key_row import RowState
from tests.support.door import (
    LOCAL,
    device,
    open_house,
    send,
)
from tests.support.fake_threads import make_turn
from tests.support.mutations import (
    KEY,
    OTHER_KEY,
    new_thread,
    nothing_is_left,
    raiser,
    row_state,
)
from transport.errors import (
    CodexUnavailable,
    Conflict,
    NotResumable,
    Overloaded,
    TooLarge,
)
from transport.protocol.gateway import LeaseState
from transport.protocol.threads import ThreadStartResult
from transport.protocol.turns import (
    TurnStartResult,
)


async def test_a_turn_is_started_through_a_fresh_writer_and_answered(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        result = await house.door.admission.start_turn(LOCAL, send(expected="t1"))
        writer = house.runtime.writers[0]
        assert writer.sent == [("go on", KEY)]
        assert result.sent.id == writer.running_turn_id
        assert result.delivery == "started"
        assert row_state(tmp_path) is RowState.DONE
        order = [step for step in house.runtime.log if step != "read_thread"]
        assert order == [
            "reader.open",
            "list_turns",
            "pending_work",
            "writer.open",
            "writer.open:done",
            "resume",
            "resume:done",
            "start_turn",
            "start_turn:done",
        ]
        assert house.door.leases.state("thr") is LeaseState.HELD


async def test_a_held_writer_that_knows_all_is_used_again(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        await house.door.admission.start_turn(LOCAL, send())
        writer = house.runtime.writers[0]
        turn = writer.finish_turn()
        await house.door.admission.start_turn(
            LOCAL, send(key=OTHER_KEY, expected=turn.id)
        )
        assert house.runtime.writers == [writer]
        assert len(writer.sent) == 2


async def test_a_foreign_turn_on_the_disk_ends_a_held_writer_and_takes_a_fresh_one(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        await house.door.admission.start_turn(LOCAL, send())
        old = house.runtime.writers[0]
        old.finish_turn()
        stored.turns.append(make_turn("foreign", "thr"))
        await house.door.admission.start_turn(
            LOCAL, send(key=OTHER_KEY, expected="foreign")
        )
        new_one = house.runtime.writers[1]
        assert old.reaped
        assert new_one.knows_turn("foreign")
        codes = [event.data.wire()["code"] for event in house.named("notice")]
        assert codes == ["foreignTurn"]


async def test_a_foreign_turn_does_not_end_what_works_in_the_background(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        await house.door.admission.start_turn(LOCAL, send())
        (old,) = house.runtime.live
        old.busy_too = True
        old.finish_turn()
        stored.turns.append(make_turn("foreign", "thr"))
        with pytest.raises(Conflict) as caught:
            await house.door.admission.start_turn(
                LOCAL, send(key=OTHER_KEY, expected="foreign")
            )
        assert caught.value.data["what"] == "running"
        assert house.runtime.live == [old]


@pytest.mark.parametrize("step", ["resume:done", "start_thread:done"])
async def test_a_writer_that_dies_as_it_has_loaded_is_told_as_such(
    step: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")

        async def dies() -> None:
            house.runtime.writers[0].died.set()
            await trio.sleep(1)

        house.runtime.at(step, dies)

        async def act() -> TurnStartResult | ThreadStartResult:
            if step == "resume:done":
                return await house.door.admission.start_turn(LOCAL, send())
            params = new_thread(str(tmp_path))
            return await house.door.admission.start_thread(LOCAL, params)

        with pytest.raises(CodexUnavailable):
            await act()
        await nothing_is_left(house, tmp_path)
        await act()
        assert row_state(tmp_path) is RowState.DONE


async def test_a_fifth_writer_ends_the_longest_idle_one(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        for number in range(5):
            house.runtime.add(f"thr{number}", "t1")
        for number in range(4):
            key = f"{KEY}-{number}"
            guest = device(device_id=f"d{number}")
            await house.door.admission.start_turn(guest, send(f"thr{number}", key=key))
            if number in (1, 2):
                house.runtime.writers[number].finish_turn()
                await trio.sleep(2)
        await house.door.admission.start_turn(device(), send("thr4", key=f"{KEY}-4"))
        assert [writer.reaped for writer in house.runtime.writers] == [
            False, True, False, False, False,
        ]  # fmt: skip


async def test_a_fifth_writer_is_refused_while_all_four_work(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        for number in range(5):
            house.runtime.add(f"thr{number}", "t1")
        for number in range(4):
            key = f"{KEY}-{number}"
            guest = device(device_id=f"d{number}")
            await house.door.admission.start_turn(guest, send(f"thr{number}", key=key))
        with pytest.raises(Overloaded) as caught:
            await house.door.admission.start_turn(
                device(), send("thr4", key=f"{KEY}-4")
            )
        assert caught.value.data["threads"] == ["thr0", "thr1", "thr2", "thr3"]
        house.runtime.writers[2].finish_turn()
        await house.door.admission.start_turn(device(), send("thr4", key=f"{KEY}-4"))


async def test_a_start_that_dies_before_initialize_is_tried_again_three_times(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        died = ChildExitedError("codex writer", 1, "failed to initialize sqlite")
        for _ in range(3):
            house.runtime.at("writer.open", raiser(died))
        await house.door.admission.start_turn(LOCAL, send())
        house.runtime.writers[0].finish_turn()
        await trio.sleep(60)
        for _ in range(4):
            house.runtime.at("writer.open", raiser(HandshakeFailedError("odd")))
        with pytest.raises(CodexUnavailable):
            await house.door.admission.start_turn(LOCAL, send(key=OTHER_KEY))
        await nothing_is_left(house, tmp_path, OTHER_KEY)


async def test_a_thread_that_codex_does_not_continue_is_not_resumable(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        error = CodexRefusedError("thread/resume", -32600, "session thr is archived")
        house.runtime.at("resume", raiser(error))
        with pytest.raises(NotResumable) as caught:
            await house.door.admission.start_turn(LOCAL, send())
        assert "archived" not in caught.value.message
        assert "archived" in str(caught.value.whole)
        await nothing_is_left(house, tmp_path)


async def test_a_message_over_the_limit_is_refused_before_anything(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        before = list(house.runtime.log)
        with pytest.raises(TooLarge):
            await house.door.admission.start_turn(LOCAL, send(text="ä" * 100_001))
        assert house.runtime.log == before


async def test_while_the_reader_is_down_mutations_say_so(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.runtime.readers[0].die()
        await wait_all_tasks_blocked()
        with pytest.raises(CodexUnavailable) as caught:
            await house.door.admission.start_turn(LOCAL, send())
        assert caught.value.data["gate"]["reason"] == "runtimeDown"
        await trio.sleep(2)  # it is started again by itself
        await house.door.admission.start_turn(LOCAL, send())
