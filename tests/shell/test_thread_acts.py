"""Acts on whole threads: through the reader, once for a key, never beside a turn of ours."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from adapter.errors import CodexRefusedError, NoAnswerError
from agent.records.key_row import RowState
from agent.records.store import Store
from tests.support.door import LOCAL, House, device, open_house, send
from tests.support.fake_runtime import FakeRuntime
from tests.support.mutations import KEY, OTHER_KEY
from tests.support.thread_acts import (
    SEND_KEY,
    archive,
    delete,
    fork,
    rename,
    unanswered,
    unarchive,
)
from transport.errors import (
    CodexUnavailable,
    Conflict,
    Forbidden,
    InvalidParams,
    NotFound,
    NotResumable,
    OutcomeUnknown,
    RuntimeFailure,
    ThreadOwnedElsewhere,
)
from transport.protocol.events import ThreadChanged, ThreadRemoved
from transport.protocol.gateway import LeaseState
from transport.protocol.thread_acts import (
    ThreadDeleteResult,
)


@pytest.fixture
def runtime() -> FakeRuntime:
    runtime = FakeRuntime()
    runtime.add("thr", "t1", "t2")
    return runtime


async def test_a_rename_is_read_back_and_told(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        thread = await rename(house, "  A new\nname ")
        assert thread.title == "A new name"
        told = [event.data for event in house.named("thread/changed")]
        assert [one.thread.title for one in told if isinstance(one, ThreadChanged)] == [
            "A new name"
        ]
        assert runtime.writers == []


async def test_a_rename_leaves_a_running_turn_alone_and_its_writer_tells_the_new_name(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        await house.door.admission.start_turn(LOCAL, send(key=SEND_KEY))
        assert (await rename(house, "New")).title == "New"
        writer = runtime.live[0]
        assert writer.running_turn_id is not None
        writer.finish_turn()
        await trio.sleep(40)
        last = house.named("thread/changed")[-1].data
        assert isinstance(last, ThreadChanged)
        assert last.thread.title == "New"


async def test_what_is_so_already_is_not_sent_again(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        await rename(house, "New")
        await rename(house, "New")
        await rename(house, "New", key=OTHER_KEY)
        assert runtime.log.count("rename") == 1
        await unarchive(house, key=SEND_KEY)
        assert "unarchive" not in runtime.log


async def test_an_empty_name_and_an_archived_thread_are_refused(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        with pytest.raises(InvalidParams):
            await rename(house, " \n ")
        await archive(house)
        with pytest.raises(NotResumable):
            await rename(house, "New", key=OTHER_KEY)
        assert "rename" not in runtime.log


async def test_archiving_ends_our_idle_writer_first_and_is_told_once(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        await house.door.admission.start_turn(LOCAL, send(key=SEND_KEY))
        runtime.live[0].finish_turn()
        result = await archive(house)
        assert result.thread.archived
        assert runtime.live == []
        assert runtime.log.index("writer.close") < runtime.log.index("archive")
        assert result.thread.lease is LeaseState.NONE
        gone = [event.data for event in house.named("thread/removed")]
        assert gone == [ThreadRemoved(thread_id="thr", reason="archived")]
        back = await unarchive(house, key=OTHER_KEY)
        assert not back.thread.archived
        last = house.named("thread/changed")[-1].data
        assert isinstance(last, ThreadChanged)
        assert not last.thread.archived


@pytest.mark.parametrize("act", [archive, delete])
async def test_a_running_turn_of_ours_is_a_conflict(
    tmp_path: Path,
    runtime: FakeRuntime,
    autojump_clock: MockClock,
    act: Callable[[House], Awaitable[object]],
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        started = await house.door.admission.start_turn(LOCAL, send(key=SEND_KEY))
        assert started.turn is not None
        with pytest.raises(Conflict) as caught:
            await act(house)
        assert caught.value.data["what"] == "running"
        assert caught.value.data["turn"]["id"] == started.turn.id
        assert "archive" not in runtime.log
        assert runtime.live[0].running_turn_id == started.turn.id


async def test_a_command_in_the_background_is_not_killed_by_archiving(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        await house.door.admission.start_turn(LOCAL, send(key=SEND_KEY))
        writer = runtime.live[0]
        writer.busy_too = True
        writer.finish_turn()
        with pytest.raises(Conflict) as caught:
            await archive(house)
        assert caught.value.data["what"] == "running"
        assert runtime.live == [writer]


async def test_a_foreign_lock_is_named_and_waited_for(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    runtime.threads["thr"].locked_by = 77
    async with open_house(tmp_path, runtime=runtime) as house:
        with pytest.raises(ThreadOwnedElsewhere):
            await archive(house)

        async def give_back() -> None:
            await trio.sleep(2)
            runtime.threads["thr"].locked_by = None

        async with trio.open_nursery() as nursery:
            nursery.start_soon(give_back)
            result = await archive(house, wait_ms=10_000)
        assert result.thread.archived


async def test_nothing_is_done_while_the_desktop_is_there(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        runtime.at("rename", house.open_desktop)  # seen by the last look alone
        with pytest.raises(CodexUnavailable):
            await rename(house, "New")
        for act in (archive(house), delete(house), fork(house)):
            with pytest.raises(CodexUnavailable):
                await act
        assert runtime.threads["thr"].thread.title is None
        assert runtime.writers == []
        await house.close_desktop()
        assert (await rename(house, "New")).title == "New"  # its key was not used up


async def test_a_device_acts_on_no_thread_outside_its_folders(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        stranger = device("read", "write", roots=["/elsewhere"])
        with pytest.raises(NotFound):
            await rename(house, "New", caller=stranger)
        with pytest.raises(NotFound):
            await delete(house, caller=stranger)
        with pytest.raises(NotFound):
            await fork(house, stranger)
        with pytest.raises(Forbidden):
            await rename(house, "New", caller=device("read"))
        assert "thr" in runtime.threads
        assert runtime.threads["thr"].thread.title is None


async def test_a_deleted_thread_is_gone_and_the_key_still_says_so(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        await delete(house)
        assert "thr" not in runtime.threads
        assert await delete(house) == ThreadDeleteResult()
        assert runtime.log.count("delete") == 1
        with pytest.raises(NotFound):
            await delete(house, key=OTHER_KEY)


async def test_a_thread_that_forks_need_is_not_deleted(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        made = await fork(house)
        runtime.live[0].finish_turn()
        with pytest.raises(Conflict) as caught:
            await delete(house, key=OTHER_KEY)
        assert caught.value.data["what"] == "forks"
        await delete(house, thread_id=made.thread.id, key=OTHER_KEY)
        await delete(house, key="key-0000000000000000")
        assert runtime.threads == {}


async def test_an_act_that_nobody_answered_is_known_by_what_the_thread_is_like(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        runtime.at("archive:done", unanswered)
        assert (await archive(house)).thread.archived
        runtime.at("unarchive:done", unanswered)
        assert not (await unarchive(house, key=OTHER_KEY)).thread.archived
        runtime.at("delete:done", unanswered)
        assert await delete(house, key="key-0000000000000000") == ThreadDeleteResult()


async def test_an_unknown_outcome_is_settled_by_the_same_key_and_never_sent_again(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:

        def too_late() -> None:
            raise NoAnswerError("thread/name/set")

        async def not_yet() -> None:  # the guard has said yes, the answer is lost
            stored = runtime.threads["thr"]
            stored.thread = stored.thread.model_copy(update={"title": None})
            too_late()

        runtime.at("rename:done", not_yet)
        with pytest.raises(OutcomeUnknown):
            await rename(house, "New")
        with pytest.raises(OutcomeUnknown):
            await rename(house, "New")
        stored = runtime.threads["thr"]
        stored.thread = stored.thread.model_copy(update={"title": "New"})
        assert (await rename(house, "New")).title == "New"
        assert runtime.log.count("rename") == 1


async def test_an_agent_that_died_while_deleting_is_told_by_the_next_one(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        await delete(house)
    store = Store.open(tmp_path / "ledger.sqlite")
    row = store.find("local", KEY)
    assert row is not None
    store.put(replace(row, state=RowState.HANDED, outcome=None))  # as a crash leaves it
    store.close()
    store = Store.open(tmp_path / "ledger.sqlite")
    store.recover()
    async with open_house(tmp_path, runtime=runtime, store=store) as house:
        assert await delete(house) == ThreadDeleteResult()
        assert runtime.log.count("delete") == 1


async def test_a_refusal_leaves_the_key_free(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:

        def refuse() -> None:
            raise CodexRefusedError("thread/archive", -32603, "disk on fire")

        runtime.at("archive", refuse)
        with pytest.raises(RuntimeFailure):
            await archive(house)
        assert (await archive(house)).thread.archived
