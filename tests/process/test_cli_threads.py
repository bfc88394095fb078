"""Commands about whole threads, against an Agent that says what the test tells it."""

import json
from pathlib import Path

import pytest

from clients.cli import contents, keeping, starting
from clients.cli.exits import ExitCode, UsageProblemError
from tests.support import cli_samples as samples
from tests.support.cli_runs import noted, paper, printed
from tests.support.cli_samples import SHOP
from tests.support.fake_agent import Answer, Frame, fake
from transport.protocol.contents import (
    ChangedFile,
    ItemHit,
    ItemListResult,
    ItemOutputResult,
    ThreadDiffResult,
    ThreadFindResult,
    ThreadHit,
    ThreadSearchResult,
)
from transport.protocol.files import FileSearchResult
from transport.protocol.items import Command, ItemStatus
from transport.protocol.thread_acts import ThreadDeleteResult, ThreadForkResult
from transport.protocol.threads import ThreadResult
from transport.protocol.turns import TurnStatus

COMMAND = Command(
    id="call_7", turn_id="turn-0", status=ItemStatus.COMPLETED, command="make", cwd="/w"
)


def output_of(params: Frame) -> ItemOutputResult:
    """An output of eight bytes, given in parts of five; two more were lost."""
    data = b"head\x1b[2Jl"[params.get("offset", 0) :][:5]
    end = params.get("offset", 0) + len(data)
    return ItemOutputResult(bytes=data, available=9, total=11, gap_at=4, eof=end >= 9)


OUTPUT: dict[str, Answer] = {
    "item/list": lambda _: ItemListResult(items=[COMMAND], head=1),
    "item/output": output_of,
}


async def test_an_output_is_put_together_and_says_what_is_missing(state: Path) -> None:
    async with fake(state, OUTPUT) as agent:
        screen = paper()
        code = await contents.output(
            screen, host=None, thread=SHOP, item=None, field="output", path=None
        )
    assert code == ExitCode.OK
    assert printed(screen) == "headl\n"  # what a terminal would obey is left out
    assert noted(screen) == "2 of 11 bytes are not here (behind the first 4 bytes)\n"
    asked = agent.called("item/output")
    assert [params.get("offset", 0) for params in asked] == [0, 5]
    assert asked[0]["itemId"] == "call_7"


async def test_an_output_as_json_has_its_text_whole(state: Path) -> None:
    async with fake(state, OUTPUT):
        screen = paper(as_json=True)
        await contents.output(
            screen, host=None, thread=SHOP, item="call", field="output", path=None
        )
    told = json.loads(printed(screen))
    assert told["text"] == "head\x1b[2Jl"
    assert (told["total"], told["gapAt"], told["itemId"]) == (11, 4, "call_7")


async def test_a_diff_names_its_files_first(state: Path) -> None:
    told = ThreadDiffResult(
        diff="--- /w/a\n+++ /w/a\n@@ -1 +1 @@\n-x\n+y\n",
        files=[ChangedFile(path="/w/a", added=1, removed=1)],
        truncated=True,
        head=1,
    )
    async with fake(state, {"thread/diff": lambda _: told}):
        screen = paper()
        assert not await contents.diff(screen, host=None, thread=SHOP, turn=None)
    assert printed(screen).splitlines()[:3] == ["/w/a  +1 -1", "", "--- /w/a"]
    assert "not all" in noted(screen)


async def test_words_are_found_in_threads_and_in_one(state: Path) -> None:
    hit = ThreadHit(thread=samples.thread(), snippet="two\x1b[31m carts")
    place = ItemHit(turn_id="turn-0", item_id="msg_1", snippet="two carts")
    answers: dict[str, Answer] = {
        "thread/search": lambda _: ThreadSearchResult(hits=[hit], head=1),
        "thread/find": lambda _: ThreadFindResult(hits=[place], head=1),
    }
    async with fake(state, answers) as agent:
        screen = paper()
        await contents.search(screen, "carts", host=None, archived=True, count=3)
        await contents.find(screen, "carts", host=None, thread=SHOP, count=3)
        assert agent.called("thread/search") == [
            {"query": "carts", "archived": True, "limit": 3}
        ]
    assert "two carts" in printed(screen).splitlines()[1]
    assert printed(screen).splitlines()[-1] == "msg_1  two carts"


