"""Who may see and answer an approval, and what is on record about it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from adapter.runtime.acts import Filled
from agent.access.scopes import Caller
from agent.records.audit import Audit
from tests.support.door import LOCAL, House, device, open_house, send, wall_ms
from transport.errors import (
    ApprovalClosed,
    CodexUnavailable,
    Conflict,
    Forbidden,
    Internal,
    InvalidParams,
    NotFound,
    Timeout,
)
from transport.protocol.approvals import (
    Approval,
    ApprovalAnswerParams,
    ApprovalListParams,
    ApprovalState,
)
from transport.protocol.events import Notice

APPROVER = device("read", "approve")


async def asked(house: House, thread_id: str = "thr") -> Approval:
    house.runtime.add(thread_id, "t1")
    key = f"key-of-{thread_id}-0123456789"
    await house.door.admission.start_turn(LOCAL, send(thread_id, key=key))
    return house.runtime.writers[-1].ask()


def answer_to(approval: Approval, choice: str = "accept") -> ApprovalAnswerParams:
    return ApprovalAnswerParams(
        approval_id=approval.id, digest=approval.digest, choice=choice
    )


def audited(path: Path) -> list[dict[str, Any]]:
    log = path / "audit.jsonl"
    lines = log.read_text().splitlines() if log.exists() else []
    return [one for one in map(json.loads, lines) if "approval" in one["event"]]


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
        listed = await house.door.approving.list(blind, ApprovalListParams())
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
        listing = house.door.approving
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


@pytest.mark.parametrize("state", [ApprovalState.EXPIRED, ApprovalState.WITHDRAWN])
async def test_an_end_that_nobody_decided_is_on_record(
    state: ApprovalState, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with open_house(tmp_path) as house:
        approval = await asked(house)
        house.runtime.writers[0].resolve(approval.id, state)
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
