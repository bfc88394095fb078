"""The items of whole threads on real codex: outputs, their gaps, both orders, diffs."""

import pytest
import trio

from tests.support.codex import (
    WITHOUT_LOCK,
    codex_binaries,
    each_version,
    open_codex_home,
)
from tests.support.door import FakeWatch
from tests.support.real_agent import (
    open_local,
    open_real_agent,
    send_to_end,
)
from tests.support.real_threads import (
    DEADLINE_S,
    MORE_LINES,
    RULES,
    WHOLE,
    counted,
    house,
    items,
    key,
    new_thread,
    output,
)
from transport.errors import UnavailableFeature
from transport.protocol import contents, methods, thread_acts
from transport.protocol.items import Command, FileChange

pytestmark = pytest.mark.codex


@each_version
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


@each_version
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


@each_version
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


@each_version
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


@each_version
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
