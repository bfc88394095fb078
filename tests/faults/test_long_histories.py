"""Histories of any length on real codex: a page is a page, in time, bytes and memory."""

import gc
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from agent.clocks import wall_ms
from clients.cli.scripted_answers import Rule
from tests.support.agents import House, client_info, pair_device
from tests.support.codex import (
    WITHOUT_LOCK,
    CodexHome,
    codex_binaries,
    open_codex_home,
)
from tests.support.door import FakeWatch
from tests.support.foreign import open_foreign
from tests.support.measures import in_time
from tests.support.real_agent import open_local, open_real_agent, status
from tests.support.rollouts import Recording, forget_state, take_in
from transport.client import Client, EventSeen, Resumed, open_client
from transport.errors import UnavailableFeature
from transport.protocol import contents, methods, threads, turns
from transport.protocol.events import ItemCompleted, RuntimeChanged, TurnCompleted
from transport.protocol.gateway import RuntimePhase
from transport.protocol.items import AgentMessage, Command, UserMessage

pytestmark = pytest.mark.codex
VERSIONS: Final = [v for v in ("0.163.0", "0.171.0") if v in codex_binaries()]
MB: Final = 1024 * 1024
RUN: Final = {"cmd": "seq 1 20", "yield_time_ms": 30_000, "max_output_tokens": 20}
RULES: Final = (
    Rule(
        "Count.",
        [[{"call": "exec_command", "args": RUN}], [{"msg": "Counted in the harbour."}]],
    ),
)


@asynccontextmanager
async def recorded(version: str) -> AsyncGenerator[tuple[CodexHome, Recording]]:
    """A home in which a real codex has recorded a thread of three turns."""
    async with open_codex_home(*RULES) as home:
        async with open_foreign(codex_binaries()[version], home.environ) as codex:
            thread_id = await codex.start_thread(home.workspace, "Hello.")
            await codex.turn(thread_id, "Count.")
            await codex.turn(thread_id, "Hello again.")
        yield home, Recording.of(home.home, thread_id)


@asynccontextmanager
async def house(home: CodexHome, version: str) -> AsyncGenerator[tuple[House, Client]]:
    async with (
        open_real_agent(home, version=version, watch=FakeWatch()) as built,
        open_local(built) as client,
    ):
        yield built, client


async def clone(
    home: CodexHome, version: str, recording: Recording, **wanted: Any
) -> str:
    """Write a clone that began so long ago that it ends now, and have it taken in."""
    count = wanted.get("turns") or len(recording.turns)
    began = wall_ms() - count * 60_000
    thread_id = recording.write(home.home, at_ms=began, **wanted)
    async with open_foreign(codex_binaries()[version], home.environ) as codex:
        await take_in(codex, thread_id)
    return thread_id


def peak_mb() -> float:
    """Return the most memory that this process, the Agent with it, has had so far."""
    line = next(
        one
        for one in Path("/proc/self/status").read_text().splitlines()
        if one.startswith("VmHWM")
    )
    return int(line.split()[1]) / 1024


def forget_peak() -> float:
    """Begin to measure the peak anew; return what is used now."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    return peak_mb()


async def wait_ready(client: Client) -> None:
    """Return when Codex reads: it takes thousands of threads in before that."""
    async with client.subscribe("all") as events:
        assert isinstance(await anext(events), Resumed)
        runtime = (await status(client)).runtime
        while runtime.state is not RuntimePhase.READY:
            event = await anext(events)
            if isinstance(event, EventSeen) and isinstance(event.data, RuntimeChanged):
                runtime = event.data.runtime


async def every_turn(client: Client, thread_id: str) -> list[str]:
    """Return the ids of all turns, oldest first, page by page."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        params = turns.TurnListParams(
            thread_id=thread_id, order="asc", items="none", limit=100, cursor=cursor
        )
        page = await client.call(methods.TURN_LIST, params, timeout_s=60)
        found += [turn.id for turn in page.turns]
        cursor = page.next_cursor
        if cursor is None:
            return found


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
                before = forget_peak()
                began = time.perf_counter()
                newest = await client.call(methods.THREAD_READ, read)
                took = time.perf_counter() - began
                assert took < in_time(1)
                assert peak_mb() - before < 10
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


