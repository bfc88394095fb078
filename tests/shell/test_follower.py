"""Following other programs' threads: when it reads, how much, and what it then tells."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import trio
from trio.testing import MockClock

from adapter.errors import CodexRefusedError, ThreadUnknownError
from adapter.runtime.events import Emitted
from agent.limits import FOLLOWED, LISTED
from agent.mutations.thread_wishes import Rename
from tests.support.door import HOLDER, LOCAL, OLD_CLI, House, open_house, send, wall_ms
from tests.support.fake_threads import AT, Stored, make_turn
from transport.background import open_background
from transport.protocol.events import (
    Notice,
    ThreadChanged,
    ThreadStarted,
    TurnCompleted,
    TurnStarted,
)
from transport.protocol.items import ItemStatus
from transport.protocol.thread_acts import ThreadRenameParams
from transport.protocol.threads import ThreadMode, ThreadReadParams, ThreadStatus
from transport.protocol.turns import Turn, TurnStatus
from transport.protocol.work_items import Subagent, SubagentAction, SubagentState


@asynccontextmanager
async def following(house: House, *threads: str) -> AsyncGenerator[None]:
    """Somebody is subscribed to these threads, or to all."""
    follower = house.door.follower
    async with open_background(follower.serve):
        await follower.prepare(threads or None)
        follower.want(house, frozenset(threads) if threads else None)
        yield
        follower.forget(house)


def held(house: House, thread_id: str = "thr", *turns: str) -> Stored:
    """A thread that another program has."""
    stored = house.runtime.add(thread_id, *turns)
    house.watch.locks[thread_id] = HOLDER
    return stored


def append(stored: Stored, turn: Turn) -> None:
    """The other program has added a turn, or goes on with its last one."""
    if stored.turns and stored.turns[-1].id == turn.id:
        stored.turns[-1] = turn
    else:
        stored.turns.append(turn)
    stored.thread = stored.thread.model_copy(update={"updated_at": wall_ms()})


def foreign_turn(turn_id: str, status: TurnStatus = TurnStatus.INTERRUPTED) -> Turn:
    """A turn as history tells it while it runs elsewhere, or its end."""
    return make_turn(turn_id, "thr", status).model_copy(
        update={"started_at": wall_ms()}
    )


def names(house: House) -> list[str]:
    """Return the events of threads so far; items by their id."""
    return [
        event.data.event if isinstance(event, Emitted) else event.item.id  # type: ignore[union-attr]  # no deltas here
        for event in house.events
        if event.thread_id is not None
    ]


def reads(house: House) -> int:
    return house.runtime.log.count("list_turns")


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


async def test_so_many_threads_are_followed_and_the_others_are_named(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        threads = [f"thr{n:02}" for n in range(FOLLOWED + 2)]
        for thread_id in threads:
            held(house, thread_id, "t1")
        async with following(house, *threads):
            await trio.sleep(60)
            before = reads(house)
            await trio.sleep(15)
            assert reads(house) - before == FOLLOWED
        notices = [e.data for e in house.named("notice")]
        assert [n.thread_id for n in notices if isinstance(n, Notice)] == threads[-2:]


async def test_a_thread_that_another_program_starts_is_told_to_who_wants_all(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("old", "t0")
        async with following(house):
            await trio.sleep(10)
            assert names(house) == []
            stored = held(house, "thr")
            unloaded = {"created_at": wall_ms(), "status": ThreadStatus.UNKNOWN}
            stored.thread = stored.thread.model_copy(update=unloaded)
            append(stored, foreign_turn("t1"))
            await trio.sleep(2)
            assert names(house) == [
                "thread/started",
                "turn/started",
                "u-t1",
                "notice",
            ]
            started = house.named("thread/started")[0].data
            assert isinstance(started, ThreadStarted)
            assert started.thread.mode is ThreadMode.FOLLOW
            assert started.thread.status is ThreadStatus.RUNNING


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


async def test_a_thread_that_leaves_the_list_is_removed_when_it_is_gone_for_certain(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        archived = house.runtime.add("thr", "t1")
        house.runtime.add("other", "t1")
        async with following(house):
            await trio.sleep(3)
            del house.runtime.threads["thr"]
            await trio.sleep(0.9)
            house.runtime.threads["thr"] = archived
            await trio.sleep(10)
            assert not house.named("thread/removed")
            archived.thread = archived.thread.model_copy(update={"archived": True})
            del house.runtime.threads["other"]
            await trio.sleep(10)
        gone = {e.thread_id: e.data.wire() for e in house.named("thread/removed")}
        assert gone["thr"]["reason"] == "archived"
        assert gone["other"]["reason"] == "deleted"


def renamed(stored: Stored, title: str) -> None:
    """Another program names the thread; Codex does not count that as a change of it."""
    stored.thread = stored.thread.model_copy(update={"title": title})


def titles(house: House) -> list[tuple[str | None, str | None]]:
    return [
        (event.thread_id, event.data.thread.title)
        for event in house.named("thread/changed")
        if isinstance(event.data, ThreadChanged)
    ]


async def test_a_name_that_another_program_gives_is_told_to_who_wants_all_or_that_one(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        one, other = house.runtime.add("thr", "t1"), house.runtime.add("other", "t1")
        async with following(house):
            await trio.sleep(3)
            renamed(one, "Tides")
            await trio.sleep(3)
            assert titles(house) == [("thr", "Tides")]
        async with following(house, "other"):
            await trio.sleep(3)
            renamed(other, "Ebb")
            await trio.sleep(30)
        assert titles(house) == [("thr", "Tides"), ("other", "Ebb")]


async def test_a_name_that_another_program_gives_a_thread_of_ours_is_told_while_it_runs(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        stored = house.runtime.add("thr", "t1")
        async with following(house, "thr"):
            await house.door.admission.start_turn(LOCAL, send("thr"))
            await trio.sleep(3)
            before = len(titles(house))
            renamed(stored, "Tides")
            await trio.sleep(3)
            assert titles(house)[before:] == [("thr", "Tides")]
            house.runtime.writers[0].finish_turn()
            await trio.sleep(60)
            assert {title for _, title in titles(house)[before:]} == {"Tides"}


async def test_a_name_that_a_device_gives_is_told_once(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1")
        async with following(house):
            await trio.sleep(3)
            params = ThreadRenameParams(
                thread_id="thr", name="Tides", request_key="r" * 32
            )
            await house.door.admission.fulfil(LOCAL, Rename(), params)
            await trio.sleep(30)
        assert titles(house) == [("thr", "Tides")]


async def test_a_thread_that_is_back_in_the_list_is_told_and_one_pushed_up_is_not(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        for count in range(LISTED + 1):  # one more than the list is read
            stored = house.runtime.add(f"thr{count:03}", "t1")
            at = {"updated_at": AT - count * 1_000, "created_at": AT - count * 1_000}
            stored.thread = stored.thread.model_copy(update=at)
        archived = house.runtime.threads["thr005"]
        async with following(house):
            await trio.sleep(3)
            archived.thread = archived.thread.model_copy(update={"archived": True})
            await trio.sleep(10)
            assert [e.thread_id for e in house.named("thread/removed")] == ["thr005"]
            assert titles(house) == []
            archived.thread = archived.thread.model_copy(update={"archived": False})
            await trio.sleep(10)
        assert titles(house) == [("thr005", None)]


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
