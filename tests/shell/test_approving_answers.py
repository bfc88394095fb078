"""Answers with content: what a person fills in reaches Codex, and no record holds it."""

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from adapter.runtime.acts import Filled
from tests.support.asked import APPROVER, answer_to, audited
from tests.support.door import LOCAL, House, device, open_house, send
from transport.errors import (
    ApprovalClosed,
    CodexUnavailable,
    Forbidden,
    InvalidParams,
)
from transport.protocol.approvals import (
    Approval,
    ApprovalAnswerParams,
    ApprovalState,
)


async def questioned(house: House, *, secret: bool = False) -> Approval:
    house.runtime.add("thr", "t1")
    await house.door.admission.start_turn(
        LOCAL, send("thr", key="key-0123456789abcdef")
    )
    return house.runtime.writers[-1].ask_question(secret=secret)


def saying(approval: Approval, text: str) -> ApprovalAnswerParams:
    return answer_to(approval, "answer").model_copy(update={"answers": {"q1": [text]}})


async def test_a_persons_answer_reaches_codex_and_no_record_holds_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        approval = await questioned(house, secret=True)
        told = await house.door.approving.answer(APPROVER, saying(approval, "hunter2"))
        assert told.approval.state is ApprovalState.ANSWERED
        assert house.runtime.writers[0].given == [Filled(answers={"q1": ["hunter2"]})]
        (entry,) = audited(tmp_path)
        assert (entry["kind"], entry["effect"]) == ("question", "answer")
        assert "hunter2" not in (tmp_path / "audit.jsonl").read_text()
        assert "hunter2" not in str(told.wire())


async def test_an_answer_needs_the_scope_and_an_open_gate_and_a_no_needs_no_gate(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        approval = await questioned(house)
        for caller in (device("read", "write"), device("read", "approve.session")):
            with pytest.raises(Forbidden):
                await house.door.approving.answer(caller, saying(approval, "Ada"))
        house.open_desktop()
        with pytest.raises(CodexUnavailable):
            await house.door.approving.answer(APPROVER, saying(approval, "Ada"))
        assert house.runtime.writers[0].given == []
        refusal = answer_to(approval, "decline")
        told = await house.door.approving.answer(APPROVER, refusal)
        assert told.approval.state is ApprovalState.ANSWERED


async def test_an_answer_that_does_not_fit_is_refused_before_anything_is_written_down(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        approval = await questioned(house)
        for wrong in (
            answer_to(approval, "answer"),
            saying(approval, "Ada").model_copy(update={"choice": "decline"}),
        ):
            with pytest.raises(InvalidParams):
                await house.door.approving.answer(APPROVER, wrong)
        assert audited(tmp_path) == []
        assert house.runtime.writers[0].approvals()[0].state is ApprovalState.PENDING


async def test_the_same_answer_again_is_the_same_and_another_one_is_too_late(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        approval = await questioned(house)
        first = await house.door.approving.answer(APPROVER, saying(approval, "Ada"))
        again = await house.door.approving.answer(APPROVER, saying(approval, "Ada"))
        assert again == first
        with pytest.raises(ApprovalClosed):
            await house.door.approving.answer(APPROVER, saying(approval, "Eve"))
        other = device("read", "approve", device_id="d2")
        with pytest.raises(ApprovalClosed):
            await house.door.approving.answer(other, saying(approval, "Ada"))
        assert len(house.runtime.writers[0].given) == 1


async def test_of_two_answers_of_one_device_the_first_counts_and_can_be_repeated(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        approval = await questioned(house)
        ends: list[str] = []

        async def give(text: str) -> None:
            try:
                await house.door.approving.answer(APPROVER, saying(approval, text))
                ends.append(text)
            except ApprovalClosed:
                pass

        async with trio.open_nursery() as nursery:
            nursery.start_soon(give, "Ada")
            nursery.start_soon(give, "Eve")
        (won,) = ends
        assert house.runtime.writers[0].given == [Filled(answers={"q1": [won]})]
        await house.door.approving.answer(APPROVER, saying(approval, won))
        lost = "Eve" if won == "Ada" else "Ada"
        with pytest.raises(ApprovalClosed):
            await house.door.approving.answer(APPROVER, saying(approval, lost))
