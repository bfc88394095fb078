"""Files of a folder by words: for who may see the folder, one search of a device at once."""

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from adapter.errors import CodexRefusedError, NoAnswerError
from agent.access.scopes import Caller
from tests.support.door import LOCAL, House, device, open_house
from tests.support.fake_runtime import FakeRuntime
from transport.errors import (
    Forbidden,
    InvalidParams,
    NotFound,
    Overloaded,
    RuntimeFailure,
    Timeout,
)
from transport.protocol.files import FileSearchParams


@pytest.fixture
def house_folder(tmp_path: Path) -> Path:
    """The Agent's own, beside the threads' folders."""
    (tmp_path / "agent").mkdir()
    return tmp_path / "agent"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / "src").mkdir(parents=True)
    for name in ("carts.py", "src/carts_test.py", "readme.md"):
        (folder / name).write_text("x")
    return folder


@pytest.fixture
def runtime(shop: Path) -> FakeRuntime:
    runtime = FakeRuntime()
    runtime.add("thr", "t1", cwd=str(shop))
    return runtime


async def found(
    house: House, caller: Caller = LOCAL, query: str = "carts", **where: str
) -> list[str]:
    params = FileSearchParams.model_validate({"query": query, **where})
    return (await house.door.file_search.search(caller, params)).paths


async def test_files_of_a_threads_folder_and_of_another_are_found(
    house_folder: Path, runtime: FakeRuntime, shop: Path, autojump_clock: MockClock
) -> None:
    async with open_house(house_folder, runtime=runtime) as house:
        whole = ["carts.py", "src/carts_test.py"]
        assert await found(house, threadId="thr") == whole
        assert await found(house, cwd=str(shop / "src")) == ["carts_test.py"]
        assert await found(house, query="src", threadId="thr") == []  # no folder
        with pytest.raises(InvalidParams):
            await found(house)
        with pytest.raises(InvalidParams):
            await found(house, threadId="thr", cwd=str(shop))


async def test_a_device_finds_files_of_its_own_folders_alone(
    house_folder: Path, runtime: FakeRuntime, shop: Path, autojump_clock: MockClock
) -> None:
    async with open_house(house_folder, runtime=runtime) as house:
        inner = device(roots=(str(shop / "src"),))
        assert await found(house, inner, cwd=str(shop / "src")) == ["carts_test.py"]
        with pytest.raises(Forbidden):
            await found(house, inner, cwd=str(shop))
        with pytest.raises(NotFound):
            await found(house, inner, threadId="thr")


async def test_a_newer_search_of_a_device_ends_its_older_one_and_no_others(
    house_folder: Path, runtime: FakeRuntime, shop: Path, autojump_clock: MockClock
) -> None:
    held = trio.Event()
    for _ in range(3):
        runtime.at("find_files", held.wait)
    ended: list[str] = []
    phone = device(roots=(str(shop),))

    async def ask(name: str, caller: Caller) -> None:
        try:
            await found(house, caller, cwd=str(shop))
            ended.append(f"{name} found")
        except Overloaded:
            ended.append(f"{name} replaced")

    async with (
        open_house(house_folder, runtime=runtime) as house,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(ask, "owner", LOCAL)
        nursery.start_soon(ask, "older", phone)
        await wait_all_tasks_blocked()
        nursery.start_soon(ask, "newer", phone)
        await wait_all_tasks_blocked()
        assert ended == ["older replaced"]
        held.set()
    assert sorted(ended[1:]) == ["newer found", "owner found"]


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (NoAnswerError("fuzzyFileSearch"), Timeout),
        (CodexRefusedError("fuzzyFileSearch", -32603, "no"), RuntimeFailure),
    ],
)
async def test_a_search_that_fails_is_told_as_what_it_is(
    house_folder: Path,
    runtime: FakeRuntime,
    autojump_clock: MockClock,
    error: Exception,
    refusal: type[Exception],
) -> None:
    def fails() -> None:
        raise error

    runtime.at("find_files", fails)
    async with open_house(house_folder, runtime=runtime) as house:
        with pytest.raises(refusal):
            await found(house, threadId="thr")
        assert await found(house, threadId="thr")  # and the next one is a new one
