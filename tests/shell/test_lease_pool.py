"""Writers of ours: when they end, and what everybody is told."""

from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from adapter.errors import ChildExitedError
from agent.limits import START_TRIES
from tests.support.door import LOCAL, House, open_house, send
from tests.support.fake_runtime import LAST_WORDS
from tests.support.fake_writer import FakeWriter
from tests.support.mutations import at_the_desk
from transport.errors import CodexUnavailable
from transport.protocol.events import ThreadChanged
from transport.protocol.gateway import LeaseState
from transport.protocol.goals import GoalPauseParams
from transport.protocol.threads import ThreadMode, ThreadStatus


async def one_turn(house: House) -> FakeWriter:
    house.runtime.add("thr", "t1")
    await house.door.admission.start_turn(LOCAL, send())
    return house.runtime.writers[0]


def leases_told(house: House) -> list[str]:
    told: list[str] = []
    for event in house.named("thread/changed"):
        assert isinstance(event.data, ThreadChanged)
        told.append(str(event.data.thread.lease))
    return told


async def test_an_idle_writer_is_released_after_thirty_seconds(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer = await one_turn(house)
        await trio.sleep(300)
        writer.finish_turn()  # it was not cut short
        await trio.sleep(29)
        assert leases_told(house) == ["held"]
        await trio.sleep(2)
        assert writer.reaped
        assert not writer.hurried
        assert house.door.leases.rows() == []
        assert leases_told(house) == ["held", "releasing", "none"]


@pytest.mark.parametrize("moment", [120.2, 60.6, 3_601.1])
async def test_an_idle_writer_is_released_whatever_the_clock_rounds_to(
    moment: float, tmp_path: Path, autojump_clock: MockClock
) -> None:
    """120.2 + 30 is 150.2, and 150.2 - 120.2 is less than 30."""
    async with open_house(tmp_path) as house:
        writer = await one_turn(house)
        await trio.sleep_until(moment)
        writer.finish_turn()
        await trio.sleep(31)
        assert writer.reaped


@pytest.mark.parametrize("time", range(8))  # who wakes first of two is chance
async def test_a_writer_that_is_ended_while_it_waits_for_a_next_turn_holds_nobody_up(
    time: int,
    tmp_path: Path,
    autojump_clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody wants it, a turn has just ended: who decides over it must not spin."""
    del time
    looks = 0
    told = FakeWriter.busy

    def busy(writer: FakeWriter) -> bool:
        nonlocal looks
        looks += 1
        assert looks < 1_000, "it looks again and again, and nothing else runs"
        return bool(told.__get__(writer))

    async with open_house(tmp_path) as house:
        writer = await one_turn(house)
        (lease,) = house.door.leases.held()
        writer.finish_turn()
        lease.leave()
        await wait_all_tasks_blocked()
        assert lease.ended_at is not None
        monkeypatch.setattr(FakeWriter, "busy", property(busy))
        await house.door.pool.end(lease)
    assert writer.reaped
    assert looks < 1_000


@pytest.mark.parametrize("steps", range(8))
async def test_a_writer_that_is_seen_to_be_held_is_not_ended_under_who_begins_with_it(
    steps: int, tmp_path: Path, autojump_clock: MockClock
) -> None:
    """The idle time is over; between the look at that and the end nobody gets it."""
    async with open_house(tmp_path) as house:
        writer = await one_turn(house)
        await trio.sleep(1)
        writer.finish_turn()
        await trio.sleep(30)
        for _ in range(steps):
            await trio.lowlevel.checkpoint()
        lease = house.door.leases.lease_of("thr")
        if lease is not None:
            with lease.used():
                await trio.sleep(3)
                assert not writer.reaped


@pytest.mark.parametrize("steps", range(14))
async def test_a_goal_is_paused_through_a_writer_that_stays_for_it(
    steps: int, tmp_path: Path, autojump_clock: MockClock
) -> None:
    """A desktop opens at each step of the act: it ends the writer before or after it."""
    async with open_house(tmp_path) as house:
        writer = await one_turn(house)
        await trio.sleep(1)
        writer.finish_turn()
        await trio.sleep(5)
        ended: list[bool] = []

        async def pause() -> None:
            params = GoalPauseParams(
                thread_id="thr", request_key="key-number-1-0123456789"
            )
            with suppress(CodexUnavailable):
                await house.door.admission.pause_goal(LOCAL, params)

        house.runtime.at("writer.pause_goal", partial(trio.sleep, 3))
        house.runtime.at("goal", lambda: ended.append(writer.reaped))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pause)
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            house.see_desktop()
        assert ended in ([], [False])


async def test_work_of_any_kind_starts_the_idle_time_anew(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer = await one_turn(house)
        writer.finish_turn()
        await trio.sleep(20)
        writer.busy_too = True
        writer.stir()
        await trio.sleep(20)
        writer.busy_too = False
        writer.stir()
        await trio.sleep(29)
        assert not writer.reaped
        await trio.sleep(2)
        assert writer.reaped


async def test_a_writer_is_kept_while_a_call_works_with_it_however_long(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer = await one_turn(house)
        writer.finish_turn()
        house.runtime.at("list_turns", partial(trio.sleep, 300))
        await house.door.admission.start_turn(LOCAL, send(key="another-key-0123456"))
        assert house.runtime.writers == [writer]
        assert not writer.reaped


async def test_a_pending_approval_keeps_the_writer(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer = await one_turn(house)
        writer.ask()
        house.see_desktop()
        await trio.sleep(300)
        assert not writer.reaped


async def test_an_idle_writer_is_released_at_once_when_the_gate_closes(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer = await one_turn(house)
        writer.finish_turn()
        await trio.sleep(1)
        house.see_desktop()
        await wait_all_tasks_blocked()
        assert writer.reaped
        assert writer.hurried


async def test_a_thread_is_nobodys_only_when_the_process_has_been_reaped(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer = await one_turn(house)
        writer.finish_turn()
        gone = trio.Event()
        house.runtime.at("writer.close", gone.wait)
        await trio.sleep(40)
        assert house.door.leases.state("thr") is LeaseState.RELEASING
        assert house.door.leases.lease_of("thr") is None  # nothing is written to it
        assert not writer.reaped
        gone.set()
        await wait_all_tasks_blocked()
        assert house.door.leases.state("thr") is LeaseState.NONE


async def test_a_send_during_the_release_waits_for_the_end_and_starts_afresh(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer = await one_turn(house)
        writer.finish_turn()
        house.runtime.at("writer.close", partial(trio.sleep, 2))
        await trio.sleep(30.5)
        assert house.door.leases.state("thr") is LeaseState.RELEASING
        await house.door.admission.start_turn(LOCAL, send(key="another-key-0123456"))
        assert writer.reaped
        assert len(house.runtime.writers) == 2


async def test_a_writer_that_dies_frees_the_thread_for_the_next_turn(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer = await one_turn(house)
        writer.die()
        await wait_all_tasks_blocked()
        assert house.door.leases.rows() == []
        assert house.door.leases.ended_unclean("thr")
        await house.door.admission.start_turn(LOCAL, send(key="another-key-0123456"))
        assert not house.door.leases.ended_unclean("thr")


async def test_one_faulty_writer_does_not_end_the_others(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer = await one_turn(house)
        house.runtime.add("other", "t1")
        await house.door.admission.start_turn(
            LOCAL, send("other", key="another-key-0123456")
        )

        def fault() -> None:
            raise ValueError("a bug of ours")

        house.runtime.at("writer.close", fault)
        writer.die()
        await wait_all_tasks_blocked()
        assert house.door.leases.state("thr") is LeaseState.NONE
        assert house.door.leases.state("other") is LeaseState.HELD


async def test_while_a_thread_is_ours_it_is_told_as_live_and_as_it_is(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        await one_turn(house)
        changed = house.named("thread/changed")[0].data
        assert isinstance(changed, ThreadChanged)
        assert changed.thread.mode is ThreadMode.LIVE
        assert changed.thread.status is ThreadStatus.IDLE
        rows = house.door.leases.rows()
        assert [(row.thread_id, str(row.state)) for row in rows] == [("thr", "held")]


async def test_closing_the_agent_ends_every_writer(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        await one_turn(house)
        runtime = house.runtime
    assert runtime.live == []


async def test_shutting_down_while_a_writer_starts_leaves_no_process(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.runtime.at("resume", trio.sleep_forever)
        with trio.move_on_after(1):
            await house.door.admission.start_turn(LOCAL, send())
        runtime = house.runtime
    assert runtime.live == []


async def test_a_writers_death_is_logged_and_told_without_what_codex_logged(
    tmp_path: Path, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_house(tmp_path) as house:
        writer = await one_turn(house)
        writer.die()
        await wait_all_tasks_blocked()
        house.runtime.readers[0].die()
        await wait_all_tasks_blocked()
        assert "codex writer was killed by signal 9" in caplog.text
        assert LAST_WORDS not in caplog.text
        assert LAST_WORDS not in str(house.events)
        assert "codex reader was killed by signal 9" in str(house.events)


async def test_a_fault_in_a_writer_is_logged_by_its_place_alone(
    tmp_path: Path, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_house(tmp_path) as house:

        def fail() -> None:
            raise ValueError(LAST_WORDS)

        house.runtime.at("writer.close", fail)
        writer = await one_turn(house)
        writer.finish_turn()
        await trio.sleep(60)
        assert "ValueError at" in caplog.text
        assert LAST_WORDS not in caplog.text


async def test_a_start_that_fails_says_what_codex_said(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:

        def fail() -> None:
            raise ChildExitedError("codex writer", 1, "config.toml: line 3\n")

        house.runtime.add("thr", "t1")
        for _ in range(START_TRIES):
            house.runtime.at("writer.open", fail)
        with pytest.raises(CodexUnavailable) as refused:
            await house.door.admission.start_turn(LOCAL, send())
        assert "ended with 1: config.toml" in at_the_desk(refused.value)
