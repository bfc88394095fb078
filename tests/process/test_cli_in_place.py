"""Answering right below a question that `watch` or `send` shows, at a terminal."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.support import cli_asked
from tests.support import cli_samples as samples
from tests.support.cli_runs import cli_environ, run_cli
from tests.support.cli_samples import SHOP
from tests.support.fake_agent import FakeAgent, Frame, open_fake_agent
from tests.support.terminals import Terminal, open_terminal
from transport.protocol.approvals import (
    Approval,
    ApprovalListResult,
    ApprovalResult,
    ApprovalState,
)
from transport.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    Gap,
    ItemStarted,
    Notice,
    NoticeLevel,
    TurnCompleted,
)
from transport.protocol.turns import TurnStartResult, TurnStatus

DEADLINE_S = 240
PROMPT = "a(pprove), d(eny), Enter leaves it > "


@asynccontextmanager
async def fake(state: Path, *more_scopes: str) -> AsyncGenerator[FakeAgent]:
    state.mkdir(mode=0o700, exist_ok=True)
    with trio.fail_after(DEADLINE_S):
        agent = FakeAgent(scopes=["read", "write", *more_scopes])
        async with open_fake_agent(state / "run" / "admin.sock", agent):
            yield agent


@asynccontextmanager
async def asked(
    state: Path, agent: FakeAgent, approval: Approval, *args: str
) -> AsyncGenerator[Terminal]:
    """Watch at a terminal, and have a question come."""

    def ended(params: Frame) -> ApprovalResult:
        over = approval.model_copy(
            update={"state": ApprovalState.ANSWERED, "choice": params["choice"]}
        )
        agent.tell(ApprovalResolved(approval=over))
        return ApprovalResult(approval=over)

    agent.answers["approval/answer"] = ended
    async with open_terminal(state, *(args or ("watch", SHOP)), NO_COLOR="1") as shown:
        await agent.subscribed.wait()
        agent.tell(ApprovalRequested(approval=approval))
        await shown.wait_for("no       threadgate deny")
        yield shown


def notice(text: str) -> Notice:
    return Notice(level=NoticeLevel.INFO, code="x", message=text)


@pytest.mark.parametrize(
    ("typed", "choice", "says"),
    [("a\n", "accept", "approved"), ("deny\n", "decline", "declined")],
)
async def test_a_question_is_answered_below_where_it_stands_whole(
    tmp_path: Path, typed: str, choice: str, says: str
) -> None:
    approval = cli_asked.command_approval()
    async with (
        fake(tmp_path / "s", "approve") as agent,
        asked(tmp_path / "s", agent, approval) as shown,
    ):
        whole = await shown.wait_for(PROMPT)
        for part in ("make deploy", "/home/ann/shop", "network access", "until"):
            assert part in whole.partition(PROMPT)[0]
        assert agent.called("approval/answer") == []
        await shown.type(typed)
        await agent.wait_called("approval/answer")
        await shown.wait_for(f"{approval.id} {says}")
    (call,) = agent.called("approval/answer")
    assert call["choice"] == choice
    assert call["digest"] == approval.digest


async def test_nothing_but_the_word_is_a_yes_and_enter_leaves_it(
    tmp_path: Path,
) -> None:
    async with (
        fake(tmp_path / "s", "approve") as agent,
        asked(tmp_path / "s", agent, cli_asked.command_approval()) as shown,
    ):
        await shown.wait_for(PROMPT)
        await shown.type("y\n")
        await shown.wait_count(PROMPT, 2)
        agent.tell(notice("meanwhile"))
        await shown.type("\n")
        await shown.wait_for("it waits")
        await shown.wait_for("meanwhile")
        before = shown.shown.partition("it waits")[0]
    assert "meanwhile" not in before  # it would have stood in what is typed
    assert agent.called("approval/answer") == []


@pytest.mark.parametrize("typed", ["a\nall of this\n", "a\x04\x04"])
async def test_a_line_that_was_pasted_with_others_or_never_ended_is_no_answer(
    tmp_path: Path, typed: str
) -> None:
    async with (
        fake(tmp_path / "s", "approve") as agent,
        asked(tmp_path / "s", agent, cli_asked.command_approval()) as shown,
    ):
        await shown.wait_for(PROMPT)
        await shown.type(typed)
        await shown.wait_for("it waits")
    assert agent.called("approval/answer") == []


async def test_of_several_that_wait_each_is_asked_right_below_itself(
    tmp_path: Path,
) -> None:
    first, second = cli_asked.command_approval(), cli_asked.change_approval()
    state = tmp_path / "s"
    async with fake(state, "approve") as agent:
        agent.answers["approval/list"] = lambda _: ApprovalListResult(
            approvals=[first, second], head=1
        )
        async with open_terminal(state, "watch", SHOP, NO_COLOR="1") as shown:
            above = (await shown.wait_for(PROMPT)).partition(PROMPT)[0]
            assert first.id in above
            assert second.id not in above
            await shown.type("\n")
            await shown.wait_count(PROMPT, 2)
            last = shown.shown.rpartition("approval ")[2]
            assert last.startswith(second.id)


async def test_what_was_told_before_is_not_asked_below_something_else(
    tmp_path: Path,
) -> None:
    approval = cli_asked.command_approval()
    async with (
        fake(tmp_path / "s", "approve") as agent,
        asked(tmp_path / "s", agent, approval) as shown,
    ):
        await shown.wait_for(PROMPT)
        await shown.type("\n")
        await shown.wait_for("it waits")
        agent.tell(ApprovalRequested(approval=approval))
        agent.tell(notice("and on it goes"))
        said = await shown.wait_for("and on it goes")
    assert said.count(PROMPT) == 1


async def test_a_question_that_ended_as_it_came_holds_nothing_up(
    tmp_path: Path,
) -> None:
    approval = cli_asked.command_approval()
    over = approval.model_copy(update={"state": ApprovalState.EXPIRED})
    turn = samples.turn(status=TurnStatus.IN_PROGRESS)
    state = tmp_path / "s"
    async with fake(state, "approve") as agent:

        def start(params: Frame) -> TurnStartResult:
            del params
            agent.tell(ApprovalRequested(approval=approval))
            agent.tell(ApprovalResolved(approval=over))
            agent.tell(notice("and on it goes"))
            return TurnStartResult(turn=turn, delivery="started")

        agent.answers["turn/start"] = start
        async with open_terminal(state, "send", SHOP, "Go.", NO_COLOR="1") as shown:
            await shown.wait_for("and on it goes")
            agent.tell(TurnCompleted(turn=samples.turn(turn.id)))
            assert await shown.end() == 0


async def test_a_question_that_another_device_answered_is_taken_back(
    tmp_path: Path,
) -> None:
    approval = cli_asked.command_approval()
    over = approval.model_copy(
        update={"state": ApprovalState.ANSWERED, "choice": "decline"}
    )
    second = cli_asked.change_approval()
    async with (
        fake(tmp_path / "s", "approve") as agent,
        asked(tmp_path / "s", agent, approval) as shown,
    ):
        await shown.wait_for(PROMPT)
        agent.tell(ApprovalRequested(approval=second))
        agent.tell(ApprovalResolved(approval=over))
        await shown.wait_for(f"{approval.id} declined")
        await shown.wait_count(PROMPT, 2)
        await shown.type("a\n")
        await agent.wait_called("approval/answer")
    (call,) = agent.called("approval/answer")
    assert call["approvalId"] == second.id


async def test_a_question_that_went_with_its_agent_gives_way_to_what_happens(
    tmp_path: Path,
) -> None:
    """What was typed while nobody was there answers nothing of the next Agent."""
    gone, new = cli_asked.command_approval(), cli_asked.change_approval()
    async with (
        fake(tmp_path / "s", "approve") as agent,
        asked(tmp_path / "s", agent, gone) as shown,
    ):
        await shown.wait_for(PROMPT)
        agent.lost = 1_000  # the next one knows nothing of the events before it
        agent.answers["approval/list"] = lambda _: ApprovalListResult(
            approvals=[new], head=1
        )
        agent.silent.add("session/open")
        await agent.cut()
        await shown.wait_for("\nconnection lost")
        await shown.type("a\n")
        agent.silent.clear()
        await agent.cut()
        await shown.wait_count(PROMPT, 2)
        ended = f"{gone.id} does not wait any more"
        assert ended in shown.shown.partition("connected again")[2]
        assert agent.called("approval/answer") == []
        await shown.type("a\n")
        await agent.wait_called("approval/answer")
        agent.tell(notice("and on it goes"))
        await shown.wait_for("and on it goes")
    (call,) = agent.called("approval/answer")
    assert call["approvalId"] == new.id


@pytest.mark.parametrize("lost", [0, 1_000], ids=["ok", "gap"])
async def test_a_question_that_waits_still_is_asked_again_once_connected(
    tmp_path: Path, lost: int
) -> None:
    approval = cli_asked.command_approval()
    async with (
        fake(tmp_path / "s", "approve") as agent,
        asked(tmp_path / "s", agent, approval) as shown,
    ):
        await shown.wait_for(PROMPT)
        agent.answers["approval/list"] = lambda _: ApprovalListResult(
            approvals=[approval], head=1
        )
        agent.lost = lost
        await agent.cut()
        await shown.wait_count(PROMPT, 2)
        again = shown.shown.partition("connected again")[2]
        assert "make deploy" in again
        assert "does not wait" not in again
        await shown.type("d\n")
        await agent.wait_called("approval/answer")
        await shown.wait_for(f"{approval.id} declined")


async def test_a_question_that_ended_in_a_gap_is_taken_back(tmp_path: Path) -> None:
    """The connection was never lost: events were, by who took them too slowly."""
    approval = cli_asked.command_approval()
    async with (
        fake(tmp_path / "s", "approve") as agent,
        asked(tmp_path / "s", agent, approval) as shown,
    ):
        await shown.wait_for(PROMPT)
        agent.tell(notice("held back"))
        agent.tell(Gap(epoch="e1", head=len(agent.journal) + 1, open=[]))
        await shown.wait_for(f"{approval.id} does not wait any more")
        await shown.wait_for("held back")
        agent.tell(notice("and on it goes"))
        await shown.wait_for("and on it goes")
    assert agent.called("approval/answer") == []


async def test_one_behind_an_open_question_that_ended_in_a_gap_is_told_after_it(
    tmp_path: Path,
) -> None:
    """Nothing is printed into the line that is being typed."""
    first, second = cli_asked.command_approval(), cli_asked.change_approval()
    async with (
        fake(tmp_path / "s", "approve") as agent,
        asked(tmp_path / "s", agent, first) as shown,
    ):
        await shown.wait_for(PROMPT)
        agent.tell(ApprovalRequested(approval=second))
        agent.answers["approval/list"] = lambda _: ApprovalListResult(
            approvals=[first], head=1
        )
        asked_before = len(agent.called("approval/list"))
        agent.tell(Gap(epoch="e1", head=len(agent.journal) + 1, open=[]))
        while len(agent.called("approval/list")) == asked_before:
            await trio.lowlevel.checkpoint()
        agent.tell(notice("after the gap"))
        await shown.type("d\n")
        await shown.wait_for("after the gap")
        below = shown.shown.partition(PROMPT)[2]
        typed, _, told = below.partition("\n")
        assert second.id not in typed
        assert f"{second.id} does not wait any more" in told
    (call,) = agent.called("approval/answer")
    assert call["approvalId"] == first.id


async def test_a_lost_connection_is_told_on_a_line_of_its_own(tmp_path: Path) -> None:
    state = tmp_path / "s"
    async with (
        fake(state) as agent,
        open_terminal(state, "watch", SHOP, NO_COLOR="1") as shown,
    ):
        await agent.subscribed.wait()
        agent.tell(ItemStarted(ref=1, item=samples.message("")))
        agent.say(1, "half a line")
        await shown.wait_for("half a line")
        await agent.cut()
        await shown.wait_for("half a line\r\nconnection lost (the Agent was stopped")
        await shown.wait_for("connected again")


async def test_what_is_filled_in_is_asked_for_and_sent_after_a_yes(
    tmp_path: Path,
) -> None:
    async with (
        fake(tmp_path / "s", "approve") as agent,
        asked(tmp_path / "s", agent, cli_asked.question_approval()) as shown,
    ):
        await shown.wait_for("a(nswer), d(eny)")
        await shown.type("a\n")
        for number, text in enumerate(("2", "Ann"), 1):
            await shown.wait_count("\r\n  > ", number)
            await shown.type(f"{text}\n")
        await shown.wait_for("Send this? [y/N]")
        await shown.type("y\n")
        await agent.wait_called("approval/answer")
    (call,) = agent.called("approval/answer")
    assert call["answers"] == {"colour": ["Blue"], "name": ["Ann"]}


@pytest.mark.parametrize(
    ("scopes", "args"),
    [((), ()), (("approve",), ("watch", SHOP, "--no-ask"))],
)
async def test_who_may_not_answer_or_does_not_want_to_is_not_asked(
    tmp_path: Path, scopes: tuple[str, ...], args: tuple[str, ...]
) -> None:
    async with (
        fake(tmp_path / "s", *scopes) as agent,
        asked(tmp_path / "s", agent, cli_asked.command_approval(), *args) as shown,
    ):
        agent.tell(notice("and on it goes"))
        said = await shown.wait_for("and on it goes")
    assert "Enter leaves it" not in said


async def test_nobody_is_asked_in_a_pipe_or_where_a_program_reads(
    tmp_path: Path,
) -> None:
    state = tmp_path / "s"
    turn = samples.turn(status=TurnStatus.IN_PROGRESS)
    async with fake(state, "approve") as agent:

        def start(params: Frame) -> TurnStartResult:
            del params
            agent.tell(ApprovalRequested(approval=cli_asked.command_approval()))
            agent.tell(TurnCompleted(turn=samples.turn(turn.id)))
            return TurnStartResult(turn=turn, delivery="started")

        agent.answers["turn/start"] = start
        for more in ((), ("--json",)):
            ran = await run_cli("send", SHOP, "Go.", *more, environ=cli_environ(state))
            assert ran.code == 0, ran.err
            assert "Enter leaves it" not in ran.out + ran.err
