"""What is asked of one app-server, and what is taken of its answers, is bounded."""

from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from adapter.calls.commands import Command
from adapter.calls.proof import SteerProof
from adapter.calls.refusals import BEHIND
from adapter.errors import CodexOverloadedError, CodexRefusedError
from adapter.limits import (
    BACKGROUND_SHOWN,
    BOUNDARY_PAGES,
    COMMAND_BYTES,
    FILES_FOUND,
    FORK_TRIES,
    ITEMS_LOOKED,
    MODEL_PAGES,
    PATH_BYTES,
    QUEUE_SHOWN,
    QUEUE_TEXT,
    SCANNED,
    SNIPPET_CHARS,
    STEERS_WATCHED,
)
from adapter.runtime.reader import ThreadQuery
from adapter.servers.background import Background
from adapter.servers.forking import take_fork
from adapter.servers.reader import CodexReader
from adapter.servers.review_turns import told_turns
from adapter.servers.steering import Steering
from adapter.shapes.shapes import wire_id
from tests.support import codex_says as says
from tests.support.answering_server import Say, Server
from tests.support.codex_says import THREAD, Raw


def reader_of(say: Say) -> tuple[CodexReader, Server]:
    server = Server(say)
    return CodexReader(cast("Any", server)), server


async def test_models_are_read_of_so_many_pages() -> None:
    reader, server = reader_of(lambda _command: {"data": [], "nextCursor": "more"})
    assert await reader.list_models() == ()
    assert len(server.asked) == MODEL_PAGES


async def test_of_what_waits_in_codex_s_own_queue_so_much_is_named() -> None:
    parts = [{"type": "text", "text": "x" * 2 * QUEUE_TEXT}]
    rows = [{"id": f"q{n}", "input": parts} for n in range(QUEUE_SHOWN + 1)]

    def say(command: Command) -> Raw:
        return {"data": rows, "goal": None, "nextCursor": None}

    reader, _ = reader_of(say)
    queue = await reader._queue(THREAD)  # pyright: ignore[reportPrivateUsage]
    assert [len(one) for one in queue] == [QUEUE_TEXT] * QUEUE_SHOWN


async def test_a_scan_looks_at_the_newest_threads(autojump_clock: MockClock) -> None:
    reader, server = reader_of(lambda _command: {"data": [], "nextCursor": None})
    async with trio.open_nursery() as nursery:
        await nursery.start(reader.serve_scans)
        await reader.list_threads(ThreadQuery(limit=7))
        limits = [one.params["limit"] for one in server.asked]
        assert sorted(limits) == [7, SCANNED]
        nursery.cancel_scope.cancel()


async def test_how_histories_are_kept_is_remembered_of_so_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("adapter.servers.thread_kinds.KNOWN_MODES", 3)
    names = iter(f"t{number}" for number in range(9))
    reader, _ = reader_of(lambda _command: {"thread": says.thread(next(names))})
    for number in range(9):
        await reader.read_thread(f"t{number}")
        kinds = reader._kinds._kinds  # pyright: ignore[reportPrivateUsage]
        assert len(kinds) <= 3
        assert f"t{number}" in kinds


async def test_an_item_without_its_turn_is_looked_for_among_so_many() -> None:
    def say(command: Command) -> Raw:
        count = command.params["limit"]
        rows = [{"turnId": "t", "item": says.message(f"m{n}")} for n in range(count)]
        return {"data": rows, "nextCursor": "more"}

    reader, server = reader_of(say)
    texts = await reader.contents.item_texts(THREAD, "lost", turn_id=None)
    assert texts is None
    items = [one.params for one in server.asked if "items" in one.method]
    assert sum(one["limit"] for one in items) == ITEMS_LOOKED


async def test_the_line_of_a_hit_is_short() -> None:
    hit = {"turnId": "t", "itemId": "i", "snippet": "x" * 2 * SNIPPET_CHARS}
    child = says.thread(parentThreadId="root")

    def say(_command: Command) -> Raw:
        return {"data": [hit], "nextCursor": None, "thread": child}

    reader, _ = reader_of(say)
    found = await reader.contents.find(THREAD, "x", cursor=None, limit=5)
    assert [len(one.snippet) for one in found.hits] == [SNIPPET_CHARS]


async def test_a_fork_is_tried_so_often(autojump_clock: MockClock) -> None:
    def say(_command: Command) -> Raw:
        raise CodexRefusedError("thread/fork", -32600, f"it {BEHIND}")

    server = Server(say)
    with pytest.raises(CodexRefusedError):
        await take_fork(
            cast("Any", server), THREAD, through="t", before=None, guard=lambda: None
        )
    assert len(server.asked) == FORK_TRIES


async def test_turns_of_reviews_are_looked_for_on_so_many_pages() -> None:
    server = Server(lambda _command: {"data": [], "nextCursor": "more"})
    assert await told_turns(server.call, THREAD, {"lost"}) == {}
    assert len(server.asked) == BOUNDARY_PAGES


async def test_background_commands_are_listed_short_and_so_many() -> None:
    long = "x" * 2 * PATH_BYTES
    rows = [
        {"itemId": f"i{n}", "processId": "7", "command": long, "cwd": long}
        for n in range(BACKGROUND_SHOWN + 1)
    ]
    server = Server(lambda _command: {"data": rows})
    listed = await Background(cast("Any", server)).list_below(THREAD)
    assert len(listed) == BACKGROUND_SHOWN
    assert {len(one.command) for one in listed} == {COMMAND_BYTES}
    assert {len(one.cwd) for one in listed} == {PATH_BYTES}


async def test_a_background_command_with_a_strange_id_is_listed_under_a_legal_one() -> (
    None
):
    row = {"itemId": "call 1/?", "processId": "7", "command": "c", "cwd": "/w"}
    server = Server(lambda _command: {"data": [row], "terminated": True})
    background = Background(cast("Any", server))
    (listed,) = await background.list_below(THREAD)
    assert listed.item_id == wire_id("call 1/?") != "call 1/?"
    await background.stop(THREAD, listed.item_id)
    assert server.asked[-1].params["processId"] == "7"


async def test_so_many_steers_wait_for_the_model_and_the_next_is_refused() -> None:
    server = Server(lambda _command: {})
    steering = Steering(cast("Any", server))
    for number in range(STEERS_WATCHED):
        proof = SteerProof(THREAD, "t", f"key{number}")
        steering._watch_on(proof)  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(CodexOverloadedError):
        await steering.run(
            THREAD, "t", ["more"], client_key="k", guard=lambda: pytest.fail("sent")
        )
    assert server.asked == []


async def test_so_many_files_are_found_and_it_is_said_that_there_may_be_more() -> None:
    rows = [{"root": "/w", "path": f"{n}"} for n in range(FILES_FOUND + 1)]
    reader, _ = reader_of(lambda _command: {"files": rows})
    found = await reader.contents.find_files("x", folder="/w")
    assert (len(found.paths), found.truncated) == (FILES_FOUND, True)
