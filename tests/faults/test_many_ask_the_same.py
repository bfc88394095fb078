"""Many who ask the same at the same time cost Codex one request, and hold up nobody."""

from pathlib import Path

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support.door import LOCAL, open_house
from transport.protocol.contents import ThreadSearchParams, ThreadSearchResult
from transport.protocol.threads import ThreadListParams, ThreadReadParams


async def test_lists_and_searches_of_ten_clients_are_one_request_each_to_codex(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house, trio.open_nursery() as nursery:
        house.runtime.add("one", "t1")
        reading, door = house.door.reading, house.door
        held = trio.Event()
        house.runtime.at("list_threads", held.wait)
        house.runtime.at("search", held.wait)
        listed: list[list[str]] = []
        found: list[ThreadSearchResult] = []

        async def list_threads() -> None:
            page = await reading.thread_list(LOCAL, ThreadListParams())
            listed.append([one.id for one in page.threads])

        async def search() -> None:
            params = ThreadSearchParams(query="one")
            found.append(await door.words.search(LOCAL, params))

        for _ in range(10):
            nursery.start_soon(list_threads)
            nursery.start_soon(search)
        await wait_all_tasks_blocked()
        read = await reading.thread_read(LOCAL, ThreadReadParams(thread_id="one"))
        assert read.thread.id == "one", "a slow list holds up no other read"
        held.set()
        await wait_all_tasks_blocked()
        assert house.runtime.log.count("list_threads") == 1
        assert house.runtime.log.count("search") == 1
        assert listed == [["one"]] * 10
        assert found == [found[0]] * 10
