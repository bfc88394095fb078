"""Acts, uploads and what is looked through for a device: bounded, with a typed refusal."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from agent.access.scopes import LOCAL as OWNER
from agent.edge_limits import ACTS_A_DEVICE
from agent.errors import StoreFullError
from agent.files.file_search import FileSearch
from agent.following.follow import Told
from agent.following.snapshots import Snapshots
from agent.limits import (
    DIFF_HELD,
    DIFF_ITEMS,
    FILE_SEARCHES,
    OUTCOME_BYTES,
    OWNER_ROWS,
    REVERT_PAGES,
    ROWS,
    ROWS_A_DEVICE,
    SETTLE_PAGES,
    SETTLE_TURNS,
    THREADS_SCANNED,
    TURNS_REACHED,
    TURNS_READ,
)
from agent.mutations.outcomes import Outcomes
from agent.reading.contents import Contents
from agent.reading.fenced_list import fenced_page
from agent.records.key_row import KeyRow, RowState, done_row
from agent.records.store import Store
from agent.sessions.acts import Acts
from tests.support.door import LOCAL, open_house
from transport.errors import NotFound, Overloaded
from transport.protocol.contents import ThreadDiffParams
from transport.protocol.items import (
    AgentMessage,
    ChangeKind,
    FileChange,
    FileDiff,
    ItemStatus,
)
from transport.protocol.thread_acts import ThreadRevertParams
from transport.protocol.turns import Turn, TurnResult, TurnStatus


async def test_a_device_has_so_many_acts_under_way_and_others_are_not_held_up(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        acts, go_on = Acts(nursery), trio.Event()
        for _ in range(ACTS_A_DEVICE):
            acts.check_room("hog")
            await acts.start("hog", go_on.wait)
        with pytest.raises(Overloaded) as refused:
            acts.check_room("hog")
        assert refused.value.data == {"limit": ACTS_A_DEVICE}
        assert refused.value.retryable
        acts.check_room("other")
        acts.check_room(OWNER)
        go_on.set()
        await trio.testing.wait_all_tasks_blocked()
        acts.check_room("hog")


ROW = KeyRow(
    device="d1",
    key="k" * 16,
    digest="abc",
    method="turn/start",
    state=RowState.HANDED,
    thread="thr",
    last_turn="t1",
    turn=None,
    outcome=None,
    at=1_000,
)


def fill(store: Store, device: str, rows: int) -> None:
    """Let a device have so many finished rows, all of one moment."""
    db: Any = store._connection  # pyright: ignore[reportPrivateUsage]
    db.execute(
        "INSERT INTO keys WITH RECURSIVE n(value) AS (SELECT 1"
        " UNION ALL SELECT value + 1 FROM n WHERE value < ?)"
        " SELECT ?, 'k' || value, 'abc', 'turn/start', 'done', 'thr', NULL, NULL, '{}',"
        " 2 FROM n",
        (rows, device),
    )


def test_the_ledger_has_so_many_rows_for_a_device_and_for_all_and_for_the_owner(
    tmp_path: Path,
) -> None:
    store = Store.open(tmp_path / "ledger.sqlite")
    fill(store, "d0", ROWS_A_DEVICE - 1)
    store.hand(replace(ROW, device="d0"))
    with pytest.raises(StoreFullError) as own:
        store.hand(replace(ROW, device="d0", key="one more"))
    assert own.value.limit == ROWS_A_DEVICE
    assert own.value.of_one
    store.close()
    store = Store.open(tmp_path / "ledger.sqlite")  # as the next Agent counts them
    for number in range(1, ROWS // ROWS_A_DEVICE):
        fill(store, f"d{number}", ROWS_A_DEVICE)
    with pytest.raises(StoreFullError) as all_of_them:
        store.hand(replace(ROW, device="new"))
    assert all_of_them.value.limit == ROWS
    fill(store, OWNER, OWNER_ROWS - 1)
    store.hand(replace(ROW, device=OWNER))
    store.close()
    store = Store.open(tmp_path / "ledger.sqlite")
    with pytest.raises(StoreFullError) as owners:
        store.hand(replace(ROW, device=OWNER, key="one more"))
    assert owners.value.limit == OWNER_ROWS
    for number in range(ROWS // ROWS_A_DEVICE):
        assert store.find(f"d{number}", "k1") is not None
    store.close()


class Endless:
    """A store whose every page has another behind it. `asked`: the limits so far."""

    def __init__(self, items: tuple[Any, ...] = ()) -> None:
        self.asked: list[int] = []
        self.items = items
        self.contents = self
        self.reader = self

    async def list_items(self, _thread_id: str, *, limit: int, **_more: Any) -> Any:
        self.asked.append(limit)
        return SimpleNamespace(items=self.items, next_cursor="more")

    async def list_turns(self, _thread_id: str, *, limit: int, **_more: Any) -> Any:
        self.asked.append(limit)
        turns = [SimpleNamespace(id=f"{len(self.asked)}-{n}") for n in range(limit)]
        return SimpleNamespace(turns=turns, next_cursor="more")


def contents_of(store: Endless) -> Contents:
    class Sight:
        async def thread(self, *_: Any) -> None: ...

    contents = object.__new__(Contents)
    inside: dict[str, Any] = {
        "_head": lambda: 0,
        "_sight": Sight(),
        "_supervisor": store,
    }
    for name, value in inside.items():
        setattr(contents, name, value)
    return contents


@pytest.mark.parametrize(
    ("size", "most"),
    [(1, DIFF_ITEMS), (DIFF_HELD // 10 + 1, 10)],
    ids=["items", "bytes"],
)
async def test_a_diff_is_looked_together_among_so_many_items(
    size: int, most: int
) -> None:
    file = FileDiff(
        path="/a", change=ChangeKind.UPDATE, diff="x" * size, added=1, removed=0
    )
    item = FileChange(
        id="i", turn_id="t", status=ItemStatus.COMPLETED, changes=[file], files=1
    )
    store = Endless((item,))
    params = ThreadDiffParams(thread_id="thr")
    diff = await contents_of(store).thread_diff(LOCAL, params)
    assert diff.truncated
    assert len(store.asked) == most


async def test_of_a_thread_that_moved_on_so_many_turns_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lacks(_turns: Any, *, since: int | None) -> bool:
        return since is None

    store = Endless()
    nothing = cast("Any", None)
    snapshots = Snapshots(
        supervisor=cast("Any", store), keeper=nothing, watch=nothing, sight=nothing
    )
    told = Told("thr")
    monkeypatch.setattr(told.turns, "lacks", lacks)
    turns = await snapshots._turns("thr", told, None)  # pyright: ignore[reportPrivateUsage]
    assert store.asked[0] == TURNS_READ
    assert TURNS_REACHED <= len(turns) < TURNS_REACHED + store.asked[-1]


def outcomes_of(store: Endless) -> Outcomes:
    class Shared:
        async def key_is_shared(self, _row: Any) -> bool:
            return False

    way = SimpleNamespace(supervisor=store, ledger=Shared())
    outcomes = object.__new__(Outcomes)
    outcomes._way = cast("Any", way)  # pyright: ignore[reportPrivateUsage]
    return outcomes


async def test_a_message_is_looked_for_on_so_many_pages() -> None:
    store = Endless()
    found = await outcomes_of(store)._message(ROW)  # pyright: ignore[reportPrivateUsage]
    assert found is None
    assert len(store.asked) == SETTLE_PAGES


async def test_new_turns_are_counted_among_so_many() -> None:
    store = Endless()
    settled = await outcomes_of(store)._still_unknown(ROW)  # pyright: ignore[reportPrivateUsage]
    assert settled.new_turns is None
    assert store.asked == [SETTLE_TURNS]


async def test_a_fenced_list_gives_up_behind_so_many_threads_and_says_so() -> None:
    class Page:
        threads = ()
        next_cursor = "more"

    seen = 0

    async def ask(_cursor: str | None, count: int) -> Any:
        nonlocal seen
        seen += count
        return Page()

    async def show(_threads: Any) -> Any:
        return []

    rows, cursor = await fenced_page(ask, show, cursor=None, limit=5)
    assert (rows, cursor, seen) == ([], "more", THREADS_SCANNED)


async def test_a_turn_to_be_taken_back_is_looked_for_on_so_many_pages(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_house(tmp_path) as house:
        house.runtime.add("thr", "t1", "t2")
        store = Endless()
        monkeypatch.setattr(
            house.door.supervisor.reader, "list_turns", store.list_turns, raising=False
        )
        params = ThreadRevertParams(
            thread_id="thr", before_turn_id="lost", request_key="k" * 16
        )
        with pytest.raises(NotFound):
            await house.door.admission.revert(LOCAL, params)
        assert len(store.asked) % REVERT_PAGES == 0
        assert store.asked


def test_a_stored_answer_is_short_or_without_its_items() -> None:
    message = AgentMessage(
        id="i", turn_id="t", status=ItemStatus.COMPLETED, text="x" * OUTCOME_BYTES
    )
    turn = Turn(id="t", thread_id="thr", status=TurnStatus.COMPLETED, items=[message])
    done = done_row(ROW, TurnResult(turn=turn), turn="t", at=1)
    assert done.outcome is not None
    assert len(done.outcome) < 1_000
    assert json.loads(done.outcome)["turn"]["id"] == "t"


async def test_so_many_searches_for_files_walk_folders_at_once() -> None:
    walking, most = 0, 0

    class Store:
        async def find_files(self, _query: str, *, folder: str) -> Any:
            nonlocal walking, most
            walking += 1
            most = max(most, walking)
            await trio.testing.wait_all_tasks_blocked()
            walking -= 1
            return folder

    store = SimpleNamespace(reader=SimpleNamespace(contents=Store()))
    nothing = cast("Any", None)
    search = FileSearch(
        supervisor=cast("Any", store),
        sight=nothing,
        private=nothing,
        now_ms=lambda: 0,
    )
    async with trio.open_nursery() as nursery:
        for number in range(FILE_SEARCHES + 1):
            find = search._found  # pyright: ignore[reportPrivateUsage]
            nursery.start_soon(find, f"/{number}", "x")
    assert most == FILE_SEARCHES
