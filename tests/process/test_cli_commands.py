"""Commands that read and watch, against an Agent that says what the test tells it."""

import json
from pathlib import Path

import trio

from clients.cli import (
    reading,
    watching,
)
from clients.cli.exits import ExitCode
from tests.support import cli_asked
from tests.support import cli_samples as samples
from tests.support.cli_runs import paper, paper_of, printed
from tests.support.cli_samples import SHOP
from tests.support.fake_agent import Frame, fake
from transport.background import open_background
from transport.protocol.approvals import (
    ApprovalListResult,
)
from transport.protocol.base import WireModel
from transport.protocol.events import (
    ApprovalRequested,
    TurnCompleted,
    TurnStarted,
)

APPROVAL = cli_asked.command_approval()


async def test_status_says_first_whether_one_can_write(state: Path) -> None:
    screen = paper()
    async with fake(state) as agent:
        agent.gate = samples.closed_gate()
        assert await reading.status(screen, host=None) is ExitCode.OK
    assert printed(screen).splitlines()[0] == (
        "Read-only: Codex desktop (pid 812, since 11:42) is the writer. "
        "Nothing waits for an answer."
    )


async def test_json_is_one_value_in_the_words_of_the_protocol(state: Path) -> None:
    screen = paper(as_json=True)
    async with fake(state):
        await reading.status(screen, host=None)
        await reading.threads(
            screen, host=None, archived=False, query=None, cwd=None, count=5
        )
        await reading.read(screen, host=None, thread=SHOP, turns=1, full=False)
        await reading.approvals(screen, host=None, thread=None)
    status, threads, read, approvals = map(json.loads, printed(screen).splitlines())
    assert status["gate"]["state"] == "open"
    assert threads["threads"][0]["id"] == SHOP
    assert read["turns"][0]["id"] == "turn-0"
    assert approvals == {"approvals": []}


def waiting(_: Frame) -> WireModel:
    return ApprovalListResult(approvals=[APPROVAL], head=1)


async def test_watch_streams_json_lines_and_comes_back_by_itself(state: Path) -> None:
    screen = paper(as_json=True)

    async def watch(*, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        await watching.watch(screen, host=None, thread=None)

    async with fake(state) as agent, open_background(watch):
        await agent.subscribed.wait()
        agent.tell(TurnStarted(turn=samples.turn()))
        await paper_of(screen).wait_lines(2)
        await agent.cut()
        agent.tell(TurnCompleted(turn=samples.turn()))
        await paper_of(screen).wait_lines(4)
    lines = [json.loads(row) for row in printed(screen).splitlines()]
    assert [row["event"] for row in lines] == [
        "resumed",
        "turn/started",
        "resumed",
        "turn/completed",
    ]
    assert lines[2]["verdict"] == "ok"
    assert [lines[1]["seq"], lines[3]["seq"]] == [1, 2]


async def test_a_watch_begins_with_what_waits(state: Path) -> None:
    screen = paper()

    async def watch(*, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        await watching.watch(screen, host=None, thread=SHOP)

    async with fake(state, approval_list=waiting) as agent, open_background(watch):
        await agent.wait_called("approval/list")
        agent.tell(ApprovalRequested(approval=APPROVAL))  # its own event, late
        agent.tell(TurnCompleted(turn=samples.turn()))
        await paper_of(screen).wait_for("completed")
    assert printed(screen).count("make deploy") == 1
    assert "make deploy" in printed(screen)
    assert "threadgate approve apr_" in printed(screen)
