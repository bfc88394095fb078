"""`approve` and `deny` against an Agent that says what the test tells it."""

from functools import partial
from pathlib import Path

import pytest

from clients.cli import (
    answering,
)
from clients.cli.exits import ExitCode, FailedError, UsageProblemError
from clients.cli.screen import Screen
from tests.support import cli_asked
from tests.support.cli_runs import paper, printed
from tests.support.fake_agent import Frame, fake
from transport.protocol.approvals import (
    ApprovalListResult,
    ApprovalResult,
    ApprovalState,
)
from transport.protocol.base import WireModel

APPROVAL = cli_asked.command_approval()


def waiting(_: Frame) -> WireModel:
    return ApprovalListResult(approvals=[APPROVAL], head=1)


def answered(params: Frame) -> WireModel:
    ended = cli_asked.command_approval(
        state=ApprovalState.ANSWERED, choice=params["choice"], decided_by="local"
    )
    return ApprovalResult(approval=ended)


async def approve(screen: Screen, *, yes: bool = True, **more: object) -> ExitCode:
    options = {"host": None, "remember": False, "digest": None, **more}
    call = partial(answering.approve, approval="0123", yes=yes)
    return await call(screen, **options)  # type: ignore[arg-type] # of the test


async def test_approve_allows_exactly_what_was_fetched(state: Path) -> None:
    screen = paper()
    async with fake(state, approval_list=waiting, approval_answer=answered) as agent:
        assert await approve(screen) is ExitCode.OK
    assert agent.called("approval/answer") == [
        {"approvalId": APPROVAL.id, "digest": APPROVAL.digest, "choice": "accept"}
    ]
    assert "make deploy" in printed(screen)
    assert "network access for this command" in printed(screen)
    assert "approved at the workstation" in printed(screen)


async def test_approve_without_a_terminal_needs_a_yes(state: Path) -> None:
    async with fake(state, approval_list=waiting) as agent:
        with pytest.raises(UsageProblemError, match="--yes"):
            await approve(paper(), yes=False)
    assert agent.called("approval/answer") == []


async def test_what_has_changed_since_one_looked_is_not_approved(state: Path) -> None:
    async with fake(state, approval_list=waiting) as agent:
        with pytest.raises(FailedError, match="is not what you saw"):
            await approve(paper(), digest="of-something-else")
    assert agent.called("approval/answer") == []


async def test_a_choice_that_is_not_offered_is_not_invented(state: Path) -> None:
    async with fake(state, approval_list=waiting) as agent:
        with pytest.raises(FailedError, match="offered is: allow"):
            await approve(paper(), remember=True)
    assert agent.called("approval/answer") == []


async def test_an_approval_that_waits_no_more_says_what_does(state: Path) -> None:
    async with fake(state, approval_list=waiting):
        with pytest.raises(FailedError, match=APPROVAL.id):
            await approve(paper(), approval="ffff")


@pytest.mark.parametrize(("stop", "choice"), [(False, "decline"), (True, "cancel")])
async def test_deny_declines_without_asking(
    state: Path, stop: bool, choice: str
) -> None:
    async with fake(state, approval_list=waiting, approval_answer=answered) as agent:
        code = await answering.deny(paper(), host=None, approval="0123", stop=stop)
        assert code is ExitCode.OK
    assert agent.called("approval/answer")[0]["choice"] == choice
