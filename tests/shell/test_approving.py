"""Who may see and answer an approval, and what is on record about it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from agent.access.scopes import Caller
from agent.records.audit import Audit
from tests.support.asked import APPROVER, answer_to, asked, audited
from tests.support.door import device, open_house, wall_ms
from transport.errors import (
    ApprovalClosed,
    Conflict,
    Forbidden,
    Internal,
    InvalidParams,
    NotFound,
)
from transport.protocol.approvals import (
    ApprovalListParams,
    ApprovalState,
)


async def test_an_answer_reaches_codex_once_and_is_on_record_before(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        approval = await asked(house)
        before: list[int] = []
        house.runtime.at("answer", lambda: before.append(len(audited(tmp_path))))
        result = await house.door.approving.answer(APPROVER, answer_to(approval))
        assert result.approval.state is ApprovalState.ANSWERED
        assert result.approval.decided_by == "d1"
        assert before == [1]
        (entry,) = audited(tmp_path)
        assert entry["device"] == "d1"
        assert entry["effect"] == "allow"
        assert "rm -rf" not in json.dumps(entry)  # content-free


async def test_the_same_device_may_repeat_itself_and_nobody_else_may_answer(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        approval = await asked(house)
        first = await house.door.approving.answer(APPROVER, answer_to(approval))
        again = await house.door.approving.answer(APPROVER, answer_to(approval))
        assert again == first
        other = device("read", "approve", device_id="d2")
        for caller, choice in ((other, "accept"), (APPROVER, "decline")):
            with pytest.raises(ApprovalClosed) as caught:
                await house.door.approving.answer(caller, answer_to(approval, choice))
            assert caught.value.data["approval"]["decidedBy"] == "d1"
        assert house.runtime.log.count("answer") == 1


async def test_of_two_devices_at_the_same_instant_one_wins(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        approval = await asked(house)
        ends: list[str] = []

        async def give(caller: Caller, choice: str) -> None:
            try:
                await house.door.approving.answer(caller, answer_to(approval, choice))
                ends.append("won")
            except ApprovalClosed:
                ends.append("lost")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(give, device("approve"), "accept")
            nursery.start_soon(give, device("approve", device_id="d2"), "decline")
        assert sorted(ends) == ["lost", "won"]
        assert house.runtime.log.count("answer") == 1


async def test_an_answer_to_other_words_is_a_conflict(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        approval = await asked(house)
        params = answer_to(approval).model_copy(update={"digest": "of-yesterday"})
        with pytest.raises(Conflict) as caught:
            await house.door.approving.answer(APPROVER, params)
        assert caught.value.data["what"] == "digest"
        with pytest.raises(InvalidParams):
            await house.door.approving.answer(APPROVER, answer_to(approval, "always"))
        assert "answer" not in house.runtime.log
        assert audited(tmp_path) == []


async def test_what_is_remembered_needs_its_own_scope(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        approval = await asked(house)
        with pytest.raises(Forbidden) as caught:
            await house.door.approving.answer(
                APPROVER, answer_to(approval, "acceptForSession")
            )
        assert caught.value.data["scope"] == "approve.session"
        for caller in (device("read", "write"), device("approve.session")):
            with pytest.raises(Forbidden):
                await house.door.approving.answer(caller, answer_to(approval))
        assert house.runtime.writers[0].approvals()[0].state is ApprovalState.PENDING
        both = device("approve", "approve.session")
        await house.door.approving.answer(both, answer_to(approval, "acceptForSession"))


async def test_approvals_of_hidden_threads_do_not_exist(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        approval = await asked(house)
        blind = device("read", "approve", roots=["/elsewhere"])
        listed = await house.door.approvals.list(blind, ApprovalListParams())
        assert listed.approvals == []
        with pytest.raises(NotFound):
            await house.door.approving.answer(blind, answer_to(approval))
        with pytest.raises(NotFound):
            missing = answer_to(approval).model_copy(update={"approval_id": "apr_x"})
            await house.door.approving.answer(APPROVER, missing)


async def test_the_list_is_oldest_first_and_paged(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        ids = [(await asked(house, f"thr{number}")).id for number in range(3)]
        listing = house.door.approvals
        everything = await listing.list(APPROVER, ApprovalListParams())
        assert [one.id for one in everything.approvals] == ids
        assert everything.next_cursor is None
        first = await listing.list(APPROVER, ApprovalListParams(limit=2))
        rest = await listing.list(
            APPROVER, ApprovalListParams(cursor=first.next_cursor)
        )
        assert [one.id for one in (*first.approvals, *rest.approvals)] == ids
        only = await listing.list(APPROVER, ApprovalListParams(thread_id="thr1"))
        assert [one.id for one in only.approvals] == [ids[1]]


async def test_a_device_revoked_while_its_answer_is_written_down_gives_none(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    def lives() -> Iterator[bool]:
        yield False

    async with open_house(tmp_path) as house:
        approval = await asked(house)
        gone = Caller(
            device_id="d1",
            name="phone",
            scopes=APPROVER.scopes,
            ceiling=APPROVER.ceiling,
            alive=lambda: next(lives()),
        )
        with pytest.raises(Forbidden):
            await house.door.approving.answer(gone, answer_to(approval))
        assert "answer" not in house.runtime.log


async def test_without_an_audit_log_nothing_is_allowed_and_everything_can_be_denied(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    audit = Audit(tmp_path / "audit.jsonl", now_ms=wall_ms)
    async with open_house(tmp_path, audit=audit) as house:
        approval = await asked(house)
        audit.close()
        (tmp_path / "audit.jsonl").unlink()
        (tmp_path / "audit.jsonl").mkdir()
        with pytest.raises(Internal, match="audit"):
            await house.door.approving.answer(APPROVER, answer_to(approval))
        assert house.runtime.writers[0].approvals()[0].state is ApprovalState.PENDING
        denied = await house.door.approving.answer(
            APPROVER, answer_to(approval, "decline")
        )
        assert denied.approval.state is ApprovalState.ANSWERED
        (tmp_path / "audit.jsonl").rmdir()
        audit.record("space again")
        assert audited(tmp_path)[0]["effect"] == "deny"


@pytest.mark.parametrize("state", [ApprovalState.EXPIRED, ApprovalState.WITHDRAWN])
async def test_an_end_that_nobody_decided_is_on_record(
    state: ApprovalState, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        approval = await asked(house)
        house.runtime.writers[0].resolve(approval.id, state)
        await wait_all_tasks_blocked()
        (entry,) = audited(tmp_path)
        assert entry["event"] == f"approval/{state}"
        assert entry["approval"] == approval.id
        with pytest.raises(ApprovalClosed) as caught:
            await house.door.approving.answer(APPROVER, answer_to(approval))
        assert caught.value.data["approval"]["state"] == str(state)


async def test_a_late_answer_to_a_dead_writer_is_told_what_became_of_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        approval = await asked(house)
        house.runtime.writers[0].die()
        await wait_all_tasks_blocked()
        with pytest.raises(ApprovalClosed):
            await house.door.approving.answer(APPROVER, answer_to(approval))


async def test_an_answer_is_given_to_its_end_when_its_client_leaves(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        approval = await asked(house)
        with trio.CancelScope() as scope:

            async def tunnel() -> None:
                scope.cancel(reason="train tunnel")
                await trio.sleep(1)  # the bytes are on their way

            house.runtime.at("answer", tunnel)
            await house.door.approving.answer(APPROVER, answer_to(approval))
            await trio.lowlevel.checkpoint()
        assert scope.cancelled_caught
        again = await house.door.approving.answer(APPROVER, answer_to(approval))
        assert again.approval.state is ApprovalState.ANSWERED
        assert house.runtime.log.count("answer") == 1
