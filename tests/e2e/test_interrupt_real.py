"""One interrupt of a real turn with all that can hang on it: sub-agents, one of which asks
and one of which left a command running, and a goal that would start the next turn."""

from typing import Any

import pytest
import trio

from adapter.runtime.threads import NewThread
from clients.cli.scripted_answers import Rule
from tests.support.codex import VERSIONS
from tests.support.runtimes import open_gate, open_stage
from transport.protocol.approvals import ApprovalState
from transport.protocol.events import TurnCompleted
from transport.protocol.goals import GoalStatus
from transport.protocol.turns import TurnStatus

pytestmark = pytest.mark.codex
KEY = "key-0123456789abcdef"


def spawn(message: str) -> dict[str, Any]:
    args = {"message": message}
    return {"call": "spawn_agent", "namespace": "multi_agent_v1", "args": args}


def command(cmd: str, **more: Any) -> dict[str, Any]:
    return {"call": "exec_command", "args": {"cmd": cmd, **more}}


ASKS = command("touch /x", sandbox_permissions="require_escalated", justification="so")
RULES = (
    Rule("kid that asks", [[ASKS]]),
    Rule(
        "kid that runs", [[command("sleep 600", yield_time_ms=300)], [{"hold": "kid"}]]
    ),
    Rule(
        "the active thread goal",  # what Codex says when it goes on by itself
        [[spawn("kid that asks"), spawn("kid that runs")], [{"hold": "root"}]],
    ),
)


@pytest.mark.parametrize(
    ("version", "background"),
    [*((one, True) for one in VERSIONS), (VERSIONS[-1], False)],
)
async def test_an_interrupt_stops_the_whole_tree_and_what_would_go_on(
    version: str, *, background: bool
) -> None:
    with trio.fail_after(240):
        async with open_stage(version, *RULES) as stage, stage.run.writer() as writer:
            home, run = stage.home, stage.run
            new = NewThread(cwd=str(home.workspace))
            root = (await writer.start_thread(new, guard=open_gate)).thread.id
            first = await writer.start_turn(["hello"], client_key=KEY, guard=open_gate)
            await run.seen.turn_completed(first.id)
            await writer.set_goal("paint the barn", guard=open_gate)
            asked = await run.seen.approval()
            await home.model.wait_held("kid")
            await home.model.wait_held("root")
            running = writer.running_turn_id
            assert running is not None
            (left,) = await writer.background_commands(root)
            assert "sleep 600" in left.command
            assert len({root, asked.thread_id, left.thread_id}) == 3

            turn = await writer.interrupt(running, background=background)
            assert turn.status is TurnStatus.INTERRUPTED
            await run.seen.until(lambda: len(run.seen.data(TurnCompleted)) == 4)
            ends = {
                d.turn.thread_id: d.turn.status
                for d in run.seen.data(TurnCompleted)[1:]
            }
            assert set(ends) == {root, asked.thread_id, left.thread_id}
            assert set(ends.values()) == {TurnStatus.INTERRUPTED}
            (gone,) = run.seen.resolved()
            assert (gone.id, gone.state) == (asked.id, ApprovalState.WITHDRAWN)
            assert writer.approvals() == []
            goal = await run.reader.goal(root)
            assert goal is not None
            assert goal.status is GoalStatus.PAUSED
            if background:
                while await writer.background_commands(root):
                    pass  # each is a round trip: Codex answers before they are gone
                await writer.wait_idle()
            else:
                assert [
                    one.item_id for one in await writer.background_commands(root)
                ] == [left.item_id]
                assert "stillRunning" in run.seen.notices()
                await writer.stop_background(root, left.item_id)
            assert len(run.seen.turns_started()) == 4, "nothing began by itself"
