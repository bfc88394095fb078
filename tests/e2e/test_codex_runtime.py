"""The Codex runtime on the real codex: one reader, a writer for each thread."""

import os

import pytest
import trio

from adapter.errors import (
    ReaderFirstError,
    ThreadUnknownError,
)
from adapter.processes.binary import Codex
from adapter.processes.process_table import identify
from adapter.runtime.reader import ThreadQuery
from adapter.runtime.threads import NewThread
from adapter.runtime.writer import ThreadWriter
from tests.support.codex import (
    BUNDLED,
    HERE,
    each_version,
    open_codex_home,
)
from tests.support.foreign import open_foreign
from tests.support.runtimes import open_codex_runtime, open_gate, open_stage
from transport.protocol.events import Notice, ThreadChanged
from transport.protocol.threads import ThreadMode, ThreadStatus
from transport.protocol.turns import TurnStatus

KEY = "key-0123456789abcdef"
pytestmark = pytest.mark.codex


def busy(writer: ThreadWriter) -> bool:
    return writer.busy


@each_version
async def test_a_thread_is_started_and_read_and_continued_in_a_new_writer(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with open_stage(version) as stage:
            async with stage.run.writer() as writer:
                assert writer.info.version == version
                assert writer.info.home == str(stage.home.home)
                assert writer.info.locks_threads
                assert not writer.busy
                new = NewThread(cwd=str(stage.home.workspace), name="A name")
                loaded = await writer.start_thread(new, guard=open_gate)
                assert loaded.last_turn is None
                assert loaded.settings.cwd == str(stage.home.workspace)
                assert loaded.settings.sandbox == "workspace-write"
                assert loaded.settings.approval_policy == "on-request"
                assert loaded.thread.mode is ThreadMode.LIVE
                first = await writer.start_turn(
                    ["one", "two"], client_key=KEY, guard=open_gate
                )
                ended = await stage.seen.turn_completed(first.id)
                assert ended.status is TurnStatus.COMPLETED
                assert writer.last_turn_id == first.id
                assert writer.knows_turn(first.id)
            thread_id = loaded.thread.id
            read = await stage.run.reader.read_thread(thread_id)
            assert read.title == "A name"
            page = await stage.run.reader.list_threads(ThreadQuery())
            assert [thread.id for thread in page.threads] == [thread_id]
            assert page.next_cursor is None
            async with stage.run.writer() as writer:
                again = await writer.resume(thread_id, guard=open_gate)
                assert again.last_turn is not None
                assert again.last_turn.id == first.id
                assert writer.thread_id == thread_id
                assert writer.status is ThreadStatus.IDLE
                second = await writer.start_turn(
                    ["three"], client_key=KEY + "2", guard=open_gate
                )
                await stage.seen.turn_completed(second.id)
            turns = await stage.run.reader.list_turns(
                thread_id, cursor=None, limit=10, order="asc", items="full"
            )
            assert [turn.id for turn in turns.turns] == [first.id, second.id]
            texts = " ".join(stage.model.requests[-1].texts)
            assert all(word in texts for word in ("one", "two", "three"))
            assert "runtimeDied" not in stage.seen.notices()


@each_version
async def test_what_is_launched_is_the_native_binary_on_stdio_and_nothing_else(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with open_stage(version) as stage, stage.run.writer() as writer:
            pids = stage.run.runtime.own_pids()
            assert pids == {stage.run.reader.info.pid, writer.info.pid}
            for pid in pids:
                identity = identify(pid)
                assert identity is not None
                assert identity.argv == (str(stage.codex), "app-server", "--stdio")
                assert os.getpgid(pid) == pid
            assert len(list(stage.run.records.iterdir())) == 2


async def test_no_writer_starts_before_the_reader_is_initialized() -> None:
    with trio.fail_after(240):
        async with open_stage(BUNDLED) as stage:
            runtime = stage.run.runtime
            other = type(runtime)(
                codex=Codex(path=stage.codex, version=BUNDLED),
                home=stage.home.home,
                records=stage.run.records,
                now_ms=lambda: 0,
            )
            with pytest.raises(ReaderFirstError):
                async with other.open_writer(stage.seen, guard=open_gate):
                    pytest.fail("it must not start")
            assert other.own_pids() == set()


class ClosedError(Exception):
    """What a guard of these tests raises."""


@each_version
async def test_a_guard_that_says_no_leaves_nothing_behind_at_any_step(
    version: str,
) -> None:
    def closed() -> None:
        raise ClosedError

    with trio.fail_after(240):
        async with open_stage(version) as stage:
            async with stage.run.writer() as writer:
                thread_id = await stage.new_thread(writer)
                requests = len(stage.model.requests)
                with pytest.raises(ClosedError):
                    await writer.start_turn(["no"], client_key=KEY, guard=closed)
                assert writer.running_turn_id is None
            with pytest.raises(ClosedError):
                async with stage.run.runtime.open_writer(stage.seen, guard=closed):
                    pytest.fail("it must not start")
            async with stage.run.writer() as writer:
                with pytest.raises(ClosedError):
                    await writer.resume(thread_id, guard=closed)
                assert writer.thread_id is None
                new = NewThread(cwd=str(stage.home.workspace))
                with pytest.raises(ClosedError):
                    await writer.start_thread(new, guard=closed)
                async with open_foreign(stage.codex, stage.home.environ) as foreign:
                    await foreign.resume(thread_id)  # nothing of ours holds it
            page = await stage.run.reader.list_threads(ThreadQuery())
            assert len(page.threads) == 1
            turns = await stage.run.reader.list_turns(
                thread_id, cursor=None, limit=9, order="desc", items="none"
            )
            assert len(turns.turns) == 1
            assert len(stage.model.requests) == requests


@each_version
async def test_our_own_next_writer_has_the_thread_at_once(version: str) -> None:
    with trio.fail_after(240):
        async with open_stage(version) as stage:
            async with stage.run.writer() as writer:
                thread_id = await stage.new_thread(writer)
            for _ in range(5):
                async with stage.run.writer(thread_id) as writer:
                    assert writer.thread_id == thread_id


@each_version
async def test_a_thread_that_is_not_there_is_unknown_to_both(version: str) -> None:
    nobody = "01a22e34-0000-7000-8000-000000000000"
    with trio.fail_after(240):
        async with open_stage(version) as stage, stage.run.writer() as writer:
            for thread_id in (nobody, "no-uuid"):
                with pytest.raises(ThreadUnknownError):
                    await stage.run.reader.read_thread(thread_id)
                with pytest.raises(ThreadUnknownError):
                    await stage.run.reader.list_turns(
                        thread_id, cursor=None, limit=1, order="desc", items="none"
                    )
                with pytest.raises(ThreadUnknownError):
                    await stage.run.reader.pending_work(thread_id)
                with pytest.raises(ThreadUnknownError):
                    await writer.resume(thread_id, guard=open_gate)


@each_version
async def test_a_message_larger_than_a_pipe_arrives_whole(version: str) -> None:
    text = "".join(f"{number:06} " for number in range(28_000))  # 196 kB
    with trio.fail_after(240):
        async with open_stage(version) as stage, stage.run.writer() as writer:
            await stage.new_thread(writer, text)
            assert text in stage.model.requests[-1].user_texts


@each_version
async def test_a_warning_about_the_configuration_is_told_once_for_all_processes(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with open_stage(version, extra='model_verbosity = "absurd"') as stage:
            for _ in range(2):
                async with stage.run.writer():
                    pass
            warnings = [
                data.message
                for data in stage.seen.data(Notice)
                if data.code == "configWarning"
            ]
            assert warnings
            assert len(warnings) == len(set(warnings))


@each_version
async def test_a_new_threads_name_is_told_once_it_runs(version: str) -> None:
    with trio.fail_after(240):
        async with open_stage(version) as stage, stage.run.writer() as writer:
            new = NewThread(cwd=str(stage.home.workspace), name="The title")
            await writer.start_thread(new, guard=open_gate)
            turn = await writer.start_turn(["x"], client_key=KEY, guard=open_gate)
            await stage.seen.turn_completed(turn.id)
            await stage.seen.until(
                lambda: any(
                    data.thread.title == "The title"
                    for data in stage.seen.data(ThreadChanged)
                )
            )


@each_version
async def test_a_writer_is_busy_while_the_login_shell_runs_and_is_not_cut_short(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with trio.fail_after(240):
        async with open_codex_home() as home:
            user = home.home.parent / "user"
            user.mkdir()
            done = user / "rc-file-ran-to-its-end"
            (user / ".bash_profile").write_text(f"sleep 1.5\ntouch {done}\n")
            monkeypatch.setenv("HOME", str(user))
            monkeypatch.setenv("SHELL", "/bin/bash")
            codex = Codex(path=HERE[version], version=version)
            async with open_codex_runtime(codex, home.home) as run:
                async with run.writer() as writer:
                    assert not busy(writer)
                    new = NewThread(cwd=str(home.workspace))
                    await writer.start_thread(new, guard=open_gate)
                    assert busy(writer)
                    assert not done.exists()
                assert done.exists()
                done.unlink()
                (user / ".bash_profile").write_text(f"sleep 600\ntouch {done}\n")
                async with run.writer() as writer:
                    await writer.start_thread(new, guard=open_gate)
                    writer.hurry()
                assert not done.exists()
