"""The Codex runtime on the real codex: one reader, a writer for each thread."""

import json
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio

from adapter.errors import (
    ChildExitedError,
    ReaderFirstError,
    ThreadLockedError,
    ThreadUnknownError,
)
from adapter.processes.binary import Codex
from adapter.processes.process_table import identify
from adapter.runtime.reader import ThreadQuery
from adapter.runtime.threads import NewThread
from adapter.runtime.writer import ThreadWriter
from adapter.servers.reader import CodexReader
from clients.cli.scripted_model import ScriptedModel
from tests.support.codex import (
    BUNDLED,
    WITHOUT_LOCK,
    CodexHome,
    codex_binaries,
    open_codex_home,
)
from tests.support.foreign import ForeignRefusedError, open_foreign
from tests.support.measures import in_time
from tests.support.runtimes import Running, Seen, open_codex_runtime, open_gate
from transport.errors import ApprovalClosed, Conflict, InvalidParams, NotFound
from transport.protocol.approvals import ApprovalKind, ApprovalState
from transport.protocol.events import Notice, ThreadChanged
from transport.protocol.threads import ThreadMode, ThreadStatus
from transport.protocol.turns import TurnStatus

NEWEST = "0.171.0"
HERE = codex_binaries()
VERSIONS = [version for version in (BUNDLED, NEWEST) if version in HERE]
KEY = "key-0123456789abcdef"

pytestmark = pytest.mark.codex


@dataclass
class Stage:
    """A home with its scripted model, and a runtime of ours on it."""

    home: CodexHome
    run: Running
    codex: Path

    @property
    def seen(self) -> Seen:
        return self.run.seen

    @property
    def model(self) -> ScriptedModel:
        return self.home.model

    async def new_thread(self, writer: ThreadWriter, text: str = "first") -> str:
        """Make a thread with one completed turn in this writer."""
        new = NewThread(cwd=str(self.home.workspace))
        loaded = await writer.start_thread(new, guard=open_gate)
        turn = await writer.start_turn([text], client_key=KEY, guard=open_gate)
        await self.seen.turn_completed(turn.id)
        return loaded.thread.id


@asynccontextmanager
async def open_stage(version: str, *, extra: str = "") -> AsyncGenerator[Stage]:
    path = HERE[version]
    async with open_codex_home(extra=extra) as home:
        codex = Codex(path=path, version=version)
        async with open_codex_runtime(codex, home.home) as run:
            yield Stage(home=home, run=run, codex=path)


def script(*steps: list[dict[str, Any]]) -> str:
    return "SCRIPT:" + json.dumps(steps)


def command(cmd: str) -> dict[str, Any]:
    """A command that asks for leave to run outside the sandbox."""
    args = {
        "cmd": cmd,
        "sandbox_permissions": "require_escalated",
        "justification": "the test wants it",
    }
    return {"call": "exec_command", "args": args}


def running(writer: ThreadWriter) -> str | None:
    return writer.running_turn_id


def busy(writer: ThreadWriter) -> bool:
    return writer.busy


each_version = pytest.mark.parametrize("version", VERSIONS)


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
async def test_a_command_runs_only_after_it_was_approved(version: str) -> None:
    with trio.fail_after(240):
        async with open_stage(version) as stage, stage.run.writer() as writer:
            await stage.new_thread(writer)
            for choice, name in (("deny", "no"), ("allow", "yes")):
                target = stage.home.workspace / name
                text = script([command(f"touch {target}")], [{"msg": "so be it"}])
                turn = await writer.start_turn(
                    [text], client_key=KEY + name, guard=open_gate
                )
                asked = await stage.seen.approval()
                assert asked.kind is ApprovalKind.COMMAND
                assert writer.status is ThreadStatus.WAITING_ON_APPROVAL
                assert [one.id for one in writer.approvals()] == [asked.id]
                assert writer.busy
                assert not target.exists()
                done = await writer.answer(
                    asked.id, digest=asked.digest, choice=choice, decided_by="me"
                )
                assert done.state is ApprovalState.ANSWERED
                assert (done.choice, done.decided_by) == (choice, "me")
                ended = await stage.seen.turn_completed(turn.id)
                assert ended.status is TurnStatus.COMPLETED
                assert target.exists() == (choice == "allow")
                assert writer.approvals() == []


