"""Items, outputs, diffs and words of threads: for who may see them, whole or said."""

from pathlib import Path

import pytest
from trio.testing import MockClock

from adapter.runtime.store import HeldText
from agent.access.scopes import Caller
from agent.limits import OPEN_BYTES
from tests.support.door import LOCAL, House, device, open_house, send
from tests.support.fake_runtime import FakeRuntime
from transport.errors import InvalidParams, NotFound
from transport.protocol.contents import (
    ItemListParams,
    ItemListResult,
    ItemOutputParams,
    ItemOutputResult,
    ThreadDiffParams,
    ThreadFindParams,
    ThreadSearchParams,
)
from transport.protocol.events import DeltaChannel
from transport.protocol.items import (
    ChangeKind,
    Command,
    FileChange,
    FileDiff,
    ItemStatus,
)

DONE = ItemStatus.COMPLETED


@pytest.fixture
def runtime() -> FakeRuntime:
    runtime = FakeRuntime()
    runtime.add("thr", "t1", "t2", "t3")
    return runtime


async def listed(house: House, **more: object) -> ItemListResult:
    params = ItemListParams.model_validate({"threadId": "thr", **more})
    return await house.door.contents.item_list(LOCAL, params)


async def read(
    house: House, item_id: str, caller: Caller = LOCAL, **more: object
) -> ItemOutputResult:
    values = {"threadId": "thr", "itemId": item_id, "field": "output", **more}
    params = ItemOutputParams.model_validate(values)
    return await house.door.contents.item_output(caller, params)


