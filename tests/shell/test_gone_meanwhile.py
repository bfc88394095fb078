"""What goes away in the middle of an act: a process, a sub-agent, a goal, who waits."""

from pathlib import Path
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from adapter.calls.commands import Command
from adapter.calls.proof import SteerProof
from adapter.errors import ChildExitedError, CodexRefusedError, ThreadUnknownError
from adapter.limits import FILES_END_S
from adapter.processes.binary import Codex
from adapter.runtime.events import Emitted, RuntimeEvent
from adapter.servers.app_server import AppServer
from adapter.servers.background import Background
from adapter.servers.goals import LoadedGoals
from adapter.servers.reader import CodexReader
from adapter.servers.setup import Setup
from adapter.servers.steering import Steering
from tests.support.answering_server import Server
from tests.support.codex_says import AT, THREAD, Raw
from transport.protocol.events import Notice

GONE = f"{THREAD}-1-gone"
CHILD = f"{THREAD}-2-child"


def notices(events: list[RuntimeEvent]) -> list[str]:
    told = [one.data for one in events if isinstance(one, Emitted)]
    return [one.code for one in told if isinstance(one, Notice)]


@pytest.fixture
def setup() -> Setup:
    return Setup(
        codex=Codex(path=Path("/nowhere/codex"), version="0.171.0"),
        environ={},
        records=Path("/nowhere"),
        config=(),
        now_ms=lambda: AT,
        up_ms=lambda: 0,
        mint=lambda: "apr_0",
        approval_ms=60_000,
    )


async def test_words_that_the_model_had_not_taken_are_told_lost_with_their_process(
    setup: Setup,
) -> None:
    events: list[RuntimeEvent] = []
    server = AppServer(setup, events.append, set())
    steering = Steering(server)
    taken = SteerProof(THREAD, "t1", "taken")
    taken.seen = True
    for proof in (SteerProof(THREAD, "t1", "waiting"), taken):
        steering._watch_on(proof)  # pyright: ignore[reportPrivateUsage]
    server.ears.ended(ChildExitedError("codex writer", -9))
    assert notices(events).count("steerLost") == 1


class Family(Server):
    """A thread with two sub-agents; the first of them is gone."""

    def tree(self, thread_id: str) -> frozenset[str]:
        return frozenset({thread_id, CHILD, GONE})


async def test_a_background_command_is_ended_beside_a_sub_agent_that_is_gone() -> None:
    row = {"itemId": "i", "processId": "7", "command": "c", "cwd": "/w"}

    def say(command: Command) -> Raw:
        if command.params["threadId"].endswith("gone"):
            raise ThreadUnknownError(command.method, -32600, "thread not found: x")
        at_child = command.params["threadId"] == CHILD
        return {"data": [row] if at_child else [], "terminated": True}

    server = Family(say)
    background = Background(cast("Any", server))
    (listed,) = await background.list_below(THREAD)
    await background.stop(THREAD, listed.item_id)
    assert server.asked[-1].params == {"threadId": CHILD, "processId": "7"}
    with pytest.raises(ThreadUnknownError):
        await background.stop("gone", "another")


async def test_a_goal_that_is_cleared_while_it_is_paused_is_no_error() -> None:
    def say(command: Command) -> Raw:
        if command.method == "thread/goal/get":
            return {"goal": {"objective": "be done", "status": "active"}}
        raise CodexRefusedError(command.method, -32600, "no goal exists for x")

    server = Server(say)
    goals = LoadedGoals(cast("Any", server))
    await goals.pause(THREAD, guard=None)
    assert server.asked[-1].params["status"] == "paused"


class Hanging(Server):
    """An app-server that answers nothing for an hour."""

    async def call(self, command: Command, *, guard: Any = None) -> Raw:
        self.asked.append(command)
        await trio.sleep(3_600)
        return {}


async def test_who_stops_waiting_for_a_search_waits_no_longer_for_a_codex_that_hangs(
    autojump_clock: MockClock,
) -> None:
    server = Hanging(lambda _command: {})
    reader = CodexReader(cast("Any", server))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: reader.contents.find_files("x", folder="/w"))
        await wait_all_tasks_blocked()
        began = trio.current_time()
        nursery.cancel_scope.cancel()
    assert trio.current_time() - began <= FILES_END_S
    assert len(server.asked) == 2  # the search, and its end