@each_version
async def test_an_answer_that_does_not_fit_its_question_is_refused_and_sends_nothing(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with open_stage(version) as stage, stage.run.writer() as writer:
            await stage.new_thread(writer)
            target = stage.home.workspace / "file"
            text = script([command(f"touch {target}")], [{"msg": "fine"}])
            turn = await writer.start_turn([text], client_key=KEY, guard=open_gate)
            asked = await stage.seen.approval()
            fit: dict[str, Any] = {"digest": asked.digest, "choice": "allow"}
            stale: dict[str, Any] = {**fit, "digest": "x"}
            with pytest.raises(Conflict):
                await writer.answer(asked.id, **stale, decided_by="me")
            odd: dict[str, Any] = {**fit, "choice": "applyNetworkPolicyAmendment"}
            with pytest.raises(InvalidParams):
                await writer.answer(asked.id, **odd, decided_by="me")
            with pytest.raises(NotFound):
                await writer.answer("apr_0", **fit, decided_by="me")
            assert not target.exists()
            await writer.answer(
                asked.id, digest=asked.digest, choice="deny", decided_by="me"
            )
            with pytest.raises(ApprovalClosed):
                await writer.answer(asked.id, **fit, decided_by="another")
            await stage.seen.turn_completed(turn.id)
            assert not target.exists()


@each_version
async def test_nobody_answering_in_time_is_a_no(version: str) -> None:
    with trio.fail_after(240):
        async with open_codex_home() as home:
            codex = Codex(path=HERE[version], version=version)
            async with (
                open_codex_runtime(codex, home.home, approval_ms=300) as run,
                run.writer() as writer,
            ):
                stage = Stage(home=home, run=run, codex=codex.path)
                await stage.new_thread(writer)
                target = home.workspace / "file"
                text = script([command(f"touch {target}")], [{"msg": "fine"}])
                turn = await writer.start_turn([text], client_key=KEY, guard=open_gate)
                ended = await run.seen.turn_completed(turn.id)
                assert ended.status is TurnStatus.COMPLETED
                (end,) = run.seen.resolved()
                assert end.state is ApprovalState.EXPIRED
                assert not target.exists()


@each_version
async def test_an_interrupt_stops_this_turn_and_withdraws_its_approvals(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with open_stage(version) as stage, stage.run.writer() as writer:
            await stage.new_thread(writer)
            target = stage.home.workspace / "file"
            text = script([command(f"touch {target}")])
            turn = await writer.start_turn([text], client_key=KEY, guard=open_gate)
            asked = await stage.seen.approval()
            with pytest.raises(NotFound):
                await writer.interrupt("another-turn")
            with pytest.raises(NotFound):
                await writer.interrupt("")
            assert writer.running_turn_id == turn.id
            ended = await writer.interrupt(turn.id)
            assert ended.status is TurnStatus.INTERRUPTED
            assert [end.state for end in stage.seen.resolved()] == [
                ApprovalState.WITHDRAWN
            ]
            with pytest.raises(ApprovalClosed):
                await writer.answer(
                    asked.id, digest=asked.digest, choice="allow", decided_by="me"
                )
            assert running(writer) is None
            assert not target.exists()
            await writer.wait_idle()
            again = await writer.interrupt(turn.id)  # asked again: the same end
            assert again.status is TurnStatus.INTERRUPTED


@each_version
async def test_a_turn_in_the_middle_of_its_message_is_stopped(version: str) -> None:
    with trio.fail_after(240):
        async with open_stage(version) as stage, stage.run.writer() as writer:
            await stage.new_thread(writer)
            text = script([{"partial": "half a"}, {"hold": "gate"}])
            turn = await writer.start_turn([text], client_key=KEY, guard=open_gate)
            await stage.model.wait_held("gate")
            live = writer.live_turn(turn.id)
            assert live is not None
            assert live.status is TurnStatus.IN_PROGRESS
            ended = await writer.interrupt(turn.id)
            assert ended.status is TurnStatus.INTERRUPTED
            stage.model.release("gate")


@each_version
async def test_a_killed_writer_closes_what_was_open_and_frees_the_thread(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with open_stage(version) as stage:
            async with stage.run.writer() as writer:
                thread_id = await stage.new_thread(writer)
            target = stage.home.workspace / "file"
            text = script([command(f"touch {target}")])
            with pytest.raises(ChildExitedError) as died:
                async with stage.run.writer(thread_id) as writer:
                    await writer.start_turn([text], client_key=KEY, guard=open_gate)
                    await stage.seen.approval()
                    os.kill(writer.info.pid, signal.SIGKILL)
                    await trio.sleep_forever()
            assert died.value.returncode == -signal.SIGKILL
            (turn_id,) = stage.seen.turns_started()[1:]
            ended = await stage.seen.turn_completed(turn_id)
            assert ended.status is TurnStatus.INTERRUPTED
            assert [end.state for end in stage.seen.resolved()] == [
                ApprovalState.WITHDRAWN
            ]
            assert "runtimeDied" in stage.seen.notices()
            async with stage.run.writer(thread_id) as writer:
                assert writer.knows_turn(turn_id)
                following = await writer.start_turn(
                    ["go on"], client_key=KEY + "2", guard=open_gate
                )
                after = await stage.seen.turn_completed(following.id)
                assert after.status is TurnStatus.COMPLETED
            assert not target.exists()


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
async def test_after_our_writer_another_codex_has_the_thread_within_a_second(
    version: str,
) -> None:
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
                left = trio.current_time()
            await foreign.resume(thread_id)
            assert trio.current_time() - left < in_time(1)


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
            assert await reader.loaded_threads() == []


@each_version
async def test_an_interrupt_pauses_the_goal_that_would_start_the_next_turn(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with open_stage(version) as stage:
            async with stage.run.writer() as writer:
                thread_id = await stage.new_thread(writer)
            async with open_foreign(stage.codex, stage.home.environ) as foreign:
                await foreign.request(
                    "thread/goal/set",
                    {
                        "threadId": thread_id,
                        "objective": script([{"hold": "goal"}]),
                        "status": "active",
                    },
                )
            async with stage.run.writer(thread_id) as writer:
                await stage.seen.until(lambda: writer.running_turn_id is not None)
                running = writer.running_turn_id
                assert running is not None
                await writer.interrupt(running)
                assert (await stage.run.reader.pending_work(thread_id)).goal is None
                await writer.wait_idle()
                assert writer.running_turn_id is None


@each_version
async def test_a_change_of_files_is_shown_whole_and_applied_only_after_a_yes(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with open_stage(version) as stage, stage.run.writer() as writer:
            new = NewThread(cwd=str(stage.home.workspace), sandbox="read-only")
            loaded = await writer.start_thread(new, guard=open_gate)
            assert loaded.settings.sandbox == "read-only"
            for choice, name in (("deny", "no.txt"), ("allow", "yes.txt")):
                patch = (
                    f"*** Begin Patch\n*** Add File: {name}\n+hello\n*** End Patch\n"
                )
                turn = await writer.start_turn(
                    [script([{"patch": patch}], [{"msg": "so be it"}])],
                    client_key=KEY + name,
                    guard=open_gate,
                )
                asked = await stage.seen.approval()
                assert asked.kind is ApprovalKind.FILE_CHANGE
                assert asked.detail.changes is not None
                (change,) = asked.detail.changes
                assert change.path == str(stage.home.workspace / name)
                assert "hello" in change.diff
                await writer.answer(
                    asked.id, digest=asked.digest, choice=choice, decided_by="me"
                )
                await stage.seen.turn_completed(turn.id)
                written = (stage.home.workspace / name).exists()
                assert written == (choice == "allow")


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
                async with run.writer() as writer:
                    await writer.start_thread(new, guard=open_gate)
                    writer.hurry()
                    before = trio.current_time()
                assert trio.current_time() - before < in_time(1.4)
                assert not done.exists()


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