async def test_items_are_paged_in_both_orders(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        first = await listed(house, limit=2)
        assert [one.id for one in first.items] == ["u-t1", "u-t2"]
        last = await listed(house, limit=2, cursor=first.next_cursor)
        assert [one.id for one in last.items] == ["u-t3"]
        assert last.next_cursor is None
        newest = await listed(house, limit=1, order="desc")
        assert [one.id for one in newest.items] == ["u-t3"]
        only = await listed(house, turnId="t2")
        assert [one.id for one in only.items] == ["u-t2"]
        with pytest.raises(InvalidParams):  # a cursor of another listing
            await listed(house, cursor=first.next_cursor, turnId="t2")


async def test_what_our_writer_has_in_progress_is_listed_at_the_newest_end(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        started = await house.door.admission.start_turn(LOCAL, send())
        assert started.turn is not None
        writer = runtime.live[0]
        command = Command(
            id="c1",
            turn_id=started.turn.id,
            status=ItemStatus.IN_PROGRESS,
            command="make",
            cwd="/work/app",
        )
        writer.begin_item(command)
        assert (await listed(house)).items[-1].id == "c1"
        assert (await listed(house, order="desc")).items[0].id == "c1"
        page = await listed(house, limit=1)
        assert [one.id for one in page.items] == ["u-t1"]
        writer.delta("c1", "half a l", DeltaChannel.OUTPUT)
        told = await read(house, "c1")
        assert (told.bytes, told.total, told.eof) == (b"half a l", None, True)
        writer.end_item(command.model_copy(update={"status": DONE, "output": "a line"}))
        told = await read(house, "c1", offset=2, limit=3)
        assert (told.bytes, told.available, told.total) == (b"lin", 6, 6)
        assert not told.eof
        assert (await read(house, "c1", offset=9)).bytes == b""
        assert "item_texts" not in runtime.log


async def test_of_what_is_in_progress_the_newest_is_listed_beside_a_page(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        started = await house.door.admission.start_turn(LOCAL, send())
        assert started.turn is not None
        for number in range(9):
            command = Command(
                id=f"c{number}",
                turn_id=started.turn.id,
                status=ItemStatus.IN_PROGRESS,
                command="x" * (OPEN_BYTES // 4),
                cwd="/work/app",
            )
            runtime.live[0].begin_item(command)
        items = (await listed(house)).items
        assert [one.id for one in items if one.id[0] == "c"] == ["c6", "c7", "c8"]


async def test_what_is_not_of_this_run_comes_from_history_with_its_gap(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    stored = HeldText(data=b"headtail", total=None, gap_at=4)
    runtime.threads["thr"].texts["c0"] = {("output", ""): stored}
    async with open_house(tmp_path, runtime=runtime) as house:
        told = await read(house, "c0")
        assert told == ItemOutputResult(
            bytes=b"headtail", available=8, total=None, gap_at=4, eof=True
        )
        with pytest.raises(InvalidParams):
            await read(house, "c0", field="text")
        with pytest.raises(NotFound) as caught:
            await read(house, "c9")
        assert caught.value.data == {"kind": "item", "id": "c9"}


async def test_one_of_several_diffs_has_to_be_named(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    texts = {
        ("diff", path): HeldText(data=path.encode(), total=2) for path in ("/a", "/b")
    }
    runtime.threads["thr"].texts["f"] = texts
    async with open_house(tmp_path, runtime=runtime) as house:
        assert (await read(house, "f", field="diff", path="/b")).bytes == b"/b"
        with pytest.raises(InvalidParams) as caught:
            await read(house, "f", field="diff")
        assert caught.value.data["field"] == "path"
        with pytest.raises(InvalidParams) as caught:
            await read(house, "f", field="diff", path="/c")
        assert caught.value.data["field"] == "path"


async def test_a_diff_is_of_one_turn_or_of_all(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    stored = runtime.threads["thr"]
    for number, turn in enumerate(stored.turns):
        diff = FileDiff(
            path=f"/w/{number}", change=ChangeKind.ADD, diff="x\n", added=1, removed=0
        )
        change = FileChange(
            id=f"f{number}", turn_id=turn.id, status=DONE, changes=[diff], files=1
        )
        stored.turns[number] = turn.model_copy(update={"items": [change]})
    async with open_house(tmp_path, runtime=runtime) as house:
        contents = house.door.contents
        whole = await contents.thread_diff(LOCAL, ThreadDiffParams(thread_id="thr"))
        assert [file.path for file in whole.files] == ["/w/0", "/w/1", "/w/2"]
        assert whole.diff.index("/w/0") < whole.diff.index("/w/2")
        one = await contents.thread_diff(
            LOCAL, ThreadDiffParams(thread_id="thr", turn_id="t2")
        )
        assert [file.path for file in one.files] == ["/w/1"]


async def test_words_in_hidden_threads_leave_no_trace(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    runtime = FakeRuntime()
    for number in range(250):
        hidden = number % 50 != 0
        runtime.add(f"thr-{number}", cwd="/hidden" if hidden else "/work/app")
    async with open_house(tmp_path, runtime=runtime) as house:
        words = house.door.words
        fenced = device("read")
        found: list[str] = []
        params = ThreadSearchParams(query="preview", limit=2)
        while True:
            page = await words.search(fenced, params)
            found += [hit.thread.id for hit in page.hits]
            assert len(page.hits) == min(2, 5 - len(found) + len(page.hits))
            assert all(hit.snippet == "… preview …" for hit in page.hits)
            if page.next_cursor is None:
                break
            params = params.model_copy(update={"cursor": page.next_cursor})
        assert found == [f"thr-{number}" for number in (0, 50, 100, 150, 200)]
        only_hidden = device("read", roots=["/nowhere"])
        nothing = await words.search(only_hidden, ThreadSearchParams(query="preview"))
        never = await words.search(only_hidden, ThreadSearchParams(query="aardvark"))
        assert (nothing.hits, nothing.next_cursor) == (never.hits, never.next_cursor)
        everything = await words.search(LOCAL, ThreadSearchParams(query="preview"))
        assert len(everything.hits) == 50
        assert everything.next_cursor is not None


async def test_a_thread_outside_the_folders_holds_nothing(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        contents, stranger = house.door.contents, device("read", roots=["/elsewhere"])
        started = await house.door.admission.start_turn(LOCAL, send())
        assert started.turn is not None
        runtime.live[0].say("a secret")
        calls = [
            contents.item_list(stranger, ItemListParams(thread_id="thr")),
            read(house, "item-2", stranger, field="text"),
            contents.thread_diff(stranger, ThreadDiffParams(thread_id="thr")),
            house.door.words.find(
                stranger, ThreadFindParams(thread_id="thr", query="secret")
            ),
        ]
        for call in calls:
            with pytest.raises(NotFound) as caught:
                await call
            assert caught.value.data == {"kind": "thread", "id": "thr"}


async def test_places_in_a_thread_are_found(
    tmp_path: Path, runtime: FakeRuntime, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path, runtime=runtime) as house:
        params = ThreadFindParams(thread_id="thr", query="question of t2")
        page = await house.door.words.find(LOCAL, params)
        assert [(hit.turn_id, hit.item_id) for hit in page.hits] == [("t2", "u-t2")]
