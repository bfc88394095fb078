"""Whole threads on real codex: items, outputs, diffs, words, names, places, forks."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from clients.cli.scripted_answers import Rule
from tests.support.agents import House, client_info, pair_device
from tests.support.codex import (
    WITHOUT_LOCK,
    CodexHome,
    codex_binaries,
    open_codex_home,
)
from tests.support.door import FakeWatch
from tests.support.real_agent import (
    lock_files,
    open_local,
    open_real_agent,
    send_to_end,
    status,
    thread_ids,
)
from transport.client import Client, EventSeen, Resumed, open_client
from transport.errors import Conflict, NotFound, NotResumable, UnavailableFeature
from transport.protocol import contents, methods, thread_acts, threads, turns
from transport.protocol.events import (
    EventData,
    ThreadChanged,
    ThreadRemoved,
    ThreadStarted,
    TurnCompleted,
)
from transport.protocol.gateway import LeaseState
from transport.protocol.items import AgentMessage, Command, FileChange, Item, ItemStatus
from transport.protocol.turns import InputPart, TextInput, Turn, TurnStatus

pytestmark = pytest.mark.codex
DEADLINE_S = 240
VERSIONS = [v for v in ("0.163.0", "0.171.0") if v in codex_binaries()]
LINES, MORE_LINES = 100_000, 400_000  # 0.6 MB, which Codex keeps; 2.7 MB, which it cuts


def counted(lines: int) -> bytes:
    return "".join(f"{number}\n" for number in range(1, lines + 1)).encode()


WHOLE = counted(LINES)
PATCH = (
    "*** Begin Patch\n*** Add File: made.txt\n+one\n+two\n"
    "*** Update File: old.txt\n@@\n-before\n+after\n*** End Patch"
)


def run(command: str) -> dict[str, Any]:
    args = {"cmd": command, "yield_time_ms": 30_000, "max_output_tokens": 20}
    return {"call": "exec_command", "args": args}


RULES = (
    Rule("Count.", [[run(f"seq 1 {LINES}")], [{"msg": "Counted in the harbour."}]]),
    Rule("Count on.", [[run(f"seq 1 {MORE_LINES}")], [{"msg": "Counted."}]]),
    Rule("Write.", [[{"patch": PATCH}], [{"msg": "Written."}]]),
    Rule("Wait.", [[{"partial": "Well, "}, {"hold": "never"}]]),
    Rule("Hello.", [[{"msg": "Hello to the lighthouse."}]]),
    Rule("Again.", [[{"msg": "Again."}]]),
)


@asynccontextmanager
async def house(version: str) -> AsyncGenerator[tuple[CodexHome, House, Client]]:
    with trio.fail_after(DEADLINE_S):
        async with (
            open_codex_home(*RULES) as home,
            open_real_agent(home, version=version, watch=FakeWatch()) as built,
            open_local(built) as client,
        ):
            (home.workspace / "old.txt").write_text("before\n")
            yield home, built, client


def key(name: str) -> str:
    return name.ljust(32, "-")


def said(text: str) -> list[InputPart]:
    return [TextInput(type="text", text=text)]


async def new_thread(client: Client, home: CodexHome, text: str) -> tuple[str, Turn]:
    """Make a thread; return it when its first turn has ended."""
    params = threads.ThreadStartParams(
        cwd=str(home.workspace),
        input=said(text),
        sandbox="danger-full-access",
        approval_policy="never",
        request_key=key(f"new-{text[:5]}"),
    )
    async with client.subscribe("all", deltas=False) as events:
        async for event in events:
            if isinstance(event, Resumed):
                break
        started = await client.call(methods.THREAD_START, params, timeout_s=60)
        async for event in events:
            match event:
                case EventSeen(data=TurnCompleted(turn=turn)):
                    if turn.id == started.turn.id:
                        return started.thread.id, turn
                case _:
                    pass
    raise AssertionError("the subscription ended before the turn")


async def items(client: Client, thread_id: str, **more: Any) -> list[Item]:
    """Return all items, page by page."""
    found: list[Item] = []
    params = contents.ItemListParams(thread_id=thread_id, **more)
    while True:
        page = await client.call(methods.ITEM_LIST, params)
        found += page.items
        if page.next_cursor is None:
            return found
        params = params.model_copy(update={"cursor": page.next_cursor})


async def output(
    client: Client, thread_id: str, item: Item, field: str = "output", **more: Any
) -> tuple[bytes, contents.ItemOutputResult]:
    """Return all that is there of a text, part by part."""
    data = b""
    while True:
        params = contents.ItemOutputParams(
            thread_id=thread_id,
            item_id=item.id,
            field=field,  # type: ignore[arg-type]  # one of the three words
            offset=len(data),
            **more,
        )
        part = await client.call(methods.ITEM_OUTPUT, params)
        data += part.bytes
        if part.eof:
            return data, part


class Ear:
    """What was heard, and a way to wait for more."""

    def __init__(self) -> None:
        self.heard: list[EventData] = []
        self._news = trio.Event()

    def take(self, data: EventData) -> None:
        """Take in one event."""
        self.heard.append(data)
        self._news.set()

    async def turn_ended(self, turn_id: str) -> None:
        """Return when the turn has ended."""
        while not any(
            isinstance(d, TurnCompleted) and d.turn.id == turn_id for d in self.heard
        ):
            self._news = trio.Event()
            await self._news.wait()


@asynccontextmanager
async def listening(house: House, ear: Ear) -> AsyncGenerator[None]:
    """Collect the data of all events while the block runs."""

    async def listen(*, task_status: trio.TaskStatus[None]) -> None:
        async with (
            open_client(house.admin, client_info("ear", "e" * 32)) as client,
            client.subscribe("all", deltas=False) as events,
        ):
            async for event in events:
                match event:
                    case Resumed():
                        task_status.started()
                    case EventSeen(data=data):
                        ear.take(data)
                    case _:
                        pass

    async with trio.open_nursery() as nursery:
        await nursery.start(listen)
        yield
        nursery.cancel_scope.cancel(reason="heard enough")


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_output_that_codex_keeps_is_read_whole(version: str) -> None:
    async with house(version) as (home, _, client):
        thread_id, turn = await new_thread(client, home, "Count.")
        command = (await items(client, thread_id))[1]
        assert isinstance(command, Command), command
        assert command.turn_id == turn.id
        data, last = await output(client, thread_id, command)
        assert data == WHOLE
        assert (last.available, last.total) == (len(WHOLE), len(WHOLE))
        assert last.gap_at is None


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_output_that_codex_cuts_is_whole_or_says_where_it_is_not(
    version: str,
) -> None:
    async with house(version) as (home, _, client):
        thread_id, _ = await new_thread(client, home, "Count on.")
        command = (await items(client, thread_id))[1]
        assert isinstance(command, Command), command
        data, last = await output(client, thread_id, command)
        whole = counted(MORE_LINES)
        assert last.total == len(whole)
        if last.gap_at is None:
            assert data == whole
        else:  # Codex had lost a piece on its way
            assert whole.startswith(data[: last.gap_at])
            assert whole.endswith(data[last.gap_at :])
            assert len(data) > 1_000_000


@pytest.mark.parametrize("version", VERSIONS)
async def test_history_says_where_it_has_a_gap(version: str) -> None:
    with trio.fail_after(DEADLINE_S):
        async with open_codex_home(*RULES) as home:
            async with (
                open_real_agent(home, version=version, watch=FakeWatch()) as built,
                open_local(built) as client,
            ):
                thread_id, turn = await new_thread(client, home, "Count.")
            async with (
                open_real_agent(home, version=version, watch=FakeWatch()) as built,
                open_local(built) as client,
            ):
                found = await items(client, thread_id, turn_id=turn.id)
                assert [one.kind for one in found] == [
                    "userMessage",
                    "command",
                    "agentMessage",
                ]
                data, last = await output(client, thread_id, found[1])
                assert last.total is None
                assert last.available == len(data) < 65_536
                assert last.gap_at == len(data) // 2
                assert WHOLE.startswith(data[: last.gap_at])
                assert WHOLE.endswith(data[last.gap_at :])
                text, last = await output(client, thread_id, found[2], "text")
                assert text == b"Counted in the harbour."
                assert last.total == len(text)


@pytest.mark.parametrize("version", VERSIONS)
async def test_items_come_in_both_orders_and_page_by_page(version: str) -> None:
    async with house(version) as (home, _, client):
        thread_id, first = await new_thread(client, home, "Write.")
        second = await send_to_end(client, thread_id, "Hello.", key="hello")
        forward = await items(client, thread_id, limit=2)
        kinds = ["userMessage", "fileChange", "agentMessage"]
        assert [one.kind for one in forward] == [*kinds, "userMessage", "agentMessage"]
        assert {one.turn_id for one in forward} == {first.id, second.id}
        backward = await items(client, thread_id, order="desc", limit=3)
        assert [one.id for one in backward] == [one.id for one in reversed(forward)]
        assert all(one.started_at and one.completed_at for one in forward)
        (change,) = [one for one in forward if isinstance(one, FileChange)]
        paths = {diff.path for diff in change.changes}
        assert paths == {str(home.workspace / name) for name in ("made.txt", "old.txt")}
        data, _ = await output(
            client, thread_id, change, "diff", path=str(home.workspace / "made.txt")
        )
        assert data == b"one\ntwo\n"


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_diff_is_one_that_patch_takes_back(version: str) -> None:
    async with house(version) as (home, _, client):
        thread_id, turn = await new_thread(client, home, "Write.")
        other = await send_to_end(client, thread_id, "Hello.", key="hello")
        told = await client.call(
            methods.THREAD_DIFF, contents.ThreadDiffParams(thread_id=thread_id)
        )
        for wanted in (None, turn.id):
            params = contents.ThreadDiffParams(thread_id=thread_id, turn_id=wanted)
            told = await client.call(methods.THREAD_DIFF, params)
            counts = {
                f.path.rpartition("/")[2]: (f.added, f.removed) for f in told.files
            }
            assert counts == {"made.txt": (2, 0), "old.txt": (1, 1)}
            assert not told.truncated
        patching = await trio.run_process(
            ["patch", "-R", "-p0", "--force", "-d", "/"],
            stdin=told.diff.encode(),
            capture_stdout=True,
            check=False,
        )
        assert patching.returncode == 0, patching.stdout
        assert not (home.workspace / "made.txt").exists()
        assert (home.workspace / "old.txt").read_text() == "before\n"
        params = contents.ThreadDiffParams(thread_id=thread_id, turn_id=other.id)
        assert (await client.call(methods.THREAD_DIFF, params)).files == []


@pytest.mark.parametrize("version", VERSIONS)
async def test_words_are_found_in_threads_and_inside_one(version: str) -> None:
    async with house(version) as (home, built, client):
        thread_id, turn = await new_thread(client, home, "Hello.")
        search = contents.ThreadSearchParams(query="lighthouse")
        (hit,) = (await client.call(methods.THREAD_SEARCH, search)).hits
        assert hit.thread.id == thread_id
        assert "lighthouse" in hit.snippet
        find = contents.ThreadFindParams(thread_id=thread_id, query="lighthouse")
        (place,) = (await client.call(methods.THREAD_FIND, find)).hits
        assert place.turn_id == turn.id
        assert place.item_id in {one.id for one in await items(client, thread_id)}
        nothing = contents.ThreadSearchParams(query="aardvark")
        assert (await client.call(methods.THREAD_SEARCH, nothing)).hits == []
        (home.home.parent / "x").mkdir()
        elsewhere = await pair_device(built, only=[home.workspace.parent], name="a")
        fenced = await pair_device(built, only=[home.home.parent / "x"], name="b")
        async with open_client(built.target(elsewhere), client_info()) as seeing:
            assert (await seeing.call(methods.THREAD_SEARCH, search)).hits
        async with open_client(built.target(fenced), client_info()) as blind:
            page = await blind.call(methods.THREAD_SEARCH, search)
            assert (page.hits, page.next_cursor) == ([], None)
            with pytest.raises(NotFound):
                await blind.call(methods.THREAD_FIND, find)
            with pytest.raises(NotFound):
                await items(blind, thread_id)
            with pytest.raises(NotFound):
                params = contents.ThreadDiffParams(thread_id=thread_id)
                await blind.call(methods.THREAD_DIFF, params)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_thread_is_renamed_archived_brought_back_and_deleted(
    version: str,
) -> None:
    async with house(version) as (home, built, client):
        thread_id, _ = await new_thread(client, home, "Hello.")
        ear = Ear()
        async with listening(built, ear):
            rename = thread_acts.ThreadRenameParams(
                thread_id=thread_id, name=" Harbour\nwork", request_key=key("r")
            )
            renamed = await client.call(methods.THREAD_RENAME, rename)
            assert renamed.thread.title == "Harbour work"
            assert renamed.thread.lease is LeaseState.HELD  # left as it is
            archive = thread_acts.ThreadArchiveParams(
                thread_id=thread_id, request_key=key("a")
            )
            archived = await client.call(methods.THREAD_ARCHIVE, archive, timeout_s=60)
            assert archived.thread.archived
            assert archived.thread.title == "Harbour work"
            assert lock_files(home.home) == []
            assert (await status(client)).leases == []
            assert await thread_ids(client) == []
            with pytest.raises(NotResumable):
                await send_to_end(client, thread_id, "Again.", key="no")
            unarchive = thread_acts.ThreadUnarchiveParams(
                thread_id=thread_id, request_key=key("u")
            )
            back = await client.call(methods.THREAD_UNARCHIVE, unarchive)
            assert not back.thread.archived
            assert await thread_ids(client) == [thread_id]
            turn = await send_to_end(client, thread_id, "Again.", key="yes")
            assert turn.status is TurnStatus.COMPLETED
            delete = thread_acts.ThreadDeleteParams(
                thread_id=thread_id, request_key=key("d")
            )
            await client.call(methods.THREAD_DELETE, delete, timeout_s=60)
            await client.call(methods.THREAD_DELETE, delete)  # the same key: the same
            assert await thread_ids(client) == []
            with pytest.raises(NotFound):
                await items(client, thread_id)
        gone = [d.reason for d in ear.heard if isinstance(d, ThreadRemoved)]
        assert gone == ["archived", "deleted"]
        titles = [d.thread.title for d in ear.heard if isinstance(d, ThreadChanged)]
        assert set(titles) == {"Harbour work"}


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_running_turn_stands_against_archiving_and_can_be_listed(
    version: str,
) -> None:
    async with house(version) as (home, _, client):
        thread_id, _ = await new_thread(client, home, "Hello.")
        started = await client.call(
            methods.TURN_START,
            turns.TurnStartParams(
                thread_id=thread_id, input=said("Wait."), request_key=key("w")
            ),
        )
        assert started.turn is not None
        archive = thread_acts.ThreadArchiveParams(
            thread_id=thread_id, request_key=key("a")
        )
        with pytest.raises(Conflict) as caught:
            await client.call(methods.THREAD_ARCHIVE, archive)
        assert caught.value.data["what"] == "running"
        while not (
            growing := [
                one
                for one in await items(client, thread_id)
                if one.status is ItemStatus.IN_PROGRESS
                and isinstance(one, AgentMessage)
            ]
        ):
            pass  # the person's own message may be open for a moment before
        assert growing[0].turn_id == started.turn.id
        data, last = await output(client, thread_id, growing[0], "text")
        while not data:  # begun, and its first words are on their way
            data, last = await output(client, thread_id, growing[0], "text")
        assert (data, last.total) == (b"Well, ", None)
        interrupt = turns.TurnInterruptParams(
            thread_id=thread_id, turn_id=started.turn.id, request_key=key("i")
        )
        await client.call(methods.TURN_INTERRUPT, interrupt)
        archived = await client.call(methods.THREAD_ARCHIVE, archive, timeout_s=60)
        assert archived.thread.archived


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_fork_goes_on_beside_its_source(version: str) -> None:
    async with house(version) as (home, built, client):
        thread_id, first = await new_thread(client, home, "Hello.")
        await send_to_end(client, thread_id, "Again.", key="again")
        ear = Ear()
        async with listening(built, ear):
            params = thread_acts.ThreadForkParams(
                thread_id=thread_id,
                through_turn_id=first.id,
                input=said("Again."),
                request_key=key("f"),
            )
            made = await client.call(methods.THREAD_FORK, params, timeout_s=60)
            assert made.thread.forked_from_id == thread_id
            fork_id = made.thread.id
            assert (await client.call(methods.THREAD_FORK, params)).thread.id == fork_id
            await ear.turn_ended(made.turn.id)
        assert [d.thread.id for d in ear.heard if isinstance(d, ThreadStarted)] == [
            fork_id
        ]
        read = await client.call(
            methods.THREAD_READ, threads.ThreadReadParams(thread_id=fork_id)
        )
        assert [turn.id for turn in read.turns] == [made.turn.id, first.id]
        assert sorted(await thread_ids(client)) == sorted([thread_id, fork_id])
        delete = thread_acts.ThreadDeleteParams(
            thread_id=thread_id, request_key=key("d")
        )
        with pytest.raises(Conflict) as caught:
            await client.call(methods.THREAD_DELETE, delete, timeout_s=60)
        assert caught.value.data["what"] == "forks"
        fork = thread_acts.ThreadDeleteParams(thread_id=fork_id, request_key=key("df"))
        await client.call(methods.THREAD_DELETE, fork, timeout_s=60)
        await client.call(methods.THREAD_DELETE, delete, timeout_s=60)
        assert await thread_ids(client) == []


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_running_source_is_forked_and_goes_on(version: str) -> None:
    async with house(version) as (home, _, client):
        thread_id, first = await new_thread(client, home, "Hello.")
        started = await client.call(
            methods.TURN_START,
            turns.TurnStartParams(
                thread_id=thread_id, input=said("Wait."), request_key=key("w")
            ),
        )
        assert started.turn is not None
        bad = thread_acts.ThreadForkParams(
            thread_id=thread_id,
            through_turn_id=started.turn.id,
            input=said("Again."),
            request_key=key("f"),
        )
        with pytest.raises(NotFound) as caught:
            await client.call(methods.THREAD_FORK, bad, timeout_s=60)
        assert caught.value.data["kind"] == "turn"
        good = bad.model_copy(
            update={"through_turn_id": None, "before_turn_id": started.turn.id}
        )
        made = await client.call(methods.THREAD_FORK, good, timeout_s=60)
        assert made.thread.id != thread_id
        leases = {row.thread_id for row in (await status(client)).leases}
        assert leases == {thread_id, made.thread.id}
        assert first.status is TurnStatus.COMPLETED


@pytest.mark.skipif(WITHOUT_LOCK not in codex_binaries(), reason="no old codex here")
async def test_an_old_codex_lists_items_by_turns_and_says_what_it_cannot() -> None:
    async with house(WITHOUT_LOCK) as (home, _, client):
        thread_id, turn = await new_thread(client, home, "Write.")
        await send_to_end(client, thread_id, "Hello.", key="hello")
        found = await items(client, thread_id, limit=2)
        assert [one.kind for one in found if one.kind.endswith("Message")] == [
            "userMessage",
            "agentMessage",
        ] * 2
        assert all(one.stable_id is False for one in found)
        only = await items(client, thread_id, turn_id=turn.id)
        assert {one.turn_id for one in only} == {turn.id}
        find = contents.ThreadFindParams(thread_id=thread_id, query="lighthouse")
        with pytest.raises(UnavailableFeature):
            await client.call(methods.THREAD_FIND, find)
        rename = thread_acts.ThreadRenameParams(
            thread_id=thread_id, name="Old", request_key=key("r")
        )
        assert (await client.call(methods.THREAD_RENAME, rename)).thread.title == "Old"
        archive = thread_acts.ThreadArchiveParams(
            thread_id=thread_id, request_key=key("a")
        )
        assert (
            await client.call(methods.THREAD_ARCHIVE, archive, timeout_s=60)
        ).thread.archived
