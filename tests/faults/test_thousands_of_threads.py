"""A list of any length on real codex: a page is a page, in time and memory."""

from functools import partial
from pathlib import Path

import pytest
import trio

from agent.clocks import wall_ms
from tests.support.agents import client_info, pair_device
from tests.support.measures import in_time, quickest
from tests.support.page_by_page import every_thread
from tests.support.peak_memory import measured
from tests.support.real_agent import status
from tests.support.recorded_threads import VERSIONS, house, recorded
from tests.support.rollouts import forget_state
from transport.client import Client, EventSeen, Resumed, open_client
from transport.protocol import contents, methods, threads
from transport.protocol.events import RuntimeChanged
from transport.protocol.gateway import RuntimePhase

pytestmark = pytest.mark.codex


async def wait_ready(client: Client) -> None:
    """Return when Codex reads: it takes thousands of threads in before that."""
    async with client.subscribe("all") as events:
        assert isinstance(await anext(events), Resumed)
        runtime = (await status(client)).runtime
        while runtime.state is not RuntimePhase.READY:
            event = await anext(events)
            if isinstance(event, EventSeen) and isinstance(event.data, RuntimeChanged):
                runtime = event.data.runtime


@pytest.mark.parametrize(
    ("version", "count"),
    [
        (VERSIONS[0], 250),
        *(pytest.param(v, 5_000, marks=pytest.mark.long) for v in VERSIONS),
    ],
)
async def test_a_list_of_thousands_of_threads_is_read_page_by_page(
    version: str, count: int, tmp_path: Path
) -> None:
    """For who sees all of them, and for a device that may see every tenth."""
    with trio.fail_after(280):
        async with recorded(version) as (home, recording):
            folders = [tmp_path / "mine", *(tmp_path / f"p{n}" for n in range(9))]
            for folder in folders:
                folder.mkdir()
            now = wall_ms()
            mine: set[str] = set()
            for number in range(1, count + 1):
                at_ms = now - number * 1_000
                cwd = str(folders[number % 10])
                made = recording.write(
                    home.home, number=number, at_ms=at_ms, turns=1, cwd=cwd
                )
                if not number % 10:
                    mine.add(made)
            forget_state(home.home)
            async with house(home, version) as (built, client):
                device = await pair_device(built, only=[folders[0]])
                listing = threads.ThreadListParams(limit=100)
                await wait_ready(client)
                await client.call(methods.THREAD_LIST, listing)
                first_page = partial(client.call, methods.THREAD_LIST, listing)
                assert await quickest(first_page) < in_time(1)
                with measured() as peak:
                    page = await first_page()
                    assert len(page.threads) == 100
                    assert len(await every_thread(client)) == count + 1
                    assert peak() < 40
                async with open_client(
                    built.target(device), client_info("phone", "p" * 32)
                ) as phone:
                    assert await every_thread(phone) == mine
                    nowhere = threads.ThreadListParams(query="nowhere to be found")
                    assert not (await phone.call(methods.THREAD_LIST, nowhere)).threads
                    words = contents.ThreadSearchParams(query="Hello", limit=100)
                    found = await phone.call(methods.THREAD_SEARCH, words)
                    assert {hit.thread.id for hit in found.hits} <= mine
                    assert found.hits