async def test_files_are_found_for_a_mention(state: Path) -> None:
    told = FileSearchResult(paths=["src/carts.py", "a\x1b[2Jb"], truncated=True)
    async with fake(state, {"file/search": lambda _: told}) as agent:
        screen = paper()
        await contents.files(screen, "carts", host=None, thread=SHOP[:5], cwd=None)
        assert printed(screen) == "src/carts.py\na\\x1b[2Jb\n"
        assert "may be more" in noted(screen)
        screen = paper(as_json=True)
        await contents.files(screen, "carts", host=None, thread=None, cwd="/w")
        await contents.files(paper(), "carts", host=None, thread=None, cwd=".")
        assert json.loads(printed(screen)) == told.wire()
        assert agent.called("file/search") == [
            {"threadId": SHOP, "query": "carts"},
            {"cwd": "/w", "query": "carts"},
            {"cwd": str(Path.cwd()), "query": "carts"},
        ]


async def test_nothing_is_deleted_without_a_yes(state: Path) -> None:
    async with fake(state, {"thread/delete": lambda _: ThreadDeleteResult()}) as agent:
        with pytest.raises(UsageProblemError):  # nobody is there to be asked
            await keeping.delete(paper(), host=None, thread=SHOP, yes=False, wait_ms=0)
        assert agent.called("thread/delete") == []
        screen = paper()
        await keeping.delete(screen, host=None, thread=SHOP, yes=True, wait_ms=0)
        (params,) = agent.called("thread/delete")
        assert params["threadId"] == SHOP
    assert printed(screen).startswith(f"{SHOP} is deleted")


async def test_a_thread_is_named_and_moved(state: Path) -> None:
    renamed = samples.thread().model_copy(update={"title": "Carts"})
    answer = ThreadResult(thread=renamed)
    answers: dict[str, Answer] = {
        f"thread/{act}": lambda _: answer for act in ("rename", "archive", "unarchive")
    }
    async with fake(state, answers) as agent:
        screen = paper()
        await keeping.rename(screen, host=None, thread=SHOP, name="Carts", wait_ms=5)
        await keeping.archive(screen, host=None, thread=SHOP, wait_ms=0)
        await keeping.unarchive(screen, host=None, thread=SHOP, wait_ms=0)
        assert agent.called("thread/rename")[0]["waitMs"] == 5
        keys = [
            agent.called(f"thread/{act}")[0]["requestKey"]
            for act in ("archive", "unarchive")
        ]
        assert len(set(keys)) == 2
    assert printed(screen).splitlines() == [
        f"{SHOP} is called Carts",
        f"{SHOP} is archived: Carts",
        f"{SHOP} is back: Carts",
    ]


async def test_a_fork_says_where_it_went(state: Path) -> None:
    turn = samples.turn(status=TurnStatus.IN_PROGRESS)
    made = ThreadForkResult(thread=samples.thread(), turn=turn)
    async with fake(state, {"thread/fork": lambda _: made}) as agent:
        screen = paper()
        await starting.fork(
            screen,
            "another way",
            host=None,
            thread=SHOP,
            through=None,
            before="turn-0",
            follow=False,
            wait_ms=0,
            key="key-0123456789abcdef",
        )
        (params,) = agent.called("thread/fork")
    assert params["beforeTurnId"] == "turn-0"
    assert params["input"] == [{"type": "text", "text": "another way"}]
    assert printed(screen) == f"forked to {SHOP} as turn {turn.id}\n"
