"""Turns of the Codex runtime that are interrupted, or whose writer is killed, on the real codex."""

import os
import signal

import pytest
import trio

from adapter.errors import (
    ChildExitedError,
)
from adapter.runtime.writer import ThreadWriter
from tests.support.codex import (
    each_version,
)
from tests.support.foreign import open_foreign
from tests.support.runtimes import (
    open_gate,
    open_stage,
)
from tests.support.scripts import command, script
from transport.errors import ApprovalClosed, NotFound
from transport.protocol.approvals import ApprovalState
from transport.protocol.turns import TurnStatus

KEY = "key-0123456789abcdef"
pytestmark = pytest.mark.codex


def running(writer: ThreadWriter) -> str | None:
    return writer.running_turn_id


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
