"""Approvals of the Codex runtime on the real codex: nothing happens before a yes."""

from typing import Any

import pytest
import trio

from adapter.runtime.threads import NewThread
from tests.support.codex import each_version
from tests.support.runtimes import open_gate, open_stage
from tests.support.scripts import command, script
from transport.errors import ApprovalClosed, Conflict, InvalidParams, NotFound
from transport.protocol.approvals import ApprovalKind, ApprovalState
from transport.protocol.threads import ThreadStatus
from transport.protocol.turns import TurnStatus

KEY = "key-0123456789abcdef"
pytestmark = pytest.mark.codex


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
        async with (
            open_stage(version, approval_ms=300) as stage,
            stage.run.writer() as writer,
        ):
            await stage.new_thread(writer)
            target = stage.home.workspace / "file"
            text = script([command(f"touch {target}")], [{"msg": "fine"}])
            turn = await writer.start_turn([text], client_key=KEY, guard=open_gate)
            ended = await stage.seen.turn_completed(turn.id)
            assert ended.status is TurnStatus.COMPLETED
            (end,) = stage.seen.resolved()
            assert end.state is ApprovalState.EXPIRED
            assert not target.exists()


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
