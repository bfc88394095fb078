"""Sub-agents of a real codex, as v2 items: the call, the child's own events, and its end."""

import pytest
import trio

from adapter.runtime.events import Emitted, ItemClosed
from clients.cli.scripted_answers import Rule
from tests.support.codex import each_version
from tests.support.real_turns import Told, told_of
from tests.support.scripts import DONE, call, script
from transport.protocol.events import (
    ThreadStarted,
)
from transport.protocol.items import (
    AgentMessage,
    Subagent,
)

pytestmark = pytest.mark.codex
CHILD = "child " + script([{"msg": "There are seven."}])


@each_version
async def test_a_sub_agent_of_the_first_kind(version: str) -> None:
    spawn = call("spawn_agent", "multi_agent_v1", message=CHILD)
    with trio.fail_after(240):
        told = await told_of(version, script(spawn, DONE), children=1)
    (agent,) = told.of(Subagent)
    assert agent.action == "spawn"
    assert agent.state in {"starting", "running", "completed"}  # as of Codex's answer
    assert agent.prompt == CHILD
    check_child(told, agent.thread_id)
    told.check_history("subagent")


@each_version
async def test_a_sub_agent_of_the_second_kind(version: str) -> None:
    task = {"message": "count", "task_name": "bee", "fork_turns": "none"}
    spawn = call("spawn_agent", "collaboration", **task)
    counts = Rule("<environment_context>", [[{"msg": "There are seven."}]])
    wait = call("wait_agent", "collaboration", timeout_ms=10_000)
    with trio.fail_after(240):
        told = await told_of(
            version,
            script(spawn, wait, DONE),
            counts,  # the child has no message of a user but what Codex tells it
            features=("multi_agent_v2",),
            children=1,
        )
    agents = {str(agent.action): agent for agent in told.of(Subagent)}
    assert set(agents) == {"spawn", "wait", "done"}
    assert (agents["spawn"].name, agents["spawn"].state) == ("/root/bee", "running")
    assert agents["done"].thread_id == agents["spawn"].thread_id
    assert agents["done"].state == "completed"
    check_child(told, agents["spawn"].thread_id)
    told.check_history("subagent")


def check_child(told: Told, child: str | None) -> None:
    """The child's own events come under its thread, below the root."""
    events = [event for event in told.events if event.thread_id == child]
    assert {event.root_thread_id for event in events} == {told.thread_id}
    first = events[0]
    assert isinstance(first, Emitted)
    assert isinstance(first.data, ThreadStarted)
    assert first.data.thread.parent_id == told.thread_id
    said = [event.item for event in events if isinstance(event, ItemClosed)]
    texts = [item.text for item in said if isinstance(item, AgentMessage)]
    assert "There are seven." in texts
