"""thread/fork: a copy of a thread and its first message, which are one act."""

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from tests.support.door import device, open_house
from tests.support.fake_runtime import FakeRuntime
from tests.support.mutations import KEY
from tests.support.thread_acts import died, fork, unanswered
from transport.errors import (
    CodexUnavailable,
    Forbidden,
    InvalidParams,
    NotFound,
    OutcomeUnknown,
)
from transport.protocol.turns import TurnStatus


@pytest.fixture
def runtime() -> FakeRuntime:
    runtime = FakeRuntime()
    runtime.add("thr", "t1", "t2")
    return runtime


@pytest.mark.parametrize(
    ("turns", "kept"),
    [
        ({}, ["t1", "t2"]),
        ({"through_turn_id": "t1"}, ["t1"]),
        ({"before_turn_id": "t2"}, ["t1"]),
        ({"before_turn_id": "t1"}, []),
    ],
)
async def test_a_fork_goes_on_from_where_it_was_asked_to(
    tmp_path: Path,
    runtime: FakeRuntime,
    autojump_clock: MockClock,
    turns: dict[str, str],
    kept: list[str],
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        made = await fork(house, **turns)
        assert made.thread.forked_from_id == "thr"
        assert made.thread.last_turn_id == made.turn.id
        assert made.turn.status is TurnStatus.IN_PROGRESS
        stored = runtime.threads[made.thread.id]
        assert [turn.id for turn in stored.turns] == [*kept, made.turn.id]
        assert runtime.live[0].sent == [("another way", KEY)]
        assert runtime.threads["thr"].locked_by is None
        again = await fork(house, **turns)
        assert again.thread.id == made.thread.id
        assert runtime.log.count("fork_thread") == 1


async def test_a_turn_that_is_not_there_and_two_ends_are_refused(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        with pytest.raises(NotFound) as caught:
            await fork(house, through_turn_id="t9")
        assert caught.value.data == {"kind": "turn", "id": "t9"}
        with pytest.raises(InvalidParams):
            await fork(house, through_turn_id="t1", before_turn_id="t2")
        assert runtime.live == []
        assert list(runtime.threads) == ["thr"]


async def test_a_fork_whose_message_is_refused_is_deleted_again(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        runtime.at("start_turn", house.open_desktop)
        with pytest.raises(CodexUnavailable):
            await fork(house)
        assert list(runtime.threads) == ["thr"]
        assert runtime.live == []
        await house.close_desktop()
        await fork(house)  # the key is free


async def test_a_fork_whose_writer_ends_before_its_message_is_deleted_again(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        runtime.at("fork_thread:done", died)
        with pytest.raises(CodexUnavailable):
            await fork(house)
        assert list(runtime.threads) == ["thr"]
        assert runtime.live == []
        await fork(house)  # the key is free
        assert runtime.log.count("start_turn") == 1


async def test_a_fork_whose_id_nobody_told_is_unknown(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        runtime.at("fork_thread:made", died)
        for _ in range(2):
            with pytest.raises(OutcomeUnknown):
                await fork(house)
        assert runtime.log.count("fork_thread") == 1


async def test_a_fork_that_is_tried_again_does_not_name_the_one_before(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house, trio.open_nursery() as nursery:
        runtime = house.runtime
        runtime.add("thr", "t1")
        runtime.at("start_turn", house.open_desktop)
        runtime.at("fork_thread:made", lambda: None)
        runtime.at("fork_thread:made", died)

        async def closes() -> None:
            await trio.sleep(20)
            await house.close_desktop()

        nursery.start_soon(closes)
        with pytest.raises(OutcomeUnknown) as caught:
            await fork(house, wait_ms=60_000)
        assert runtime.log.count("fork_thread") == 2
        assert caught.value.data["threadId"] == "thr"  # no copy was told


async def test_a_fork_over_the_ceiling_is_deleted_again(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        narrow = device("read", "write", sandbox="read-only")
        with pytest.raises(Forbidden):
            await fork(house, narrow)
        assert list(runtime.threads) == ["thr"]
        assert runtime.live == []


async def test_a_fork_that_nobody_answered_about_is_unknown_and_stays(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        runtime.keeps_keys = False
        runtime.at("start_turn:done", unanswered)
        with pytest.raises(OutcomeUnknown) as caught:
            await fork(house)
        fork_id = caught.value.data["threadId"]
        assert fork_id in runtime.threads
        with pytest.raises(OutcomeUnknown):
            await fork(house)
        assert runtime.log.count("fork_thread") == 1
