"""Whole threads on real codex: words, names, places, forks."""

import pytest

from tests.support.agents import client_info, pair_device
from tests.support.codex import each_version
from tests.support.real_agent import (
    lock_files,
    send_to_end,
    status,
    thread_ids,
)
from tests.support.real_threads import (
    Ear,
    house,
    items,
    key,
    listening,
    new_thread,
    output,
    said,
)
from transport.client import open_client
from transport.errors import Conflict, NotFound, NotResumable
from transport.protocol import contents, methods, thread_acts, threads, turns
from transport.protocol.events import (
    ThreadChanged,
    ThreadRemoved,
    ThreadStarted,
)
from transport.protocol.gateway import LeaseState
from transport.protocol.items import AgentMessage, ItemStatus
from transport.protocol.turns import TurnStatus

pytestmark = pytest.mark.codex


@each_version
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


@each_version
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


@each_version
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


@each_version
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


@each_version
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
