"""Histories of any length on real codex: a page is a page, in time, bytes and memory."""

from functools import partial

import pytest
import trio

from agent.clocks import wall_ms
from tests.support.codex import WITHOUT_LOCK
from tests.support.measures import in_time, quickest
from tests.support.page_by_page import every_item, every_turn
from tests.support.peak_memory import measured
from tests.support.recorded_threads import VERSIONS, clone, house, recorded
from tests.support.rollouts import forget_state
from transport.client import Client
from transport.errors import UnavailableFeature
from transport.protocol import contents, methods, threads
from transport.protocol.items import UserMessage

pytestmark = pytest.mark.codex


@pytest.mark.parametrize(
    ("version", "count"),
    [
        (VERSIONS[-1], 300),
        *(pytest.param(v, 2_000, marks=pytest.mark.long) for v in VERSIONS),
    ],
)
async def test_a_page_of_a_long_thread_costs_what_a_page_costs(
    version: str, count: int
) -> None:
    with trio.fail_after(240):
        async with recorded(version) as (home, recording):
            thread_id = await clone(home, version, recording, turns=count)
            async with house(home, version) as (_, client):
                read = threads.ThreadReadParams(thread_id=thread_id, turns=20)
                await client.call(methods.THREAD_READ, read)  # all is imported now
                first_page = partial(client.call, methods.THREAD_READ, read)
                assert await quickest(first_page) < in_time(1)
                with measured() as peak:
                    newest = await first_page()
                    assert peak() < 10
                assert len(newest.turns) == 20
                assert newest.next_cursor is not None
                whole = await every_turn(client, thread_id)
                assert len(whole) == len(set(whole)) == count
                assert [one.id for one in newest.turns] == whole[:-21:-1]
                await _find_the_first(client, thread_id, whole[0])


async def _find_the_first(client: Client, thread_id: str, first: str) -> None:
    """Its oldest words are found, and its oldest item is read by its id."""
    params = contents.ThreadFindParams(thread_id=thread_id, query="harbour", limit=5)
    found = await client.call(methods.THREAD_FIND, params)
    assert len(found.hits) == 5
    assert found.next_cursor is not None
    oldest = contents.ItemListParams(thread_id=thread_id, turn_id=first)
    items = (await client.call(methods.ITEM_LIST, oldest)).items
    assert isinstance(items[0], UserMessage)
    output = contents.ItemOutputParams(
        thread_id=thread_id, turn_id=first, item_id=items[0].id, field="text"
    )
    assert (await client.call(methods.ITEM_OUTPUT, output)).bytes == b"Hello."


@pytest.mark.parametrize(
    ("version", "count"),
    [
        (VERSIONS[-1], 200),
        *(pytest.param(v, 2_000, marks=pytest.mark.long) for v in VERSIONS),
    ],
)
async def test_a_long_thread_of_an_old_codex_is_read_by_its_turns(
    version: str, count: int
) -> None:
    with trio.fail_after(240):
        async with recorded(WITHOUT_LOCK) as (home, recording):
            began = wall_ms() - count * 60_000
            thread_id = recording.write(home.home, at_ms=began, turns=count)
            forget_state(home.home)
            async with house(home, version) as (_, client):
                read = threads.ThreadReadParams(thread_id=thread_id, turns=20)
                await client.call(methods.THREAD_READ, read)
                first_page = partial(client.call, methods.THREAD_READ, read)
                assert await quickest(first_page) < in_time(3)
                with measured() as peak:
                    page = await first_page()
                    assert peak() < 15
                assert len(page.turns) == 20
                assert len(await every_turn(client, thread_id)) == count
                (question, *_) = page.turns[0].items or []
                assert isinstance(question, UserMessage)
                assert question.stable_id is False
                params = contents.ItemOutputParams(
                    thread_id=thread_id,
                    turn_id=page.turns[0].id,
                    item_id=question.id,
                    field="text",
                )
                part = await client.call(methods.ITEM_OUTPUT, params)
                assert part.bytes.decode() == question.text
                words = contents.ThreadFindParams(thread_id=thread_id, query="harbour")
                with pytest.raises(UnavailableFeature):
                    await client.call(methods.THREAD_FIND, words)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_thread_before_its_first_turn_is_empty_and_not_an_error(
    version: str,
) -> None:
    """What a codex leaves that is killed right behind `thread/start`."""
    with trio.fail_after(240):
        async with recorded(version) as (home, recording):
            now = wall_ms()
            thread_id = recording.write(home.home, at_ms=now, turns=0)
            async with house(home, version) as (_, client):
                read = threads.ThreadReadParams(thread_id=thread_id, turns=20)
                page = await client.call(methods.THREAD_READ, read)
                assert (page.turns, page.next_cursor) == ([], None)
                assert not await every_turn(client, thread_id)
                assert not await every_item(client, thread_id)
                diff = contents.ThreadDiffParams(thread_id=thread_id)
                assert not (await client.call(methods.THREAD_DIFF, diff)).files
