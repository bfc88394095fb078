"""A codex that uses the id of a question again: no yes may go to what it was not for."""

from typing import Any, Final

import pytest
import trio

from tests.support.fake_app_server import sent
from tests.support.faulty_codex import (
    COMMAND,
    ENDS,
    STARTED,
    THREAD,
    Ear,
    Faulty,
    Steps,
    begun,
    ended,
    open_faulty,
    question,
    send,
)
from transport.client import Client
from transport.errors import ApprovalClosed
from transport.protocol.approvals import (
    Approval,
    ApprovalAnswerParams,
    ApprovalState,
)
from transport.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    TurnCompleted,
)
from transport.protocol.methods import APPROVAL_ANSWER, TURN_START
from transport.protocol.turns import TurnStatus

OTHER: Final = {**COMMAND, "id": "cmd_2", "command": "rm -rf x"}
RESOLVED: Final = {
    "notify": "serverRequest/resolved",
    "params": {"threadId": THREAD, "requestId": 0},
}


def other_question() -> dict[str, Any]:
    asked = question(0)
    params = {**asked["params"], "itemId": "cmd_2", "command": "rm -rf x"}
    return {**asked, "params": params}


def answers(run: Faulty) -> list[dict[str, Any]]:
    """What codex was answered so far."""
    return [one for one in sent(run.folder) if one.get("id") == 0]


async def allow(client: Client, asked: Approval) -> Approval:
    yes = ApprovalAnswerParams(
        approval_id=asked.id, digest=asked.digest, choice="allow"
    )
    return (await client.call(APPROVAL_ANSWER, yes, timeout_s=20)).approval


async def asked(ear: Ear, number: int) -> Approval:
    await ear.until(lambda: len(ear.data(ApprovalRequested)) == number)
    return ear.data(ApprovalRequested)[-1].approval


async def test_two_open_questions_of_one_id_are_both_refused_and_the_turn_goes_on() -> (
    None
):
    play: Steps = [
        *STARTED,
        begun(COMMAND),
        begun(OTHER),
        question(0),
        other_question(),
    ]
    over: Steps = [
        ended({**COMMAND, "status": "declined"}),
        ended({**OTHER, "status": "declined"}),
        *ENDS,
    ]
    with trio.fail_after(240):
        async with open_faulty(turn__start=[play], answers={"0": over}) as run:
            await run.client.call(TURN_START, send(), timeout_s=20)
            first = await asked(run.ear, 1)
            turn = (await run.ear.first(TurnCompleted)).turn
            assert turn.status is TurnStatus.COMPLETED
            (end,) = [one.approval for one in run.ear.data(ApprovalResolved)]
            assert (end.id, end.state) == (first.id, ApprovalState.WITHDRAWN)
            assert "requestRefused" in run.ear.notices()
            with pytest.raises(ApprovalClosed):
                await allow(run.client, first)
            while len(answers(run)) < 2:
                await trio.lowlevel.checkpoint()
            assert all("error" in one for one in answers(run))


async def test_an_id_that_is_free_again_asks_anew() -> None:
    play: Steps = [*STARTED, begun(COMMAND), question(0)]
    again: Steps = [
        RESOLVED,
        ended({**COMMAND, "status": "completed"}),
        begun(OTHER),
        other_question(),
    ]
    with trio.fail_after(240):
        async with open_faulty(turn__start=[play], answers={"0": again}) as run:
            await run.client.call(TURN_START, send(), timeout_s=20)
            first = await asked(run.ear, 1)
            assert (await allow(run.client, first)).state is ApprovalState.ANSWERED
            second = await asked(run.ear, 2)
            assert second.detail.command == "rm -rf x"
            repeated = await allow(run.client, first)  # says nothing to the second
            assert repeated.id == first.id
            assert len(answers(run)) == 1
            page = [one.approval.id for one in run.ear.data(ApprovalResolved)]
            assert page == [first.id]
