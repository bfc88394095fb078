"""An answer of Codex that has not its documented shape is an `AnswerShapeError`, or read
as far as it goes: never another error, which would end a session or the reader."""

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, Final, cast

import pytest
from trio.testing import MockClock

from adapter.calls.commands import Command
from adapter.errors import AdapterError, AnswerShapeError, AnswerTooLongError
from adapter.runtime.reader import ThreadQuery
from adapter.servers.background import Background
from adapter.servers.reader import CodexReader
from tests.support import codex_says as says
from tests.support.answering_server import Say, Server
from tests.support.codex_says import THREAD, Raw

ODD: Final[tuple[Any, ...]] = (None, 5, "\ud800", "", [], {}, [5], {"type": 5}, True)
REVIEW: Final = says.turn("t1", "completed", items=[says.message("m1", "hi")])
INNER: Final = says.turn("t2", "interrupted", rootTurnId="t1", items=[says.user()])
ITEM: Final = {"turnId": "t1", "item": says.message("m1"), "startedAtMs": 1}
GOOD: Final[dict[str, Raw]] = {
    "thread/list": {"data": [says.thread()], "nextCursor": "n"},
    "thread/read": {"thread": says.thread()},
    "thread/turns/list": {"data": [INNER, REVIEW], "nextCursor": None},
    "thread/items/list": {"data": [ITEM], "nextCursor": None},
    "thread/items/read": {"data": [ITEM], "nextCursor": None},
    "thread/goal/get": {"goal": {"objective": "x", "status": "active"}},
    "thread/queue/list": {"data": [{"input": [{"type": "text", "text": "x"}]}]},
    "thread/search": {"data": [{"thread": says.thread(), "snippet": "x"}]},
    "thread/searchOccurrences": {
        "data": [{"turnId": "t1", "itemId": "m1", "snippet": "x"}]
    },
    "fuzzyFileSearch": {"files": [{"root": "/w", "path": "a"}]},
    "thread/backgroundTerminals/list": {
        "data": [{"itemId": "i", "processId": "7", "command": "c", "cwd": "/w"}]
    },
}


def unfit(value: Any) -> Iterator[Any]:
    """Every value with one part of it lacking, or another than it should be."""
    if isinstance(value, dict):
        whole = cast("Raw", value)
        for key, part in whole.items():
            yield {name: one for name, one in whole.items() if name != key}
            yield from ({**whole, key: odd} for odd in (*ODD, *unfit(part)))
    elif isinstance(value, list):
        rows: list[Any] = [*cast("list[object]", value)]
        for place, part in enumerate(rows):
            for odd in (*ODD, *unfit(part)):
                yield [*rows[:place], odd, *rows[place + 1 :]]


def pages(reader: CodexReader) -> list[Callable[[], Awaitable[object]]]:
    page: dict[str, Any] = {"cursor": None, "limit": 9, "order": "desc"}
    store = reader.contents
    return [
        lambda: reader.list_threads(ThreadQuery(limit=9)),
        lambda: reader.read_thread(THREAD),
        lambda: reader.list_turns(THREAD, **page, items="full"),
        lambda: reader.pending_work(THREAD),
        lambda: store.list_items(THREAD, turn_id="t1", **page),
        lambda: store.item_texts(THREAD, "m1", turn_id="t1"),
        lambda: store.item_texts(THREAD, "m1", turn_id=None),
        lambda: store.search("x", archived=False, cursor=None, limit=9),
        lambda: store.find(THREAD, "x", cursor=None, limit=9),
        lambda: store.find_files("x", folder="/w"),
    ]


def said(answers: dict[str, Raw], command: Command) -> Raw:
    return answers[command.method]


def listing(background: Background) -> Callable[[], Awaitable[object]]:
    return lambda: background.list_below(THREAD)


async def read_all(say: Say) -> list[AdapterError]:
    """Read everything of a Codex that answers so; return what was raised."""
    raised: list[AdapterError] = []
    server: Any = Server(say)
    for read in (*pages(CodexReader(server)), listing(Background(server))):
        try:
            await read()
        except AdapterError as exc:
            raised.append(exc)
    return raised


async def test_answers_as_documented_are_read(autojump_clock: MockClock) -> None:
    assert await read_all(partial(said, GOOD)) == []


@pytest.mark.parametrize("method", GOOD)
async def test_an_answer_that_does_not_fit_is_an_error_of_its_own(
    method: str, autojump_clock: MockClock
) -> None:
    for answer in unfit(GOOD[method]):
        answers = {**GOOD, method: answer}
        raised = await read_all(partial(said, answers))
        assert {type(exc) for exc in raised} <= {AnswerShapeError}


@pytest.mark.parametrize("method", ["thread/turns/list", "thread/items/list"])
async def test_so_is_one_of_a_turn_that_is_put_together_from_its_items(
    method: str, autojump_clock: MockClock
) -> None:
    for answer in unfit(GOOD[method]):

        def say(command: Command, answer: Raw = answer) -> Raw:
            if command.params.get("itemsView") == "full":
                raise AnswerTooLongError(command.method)
            return said({**GOOD, method: answer}, command)

        raised = await read_all(say)
        assert {type(exc) for exc in raised} <= {AnswerShapeError}
