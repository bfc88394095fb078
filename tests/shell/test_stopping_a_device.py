"""What `--stop` ends of a device that is put out: every turn that it has begun."""

from pathlib import Path

import pytest
from trio.testing import MockClock

from adapter.errors import NoAnswerError
from tests.support.door import LOCAL, House, device, open_house, send
from tests.support.fake_writer import FakeWriter
from tests.support.mutations import KEY, OTHER_KEY, raiser
from transport.errors import OutcomeUnknown
from transport.protocol.goals import GoalSetParams, GoalStatus


async def put_out(house: House, device_id: str = "d1", *, stop: bool = True) -> int:
    """End what it has begun; return how much that was."""
    admission = house.door.admission
    stops = (admission.stops_of if stop else admission.goals_of)(device_id)
    for stop_it in stops.values():
        await stop_it()
    return len(stops)


async def with_goal(house: House) -> FakeWriter:
    """Have the device give a thread a goal; return the thread's writer."""
    house.runtime.add("thr", "t1")
    params = GoalSetParams(thread_id="thr", objective="all", request_key=KEY)
    await house.door.admission.set_goal(device(), params)
    return house.runtime.writers[0]


def status(house: House) -> GoalStatus:
    goal = house.runtime.threads["thr"].goal
    assert goal is not None
    return goal.status


@pytest.mark.parametrize("seen", [True, False])
async def test_a_turn_whose_start_was_not_answered_is_stopped(
    tmp_path: Path, autojump_clock: MockClock, *, seen: bool
) -> None:
    """Also where it cannot be told from what is in the thread whose it is."""
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        house.runtime.keeps_keys = seen
        house.runtime.at("start_turn:done", raiser(NoAnswerError("turn/start")))
        if seen:
            await house.door.admission.start_turn(device(), send())
        else:
            with pytest.raises(OutcomeUnknown):
                await house.door.admission.start_turn(device(), send())
        assert house.runtime.writers[0].running_turn_id is not None
        assert await put_out(house) == 1
        assert house.runtime.writers[0].running_turn_id is None


async def test_a_turn_that_its_goal_has_begun_is_stopped(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer = await with_goal(house)
        writer.begin_turn(["towards the goal"], client_key="")
        assert await put_out(house, "d2") == 0
        assert await put_out(house) == 2, "the turn, and the goal"
        assert writer.running_turn_id is None


async def test_a_goal_that_would_begin_the_next_turn_is_paused(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer = await with_goal(house)
        assert await put_out(house) == 1
        assert status(house) is GoalStatus.PAUSED
        writer.begin_turn(["of another program"], client_key="")
        assert await put_out(house) == 0


async def test_without_stop_its_goal_is_paused_and_its_turn_goes_on(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer = await with_goal(house)
        writer.begin_turn(["towards the goal"], client_key="")
        assert await put_out(house, "d2", stop=False) == 0
        assert await put_out(house, stop=False) == 1
        assert status(house) is GoalStatus.PAUSED
        assert writer.running_turn_id is not None


async def test_a_writer_that_would_not_pause_its_goal_is_ended(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer = await with_goal(house)
        house.runtime.at("writer.pause_goal", raiser(NoAnswerError("thread/goal/set")))
        assert await put_out(house, stop=False) == 1
        assert writer.reaped


async def test_the_next_turn_that_begins_just_then_is_stopped(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer = await with_goal(house)
        house.runtime.at(
            "writer.pause_goal",
            lambda: writer.begin_turn(["towards the goal"], client_key=""),
        )
        assert await put_out(house) == 1
        assert writer.running_turn_id is None


async def test_the_owner_s_turn_beside_its_goal_goes_on(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        writer = await with_goal(house)
        await house.door.admission.start_turn(
            LOCAL, send(key=OTHER_KEY, allow_pending=True)
        )
        assert await put_out(house) == 1
        assert status(house) is GoalStatus.PAUSED
        assert writer.running_turn_id is not None
