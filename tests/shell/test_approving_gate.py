"""Answers to approvals while the gate is closed, or while the pipe to Codex is waited for."""

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support.asked import APPROVER, answer_to, asked
from tests.support.door import House, open_house
from transport.errors import (
    CodexUnavailable,
    Timeout,
)
from transport.protocol.approvals import (
    Approval,
    ApprovalState,
)
from transport.protocol.events import Notice


async def test_while_the_gate_is_closed_a_yes_is_refused_and_a_no_is_not(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        approval = await asked(house)
        house.open_desktop()
        with pytest.raises(CodexUnavailable, match="A no is taken meanwhile"):
            await house.door.approving.answer(APPROVER, answer_to(approval))
        assert "answer" not in house.runtime.log
        denied = await house.door.approving.answer(
            APPROVER, answer_to(approval, "decline")
        )
        assert denied.approval.state is ApprovalState.ANSWERED


def keeping(house: House) -> list[str | None]:
    """The threads of which it was told that a question keeps them."""
    notices = [one.data for one in house.named("notice")]
    return [
        one.thread_id
        for one in notices
        if isinstance(one, Notice) and one.code == "questionKeepsThread"
    ]


async def test_that_a_question_keeps_its_thread_from_the_desktop_is_told_once(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        approval = await asked(house)
        assert keeping(house) == []
        house.see_desktop()
        assert keeping(house) == ["thr"]
        await house.close_desktop()
        house.see_desktop()
        assert keeping(house) == ["thr"], "once for a question"
        await house.door.approving.answer(APPROVER, answer_to(approval, "decline"))
        house.runtime.live[0].ask()  # the turn goes on behind the closed gate
        assert keeping(house) == ["thr", "thr"]


async def test_a_lock_of_the_owner_is_no_matter_of_a_question(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        await asked(house)
        house.door.keeper.set_locked(locked=True)
        assert keeping(house) == []


async def test_a_gate_that_closes_while_the_pipe_is_waited_for_lets_no_yes_through(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    refused: list[str] = []
    async with open_house(tmp_path) as house:
        approval = await asked(house)

        async def say_yes() -> None:
            with pytest.raises(CodexUnavailable) as refusal:
                await house.door.approving.answer(APPROVER, answer_to(approval))
            refused.append(refusal.value.code)

        async with trio.open_nursery() as tasks, house.runtime.writers[0].pipe:
            tasks.start_soon(say_yes)
            await wait_all_tasks_blocked()
            house.open_desktop()
            house.door.keeper.look()
        assert refused == ["codexUnavailable"]
        assert house.runtime.writers[0].approvals()[0].state is ApprovalState.PENDING


async def test_an_answer_that_waits_too_long_for_the_pipe_is_not_given_and_says_so(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        approval = await asked(house)

        async def keep_pipe() -> None:
            async with house.runtime.writers[0].pipe:
                await trio.sleep_forever()

        async with trio.open_nursery() as tasks:
            tasks.start_soon(keep_pipe)
            await wait_all_tasks_blocked()
            with pytest.raises(Timeout, match="no answer was given"):
                await house.door.approving.answer(APPROVER, answer_to(approval))
            tasks.cancel_scope.cancel()
        assert house.runtime.writers[0].approvals()[0].state is ApprovalState.PENDING


async def test_an_answer_that_codex_takes_no_more_is_not_told_as_given(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that hangs with its input closed: the writer leaves the question open."""
    async with open_house(tmp_path) as house:
        approval = await asked(house)

        async def hang(approval_id: str, **_given: object) -> Approval:
            assert approval_id == approval.id
            await trio.sleep(15)
            return approval

        with monkeypatch.context() as patched:
            patched.setattr(house.runtime.writers[0], "answer", hang)
            with pytest.raises(Timeout, match="no answer was given"):
                await house.door.approving.answer(APPROVER, answer_to(approval))
        told = await house.door.approving.answer(APPROVER, answer_to(approval))
        assert told.approval.state is ApprovalState.ANSWERED