def enlarged(size: int) -> Any:
    """Make every answer and every command's output of a clone that long."""

    def change(payload: dict[str, Any]) -> None:
        item = payload.get("item", {})
        if item.get("type") == "AgentMessage":
            item["content"] = [{"type": "Text", "text": "lorem ip" * (size // 8)}]
        if item.get("type") == "CommandExecution":
            item["aggregated_output"] = "0123456\n" * (size // 8)

    return change


@pytest.mark.parametrize(
    ("version", "count"),
    [
        (VERSIONS[0], 2),
        pytest.param(VERSIONS[-1], 50, marks=pytest.mark.long),
    ],
)
async def test_items_of_ten_megabytes_are_read_in_parts(
    version: str, count: int
) -> None:
    """Fifty turns: 500 MB, which Codex would tell in one line."""
    with trio.fail_after(280):
        async with recorded(version) as (home, recording):
            thread_id = await clone(
                home, version, recording, turns=count, change=enlarged(10 * MB)
            )
            async with house(home, version) as (_, client):
                newest_first = (await every_turn(client, thread_id))[::-1]
                before = forget_peak()
                seen = await _read_back(client, thread_id, pages=5)
                assert peak_mb() - before < 120
                assert [one.id for one in seen] == newest_first[: len(seen)], (
                    "no turn is left out, however short a page"
                )
                assert len(seen) == count or len(seen) >= 5
                await _read_in_parts(client, thread_id, seen[0])


async def _read_back(client: Client, thread_id: str, *, pages: int) -> list[turns.Turn]:
    """Read so many pages from the newest on; each comes soon and fits half a frame."""
    page = await client.call(
        methods.THREAD_READ, threads.ThreadReadParams(thread_id=thread_id, turns=50)
    )
    seen, cursor = [*page.turns], page.next_cursor
    while cursor is not None and (pages := pages - 1):
        params = turns.TurnListParams(thread_id=thread_id, items="full", cursor=cursor)
        more = await client.call(methods.TURN_LIST, params, timeout_s=20)
        assert sum(len(one.model_dump_json()) for one in more.turns) <= MB // 2
        seen += more.turns
        cursor = more.next_cursor
    return seen


async def _read_in_parts(client: Client, thread_id: str, turn: turns.Turn) -> None:
    """A text that is cut in its turn can be had whole, with its turn named or not."""
    answer = (turn.items or [])[-1]
    assert isinstance(answer, AgentMessage)
    assert answer.truncated == ["text"]
    assert answer.sizes == {"text": 10 * MB}
    for named in (turn.id, None):
        params = contents.ItemOutputParams(
            thread_id=thread_id,
            turn_id=named,
            item_id=answer.id,
            field="text",
            offset=10 * MB - 16,
        )
        part = await client.call(methods.ITEM_OUTPUT, params)
        assert (part.bytes, part.total, part.eof) == (
            b"lorem iplorem ip",
            10 * MB,
            True,
        )


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_turn_too_long_for_one_answer_is_shown_without_its_oldest_items(
    version: str,
) -> None:
    """Forty megabytes in five commands: whole screens that a tool has looked at."""
    steps: list[list[dict[str, Any]]] = [
        [{"call": "exec_command", "args": RUN}] for _ in range(5)
    ]
    rule = Rule("Work.", [*steps, [{"msg": "Done."}]])
    with trio.fail_after(280):
        async with open_codex_home(rule) as home:
            async with open_foreign(codex_binaries()[version], home.environ) as codex:
                made = await codex.start_thread(home.workspace, "Work.")
            recording = Recording.of(home.home, made)

            def change(payload: dict[str, Any]) -> None:
                item = payload.get("item", {})
                if item.get("type") == "CommandExecution":
                    item["aggregated_output"] = "0123456\n" * MB

            thread_id = await clone(home, version, recording, change=change)
            async with house(home, version) as (_, client):
                read = threads.ThreadReadParams(thread_id=thread_id, turns=1)
                before = forget_peak()
                page = await client.call(methods.THREAD_READ, read, timeout_s=60)
                assert peak_mb() - before < 250
                (turn,) = page.turns
                assert turn.more_items
                assert turn.items is not None
                assert isinstance(turn.items[-1], AgentMessage)
                shown = [one for one in turn.items if isinstance(one, Command)]
                assert shown
                assert all(one.output_bytes == 8 * MB for one in shown)
                items = await _every_item(client, thread_id)
                assert len(items) == 7
                assert items[-len(turn.items) :] == [one.id for one in turn.items]


async def _every_item(client: Client, thread_id: str) -> list[str]:
    found: list[str] = []
    cursor: str | None = None
    while True:
        params = contents.ItemListParams(
            thread_id=thread_id, limit=100, cursor=cursor, order="asc"
        )
        page = await client.call(methods.ITEM_LIST, params, timeout_s=60)
        found += [item.id for item in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return found


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
                before = forget_peak()
                began = time.perf_counter()
                page = await client.call(methods.THREAD_LIST, listing)
                assert time.perf_counter() - began < in_time(1)
                assert len(page.threads) == 100
                assert len(await every_thread(client)) == count + 1
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
                assert peak_mb() - before < 40


async def every_thread(client: Client) -> set[str]:
    found: list[str] = []
    cursor: str | None = None
    while True:
        params = threads.ThreadListParams(limit=100, cursor=cursor)
        page = await client.call(methods.THREAD_LIST, params)
        found += [thread.id for thread in page.threads]
        cursor = page.next_cursor
        if cursor is None:
            assert len(found) == len(set(found)), "none is listed twice"
            return set(found)


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
                before = forget_peak()
                began_at = time.perf_counter()
                page = await client.call(methods.THREAD_READ, read)
                assert time.perf_counter() - began_at < in_time(3)
                assert peak_mb() - before < 15
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
                assert not await _every_item(client, thread_id)
                diff = contents.ThreadDiffParams(thread_id=thread_id)
                assert not (await client.call(methods.THREAD_DIFF, diff)).files


@pytest.mark.parametrize("version", VERSIONS[-1:])
async def test_a_long_thread_that_another_program_continues_is_followed(
    version: str,
) -> None:
    """Only what is new is told, though everything in the thread is large."""
    with trio.fail_after(240):
        async with recorded(version) as (home, recording):
            thread_id = await clone(
                home, version, recording, turns=20, change=enlarged(MB)
            )
            async with (
                house(home, version) as (_, client),
                client.subscribe([thread_id], deltas=False) as events,
                open_foreign(codex_binaries()[version], home.environ) as other,
            ):
                async for event in events:
                    if isinstance(event, Resumed):
                        break
                before = forget_peak()
                await other.request(
                    "thread/resume", {"threadId": thread_id, "excludeTurns": True}
                )
                turn = await other.turn(thread_id, "Count.")
                kinds: list[str] = []
                async for event in events:
                    match event:
                        case EventSeen(data=ItemCompleted(item=item)):
                            assert item.turn_id == turn["id"]
                            kinds.append(item.kind)
                        case EventSeen(data=TurnCompleted(turn=ended)):
                            assert ended.id == turn["id"]
                            break
                        case _:
                            pass
                assert kinds == ["userMessage", "command", "agentMessage"]
                assert peak_mb() - before < 60
