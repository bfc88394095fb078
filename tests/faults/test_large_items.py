"""Items of many megabytes on real codex: shown cut, read in parts, told once."""

from typing import Any

import pytest
import trio

from clients.cli.scripted_answers import Rule
from tests.support.codex import codex_binaries, open_codex_home
from tests.support.foreign import open_foreign
from tests.support.page_by_page import every_item, every_turn
from tests.support.peak_memory import measured
from tests.support.recorded_threads import (
    MB,
    RUN,
    VERSIONS,
    clone,
    enlarged,
    house,
    recorded,
)
from tests.support.rollouts import Recording
from transport.client import Client, EventSeen, Resumed
from transport.protocol import contents, methods, threads, turns
from transport.protocol.events import ItemCompleted, TurnCompleted
from transport.protocol.items import AgentMessage, Command

pytestmark = pytest.mark.codex


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
                with measured() as peak:
                    seen = await _read_back(client, thread_id, pages=5)
                    assert peak() < 120
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
                with measured() as peak:
                    page = await client.call(methods.THREAD_READ, read, timeout_s=60)
                    assert peak() < 250
                (turn,) = page.turns
                assert turn.more_items
                assert turn.items is not None
                assert isinstance(turn.items[-1], AgentMessage)
                shown = [one for one in turn.items if isinstance(one, Command)]
                assert shown
                assert all(one.output_bytes == 8 * MB for one in shown)
                items = await every_item(client, thread_id)
                assert len(items) == 7
                assert items[-len(turn.items) :] == [one.id for one in turn.items]


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
                with measured() as peak:
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
                    assert peak() < 60
                assert kinds == ["userMessage", "command", "agentMessage"]
