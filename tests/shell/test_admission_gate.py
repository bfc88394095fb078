"""A mutation while others write: the gate closes at any step, a thread is locked, a client waits."""

from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from adapter.errors import (
    NoAnswerError,
)
from adapter.runtime.reader import PendingWork
from tests.support.door import (
    HOLDER,
    LOCAL,
    OLD_CLI,
    House,
    open_house,
    send,
)
from tests.support.fake_runtime import FakeRuntime
from tests.support.mutations import OTHER_KEY, STEPS, nothing_is_left, raiser
from transport.errors import (
    CodexUnavailable,
    Conflict,
    ThreadOwnedElsewhere,
)
from transport.protocol.gateway import LeaseState
from transport.protocol.turns import (
    TurnStatus,
)


@pytest.mark.parametrize("step", STEPS)
async def test_a_desktop_that_opens_at_any_step_leaves_nothing_half_done(
    step: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        house.runtime.at(step, house.open_desktop)
        with pytest.raises(CodexUnavailable) as caught:
            await house.door.admission.start_turn(LOCAL, send())
        assert caught.value.retryable
        assert caught.value.data["gate"]["writer"]["pid"] == 4_242
        assert caught.value.data["gate"]["reason"] == "desktopActive"
        await nothing_is_left(house, tmp_path)
        assert [writer.sent for writer in house.runtime.writers] in ([], [[]])
        assert stored.locked_by is None
        assert [turn.id for turn in stored.turns] == ["t1"]
        await house.close_desktop()
        result = await house.door.admission.start_turn(LOCAL, send())
        assert result.sent.status is TurnStatus.IN_PROGRESS


async def test_a_desktop_that_opens_after_the_act_lets_the_turn_run_on(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.runtime.at("start_turn:done", house.open_desktop)
        result = await house.door.admission.start_turn(LOCAL, send())
        house.door.keeper.look()
        await trio.sleep(120)
        writer = house.runtime.writers[0]
        assert writer.running_turn_id == result.sent.id
        writer.finish_turn()
        await trio.sleep(1)  # at once, not after the idle time
        assert writer.reaped
        assert writer.hurried


async def test_a_goal_is_paused_when_the_gate_closes(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        stored.pending = PendingWork(goal="win")
        await house.door.admission.start_turn(LOCAL, send(allow_pending=True))
        house.see_desktop()
        await trio.sleep(1)
        assert stored.pending.goal is None
        assert "pause_goal" not in house.runtime.log  # its writer is told


async def test_a_goal_is_paused_in_the_store_where_its_writer_does_not_answer(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        stored.pending = PendingWork(goal="win")
        await house.door.admission.start_turn(LOCAL, send(allow_pending=True))
        silent = NoAnswerError("thread/goal/set")
        house.runtime.at("writer.pause_goal", raiser(silent))
        house.see_desktop()
        await trio.sleep(1)
        assert "pause_goal" in house.runtime.log
        assert stored.pending.goal is None


async def test_a_thread_locked_by_another_process_names_it_and_leaves_nothing(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.hold("thr")
        with pytest.raises(ThreadOwnedElsewhere) as caught:
            await house.door.admission.start_turn(LOCAL, send())
        assert caught.value.data["writer"]["pid"] == HOLDER.pid
        assert str(HOLDER.pid) in caught.value.message
        assert caught.value.retryable
        await nothing_is_left(house, tmp_path)
        assert house.door.leases.state("thr") is LeaseState.ELSEWHERE


async def test_waiting_for_a_foreign_lock_ends_when_it_is_free(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.hold("thr")

        async def closes() -> None:
            await trio.sleep(20)
            house.give_back("thr")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(closes)
            result = await house.door.admission.start_turn(LOCAL, send(wait_ms=60_000))
        assert result.sent.status is TurnStatus.IN_PROGRESS
        assert trio.current_time() < 25
        assert len(house.runtime.writers) == 2  # none was started while it was locked


async def test_waiting_for_the_gate_ends_when_it_opens_or_patience_does(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.open_desktop()
        with pytest.raises(CodexUnavailable):
            await house.door.admission.start_turn(LOCAL, send(wait_ms=10_000))
        assert 10 <= trio.current_time() < 11
        async with trio.open_nursery() as nursery:

            async def closes() -> None:
                await trio.sleep(20)
                await house.close_desktop()

            nursery.start_soon(closes)
            await house.door.admission.start_turn(LOCAL, send(wait_ms=60_000))
        assert trio.current_time() < 33


async def test_nobody_waits_in_front_of_a_client_that_waits_for_the_gate(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.hold("thr")
        async with trio.open_nursery() as nursery:

            async def patient() -> None:
                with pytest.raises(ThreadOwnedElsewhere):
                    await house.door.admission.start_turn(LOCAL, send(wait_ms=60_000))

            nursery.start_soon(patient)
            await trio.sleep(5)
            before = trio.current_time()
            with pytest.raises(ThreadOwnedElsewhere):
                await house.door.admission.start_turn(LOCAL, send(key=OTHER_KEY))
            assert trio.current_time() - before < 1


async def test_an_engine_without_locks_closes_the_gate_and_is_named(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.watch.foreign.append(OLD_CLI)
        with pytest.raises(CodexUnavailable) as caught:
            await house.door.admission.start_turn(LOCAL, send())
        assert caught.value.data["gate"]["reason"] == "writerWithoutLock"
        assert caught.value.data["gate"]["writer"]["pid"] == OLD_CLI.pid


async def test_with_a_codex_that_takes_no_locks_any_engine_closes_the_gate(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    runtime = FakeRuntime(version="0.145.0", locks_threads=False)
    async with open_house(tmp_path, runtime=runtime) as house:
        runtime.add("thr", "t1")
        house.watch.foreign.append(replace(OLD_CLI, locks=True))
        with pytest.raises(CodexUnavailable) as caught:
            await house.door.admission.start_turn(LOCAL, send())
        assert caught.value.data["gate"]["reason"] == "writerWithoutLock"


async def updated(house: House) -> None:
    """Let the reader come back as a newer codex, which takes locks."""
    runtime = house.runtime
    runtime.info = replace(runtime.info, version="0.171.0", locks_threads=True)
    runtime.readers[-1].die()
    while house.door.keeper.is_open:
        await house.door.keeper.changed.wait()
    await house.door.keeper.wait_open()


async def test_a_writer_that_an_update_left_behind_takes_no_new_message(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        await house.door.admission.start_turn(LOCAL, send())
        (old,) = house.runtime.live
        await updated(house)
        old.finish_turn(TurnStatus.COMPLETED)
        await house.door.admission.start_turn(LOCAL, send(key=OTHER_KEY))
        (new,) = house.runtime.live
        assert (new.info.version, old.reaped) == ("0.171.0", True)


async def test_a_message_that_is_refused_ends_no_writer_that_an_update_left_behind(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        await house.door.admission.start_turn(LOCAL, send())
        (old,) = house.runtime.live
        await updated(house)
        old.finish_turn(TurnStatus.COMPLETED)
        with pytest.raises(Conflict) as caught:
            await house.door.admission.start_turn(
                LOCAL, send(key=OTHER_KEY, expected="t1")
            )
        assert caught.value.data["what"] == "lastTurn"
        assert house.runtime.live == [old]


async def test_what_works_in_the_background_is_not_ended_for_an_update(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        await house.door.admission.start_turn(LOCAL, send())
        (old,) = house.runtime.live
        await updated(house)
        old.busy_too = True
        old.finish_turn(TurnStatus.COMPLETED)
        with pytest.raises(Conflict) as caught:
            await house.door.admission.start_turn(LOCAL, send(key=OTHER_KEY))
        assert caught.value.data["what"] == "running"
        assert house.runtime.live == [old]
        old.busy_too = False
        old.stir()
        await house.door.admission.start_turn(LOCAL, send(key=OTHER_KEY))
        assert old.reaped


async def test_a_writer_without_locks_counts_also_where_the_reader_takes_them(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """An update brought the locks; what runs since before it has none."""
    runtime = FakeRuntime(version="0.145.0", locks_threads=False)
    async with open_house(tmp_path, runtime=runtime) as house:
        runtime.add("thr", "t1")
        runtime.add("other", "o1")
        await house.door.admission.start_turn(LOCAL, send())
        (old,) = runtime.live
        await updated(house)
        house.watch.foreign.append(replace(OLD_CLI, locks=True))
        with pytest.raises(CodexUnavailable) as caught:
            house.door.keeper.check("other")
        assert caught.value.data["gate"]["reason"] == "writerWithoutLock"
        old.finish_turn(TurnStatus.COMPLETED)
        await trio.sleep(1)
        assert not runtime.live
        house.door.keeper.look()
        await trio.sleep(0.3)
        house.door.keeper.check("other")
