"""Following the list of threads: what others start, name, archive and bring back."""

from pathlib import Path

import trio
from trio.testing import MockClock

from agent.limits import FOLLOWED, LISTED
from agent.mutations.thread_wishes import Rename
from tests.support.door import LOCAL, House, open_house, send, wall_ms
from tests.support.fake_threads import AT, Stored
from tests.support.others_threads import (
    append,
    following,
    foreign_turn,
    held,
    names,
    reads,
)
from transport.protocol.events import (
    Notice,
    ThreadChanged,
    ThreadStarted,
)
from transport.protocol.thread_acts import ThreadRenameParams
from transport.protocol.threads import ThreadMode, ThreadStatus


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
