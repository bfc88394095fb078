"""Acts on whole threads: through the reader, once for a key, never beside a turn of ours."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from adapter.errors import CodexRefusedError, DiedUnansweredError, NoAnswerError
from agent.access.scopes import Caller
from agent.mutations.thread_wishes import Archive, Delete, Rename, Unarchive
from agent.records.store import RowState, Store
from tests.support.door import LOCAL, House, device, open_house, send
from tests.support.fake_runtime import FakeRuntime
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
    ThreadArchiveParams,
    ThreadDeleteParams,
    ThreadDeleteResult,
    ThreadForkParams,
    ThreadForkResult,
    ThreadRenameParams,
    ThreadUnarchiveParams,
)
from transport.protocol.threads import Thread, ThreadResult
from transport.protocol.turns import TextInput, TurnStatus

KEY = "key-0123456789abcdef"
OTHER_KEY = "key-fedcba9876543210"
SEND_KEY = "key-for-a-message-0"


@pytest.fixture
def runtime() -> FakeRuntime:
    runtime = FakeRuntime()
    runtime.add("thr", "t1", "t2")
    return runtime


async def rename(
    house: House, name: str, *, caller: Caller = LOCAL, key: str = KEY
) -> Thread:
    params = ThreadRenameParams(thread_id="thr", name=name, request_key=key)
    return (await house.door.thread_acts.run(caller, Rename(), params)).thread


async def archive(house: House, *, key: str = KEY, wait_ms: int = 0) -> ThreadResult:
    params = ThreadArchiveParams(thread_id="thr", request_key=key, wait_ms=wait_ms)
    return await house.door.thread_acts.run(LOCAL, Archive(), params)


async def unarchive(house: House, *, key: str = KEY) -> ThreadResult:
    params = ThreadUnarchiveParams(thread_id="thr", request_key=key)
    return await house.door.thread_acts.run(LOCAL, Unarchive(), params)


async def delete(
    house: House,
    *,
    thread_id: str = "thr",
    key: str = KEY,
    caller: Caller = LOCAL,
) -> ThreadDeleteResult:
    params = ThreadDeleteParams(thread_id=thread_id, request_key=key)
    return await house.door.thread_acts.run(caller, Delete(), params)


async def fork(
    house: House, caller: Caller = LOCAL, /, **turns: str | int
) -> ThreadForkResult:
    params = ThreadForkParams(
        thread_id="thr",
        input=[TextInput(type="text", text="another way")],
        request_key=KEY,
    ).model_copy(update=turns)
    return await house.door.thread_fork.run(caller, params)


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


def unanswered() -> None:
    raise NoAnswerError("thread/archive")


def died() -> None:
    raise DiedUnansweredError("thread/turns/list")


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
