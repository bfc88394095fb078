"""Following other programs' threads: when it reads, how much, and what it then tells."""

from pathlib import Path

import trio
from trio.testing import MockClock

from adapter.errors import CodexRefusedError, ThreadUnknownError
from adapter.runtime.events import Emitted
from tests.support.door import LOCAL, OLD_CLI, open_house, send
from tests.support.fake_threads import make_turn
from tests.support.others_threads import (
    append,
    following,
    foreign_turn,
    held,
    names,
    reads,
)
from transport.background import open_background
from transport.protocol.events import (
    ThreadChanged,
    TurnCompleted,
    TurnStarted,
)
from transport.protocol.items import ItemStatus
from transport.protocol.threads import ThreadMode, ThreadReadParams
from transport.protocol.turns import TurnStatus
from transport.protocol.work_items import Subagent, SubagentAction, SubagentState


async def test_nothing_is_read_while_nobody_is_subscribed(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        held(house, "thr", "t1")
        async with open_background(house.door.follower.serve):
            await trio.sleep(60)
            assert not reads(house)
            assert "list_threads" not in house.runtime.log
        async with following(house, "thr"):
            await trio.sleep(5)
        before = len(house.runtime.log)
        assert before
        await trio.sleep(600)
        assert len(house.runtime.log) == before


async def test_a_thread_is_read_every_second_while_it_changes_then_less_often(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = held(house, "thr", "t1")
        async with following(house, "thr"):
            for count in range(10):
                append(stored, make_turn(f"n{count}", "thr"))
                before = reads(house)
                await trio.sleep(1)
                assert reads(house) - before in (1, 2)
            await trio.sleep(60)
            before = reads(house)
            await trio.sleep(60)
            assert reads(house) - before == 4, "a quiet one every 15 s"
        assert names(house).count("turn/started") == 10


async def test_a_turn_that_says_nothing_is_looked_at_every_four_seconds(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = held(house, "thr", "t1")
        async with following(house, "thr"):
            append(stored, foreign_turn("t2"))
            await trio.sleep(60)
            before = reads(house)
            await trio.sleep(60)
            assert reads(house) - before in (12, 15)
            assert "turn/completed" not in names(house)


async def test_a_still_thread_is_read_when_the_list_says_that_it_changed(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        async with following(house, "thr"):
            await trio.sleep(5)
            before = reads(house)
            await trio.sleep(300)
            assert reads(house) == before
            append(stored, foreign_turn("t2", TurnStatus.COMPLETED))
            await trio.sleep(2)
            assert names(house) == ["turn/started", "u-t2", "turn/completed"]


async def test_what_another_did_just_before_us_is_told_before_our_own_turn(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = held(house, "thr", "t1")
        async with following(house, "thr"):
            await trio.sleep(0.1)
            append(stored, foreign_turn("t2", TurnStatus.COMPLETED))
            del house.watch.locks["thr"]
            answer = await house.door.admission.start_turn(LOCAL, send("thr"))
            house.runtime.writers[0].finish_turn()
            await trio.sleep(40)
        turns = [
            (event.data.event, event.data.turn.id)
            for event in house.events
            if isinstance(event, Emitted)
            and isinstance(event.data, TurnStarted | TurnCompleted)
        ]
        ours = answer.sent.id
        assert turns == [
            ("turn/started", "t2"),
            ("turn/completed", "t2"),
            ("turn/started", ours),
            ("turn/completed", ours),
        ]
        modes = [
            e.data.thread.mode
            for e in house.named("thread/changed")
            if isinstance(e.data, ThreadChanged)
        ]
        assert ThreadMode.LIVE in modes
        assert modes[-1] is ThreadMode.STILL


async def test_a_thread_in_which_we_write_is_not_read(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        async with following(house, "thr"):
            await house.door.admission.start_turn(LOCAL, send("thr"))
            before = reads(house)
            await trio.sleep(300)
            assert reads(house) == before


async def test_one_failed_read_tells_nothing_and_is_tried_again(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    def fail() -> None:
        raise CodexRefusedError("thread/read", -32600, "for a moment")

    def lack() -> None:
        raise ThreadUnknownError("thread/read", -32600, "thread not loaded: thr")

    async with open_house(tmp_path) as house:
        stored = held(house, "thr", "t1")
        async with following(house, "thr"):
            append(stored, foreign_turn("t2", TurnStatus.COMPLETED))
            house.runtime.at("read_thread", fail)
            house.runtime.at("read_thread", lack)
            await trio.sleep(20)
        assert names(house) == ["turn/started", "u-t2", "turn/completed"]


async def test_a_writer_without_locks_makes_the_mode_follow_and_its_end_still(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        async with following(house, "thr"):
            house.watch.foreign.append(OLD_CLI)
            house.door.keeper.look()
            await trio.sleep(20)
            house.watch.foreign.clear()
            house.door.keeper.look()
            await trio.sleep(20)
        modes = [
            e.data.thread.mode
            for e in house.named("thread/changed")
            if isinstance(e.data, ThreadChanged)
        ]
        assert modes == [ThreadMode.FOLLOW, ThreadMode.STILL]


async def test_a_turn_whose_program_leaves_while_it_is_read_is_not_called_interrupted(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = held(house, "thr", "t1")
        append(stored, foreign_turn("t2"))
        house.runtime.at("list_turns", house.watch.locks.clear)
        params = ThreadReadParams(thread_id="thr")
        found = await house.door.reading.thread_read(LOCAL, params)
        assert found.turns[0].status is TurnStatus.IN_PROGRESS
        assert found.turns[0].inferred


async def test_a_sub_agent_of_a_followed_thread_is_told_under_its_root(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = held(house, "thr", "t1")
        async with following(house, "thr"):
            await trio.sleep(2)
            child = held(house, "kid")
            child.turns.append(make_turn("k1", "kid", TurnStatus.INTERRUPTED))
            spawned = Subagent(
                id="s1",
                turn_id="t2",
                status=ItemStatus.COMPLETED,
                action=SubagentAction.SPAWN,
                thread_id="kid",
                state=SubagentState.RUNNING,
            )
            turn = foreign_turn("t2")
            append(stored, turn.model_copy(update={"items": [spawned]}))
            await trio.sleep(5)
        told = [event for event in house.events if event.thread_id == "kid"]
        assert told
        assert {event.root_thread_id for event in told} == {"thr"}
        kinds = [e.data.event for e in told if isinstance(e, Emitted)]
        assert kinds[:2] == ["thread/started", "turn/started"]
