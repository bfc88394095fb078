"""The Codex runtime beside another codex on the same home: locks, and what the other one added."""

import pytest
import trio

from adapter.calls.reading_commands import loaded_threads
from adapter.errors import (
    ThreadLockedError,
)
from adapter.runtime.reader import ThreadQuery
from adapter.servers.reader import CodexReader
from tests.support.codex import (
    HERE,
    WITHOUT_LOCK,
    each_version,
)
from tests.support.foreign import ForeignRefusedError, open_foreign
from tests.support.runtimes import open_gate, open_stage

KEY = "key-0123456789abcdef"
pytestmark = pytest.mark.codex


@each_version
async def test_a_thread_held_elsewhere_is_refused_as_such_and_free_once_it_is_given_up(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with open_stage(version) as stage:
            async with open_foreign(stage.codex, stage.home.environ) as foreign:
                thread_id = await foreign.start_thread(stage.home.workspace, "theirs")
                async with stage.run.writer() as writer:
                    with pytest.raises(ThreadLockedError):
                        await writer.resume(thread_id, guard=open_gate)
                    assert writer.thread_id is None
                read = await stage.run.reader.read_thread(thread_id)
                assert read.id == thread_id
            async with stage.run.writer(thread_id) as writer:
                assert writer.thread_id == thread_id


@each_version
async def test_after_our_writer_another_codex_has_the_thread_at_once(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of its input ends a writer: nothing has to be waited for."""
    monkeypatch.setattr("adapter.processes.process.END_S", 600.0)
    with trio.fail_after(240):
        async with (
            open_stage(version) as stage,
            open_foreign(stage.codex, stage.home.environ) as foreign,
        ):
            async with stage.run.writer() as writer:
                thread_id = await stage.new_thread(writer)
                with pytest.raises(ForeignRefusedError, match="active writer"):
                    await foreign.resume(thread_id)
                await writer.wait_idle()
            await foreign.resume(thread_id)


@each_version
async def test_the_next_turns_model_request_holds_what_another_codex_added(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with open_stage(version) as stage:
            async with stage.run.writer() as writer:
                thread_id = await stage.new_thread(writer, "ours before")
            async with open_foreign(stage.codex, stage.home.environ) as foreign:
                await foreign.resume(thread_id)
                theirs = await foreign.turn(thread_id, "theirs in between")
            async with stage.run.runtime.open_writer(
                stage.seen, guard=open_gate
            ) as writer:
                loaded = await writer.resume(thread_id, guard=open_gate)
                assert loaded.last_turn is not None
                assert loaded.last_turn.id == theirs["id"]
                turn = await writer.start_turn(
                    ["ours after"], client_key=KEY, guard=open_gate
                )
                await stage.seen.turn_completed(turn.id)
            said = stage.model.requests[-1].user_texts
            assert [t for t in said if t.startswith(("ours", "theirs"))] == [
                "ours before",
                "theirs in between",
                "ours after",
            ]


@each_version
async def test_what_others_queued_and_their_goal_are_seen_without_loading(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with open_stage(version) as stage:
            async with stage.run.writer() as writer:
                thread_id = await stage.new_thread(writer)
            assert not await stage.run.reader.pending_work(thread_id)
            await stage.run.reader.pause_goal(thread_id)  # there is none: nothing
            async with open_foreign(stage.codex, stage.home.environ) as foreign:
                queued = [{"type": "text", "text": "later, please"}]
                await foreign.request(
                    "thread/queue/add",
                    {
                        "threadId": thread_id,
                        "input": queued,
                        "clientUserMessageId": "theirs",
                    },
                )
                await foreign.request(
                    "thread/goal/set",
                    {
                        "threadId": thread_id,
                        "objective": "be done",
                        "status": "active",
                    },
                )
            work = await stage.run.reader.pending_work(thread_id)
            assert work.queue == ("later, please",)
            assert work.goal == "be done"
            await stage.run.reader.pause_goal(thread_id)
            work = await stage.run.reader.pending_work(thread_id)
            assert work.goal is None
            requests = len(stage.model.requests)
            assert requests == 1  # reading and pausing started nothing
            reader = stage.run.reader
            assert isinstance(reader, CodexReader)
            server = reader._server  # pyright: ignore[reportPrivateUsage]
            assert (await server.call(loaded_threads()))["data"] == []


@pytest.mark.skipif(WITHOUT_LOCK not in HERE, reason="the old codex is not cached")
async def test_a_codex_without_locks_is_told_as_such_and_works() -> None:
    with trio.fail_after(240):
        async with open_stage(WITHOUT_LOCK) as stage:
            assert not stage.run.reader.info.locks_threads
            async with open_foreign(stage.codex, stage.home.environ) as foreign:
                thread_id = await foreign.start_thread(stage.home.workspace, "theirs")
                async with stage.run.writer(thread_id) as writer:  # nothing refuses it
                    turn = await writer.start_turn(
                        ["ours"], client_key=KEY, guard=open_gate
                    )
                    await stage.seen.turn_completed(turn.id)
            assert not await stage.run.reader.pending_work(thread_id)
            page = await stage.run.reader.list_threads(ThreadQuery())
            assert [thread.id for thread in page.threads] == [thread_id]
