"""Approvals: one answer at most, exactly one end, nothing granted by default."""

import pytest

from adapter.approvals.replies import Asked, Reply
from adapter.limits import APPROVALS_KEPT, APPROVALS_OPEN
from adapter.shapes.item_frame import Frame
from adapter.shapes.items import item_from
from tests.support import codex_says as says
from tests.support.approval_desk import CHANGE, COMMAND, Desk, ended
from tests.support.codex_says import AT, THREAD
from transport.errors import ApprovalClosed, Conflict, InvalidParams, NotFound
from transport.protocol.approvals import ApprovalState
from transport.protocol.items import ItemStatus

FRAME = Frame(
    turn_id="t1", provenance="codex:item/started", status=ItemStatus.IN_PROGRESS
)


def test_a_question_is_asked_and_answered_once() -> None:
    desk = Desk()
    approval = desk.question(0)
    assert desk.ledger.pending() == [approval]
    assert desk.answer(approval) == Reply(request_id=0, result={"decision": "accept"})
    answering = desk.now(approval)
    assert (answering.state, answering.decided_by) == ("answering", "phone")
    assert ended(desk.ledger.confirmed(0, AT)) == [("answered", None)]
    assert desk.ledger.confirmed(0, AT) == []
    assert desk.ledger.pending() == []


def test_request_id_zero_is_a_request() -> None:
    desk = Desk()
    assert desk.asked(0).events
    assert desk.ledger.confirmed(0, AT)


def test_request_ids_keep_their_json_type() -> None:
    desk = Desk()
    number, word = desk.question(0), desk.question("0")
    assert number.id != word.id
    reply = desk.answer(word)
    assert reply is not None
    assert reply.request_id == "0"
    assert ended(desk.ledger.confirmed("0", AT)) == [("answered", None)]
    assert desk.now(number).state is ApprovalState.PENDING


def test_a_question_that_codex_sends_again_is_the_same_question() -> None:
    desk = Desk()
    approval = desk.question(3)
    assert desk.asked(3) == Asked(events=[])
    desk.answer(approval)
    assert desk.asked(3) == Asked(events=[])
    assert len(desk.ledger.pending()) == 1


def test_another_question_under_the_id_of_an_open_one_ends_both() -> None:
    """Codex does not do that; a yes for one of them could go to the other."""
    desk = Desk()
    first = desk.question(3)
    mixed = desk.asked(3, command="rm -rf x")
    assert [reply.request_id for reply in mixed.replies] == [3, 3]
    assert all(reply.error is not None for reply in mixed.replies)
    assert ended(mixed.events[:1]) == [("withdrawn", False)]
    assert len(mixed.events) == 2  # and a notice
    assert desk.ledger.pending() == []
    with pytest.raises(ApprovalClosed):
        desk.answer(first)
    third = desk.asked(3, command="rm -rf y")
    assert len(third.replies) == len(third.events) == 1
    desk.ledger.confirmed(3, AT)
    assert desk.answer(desk.question(3, command="rm -rf z")) is not None


@pytest.mark.parametrize("method", ["currentTime/read", "something/new"])
def test_a_request_of_any_kind_under_the_id_of_an_open_question_ends_both(
    method: str,
) -> None:
    desk = Desk()
    first = desk.question(3)
    mixed = desk.asked(3, method, raw={"threadId": THREAD})
    assert [reply.result for reply in mixed.replies] == [None, None]
    assert ended(mixed.events[:1]) == [("withdrawn", False)]
    with pytest.raises(ApprovalClosed):
        desk.answer(first)


def test_one_too_long_to_be_read_under_the_id_of_an_open_question_ends_both() -> None:
    desk = Desk()
    first = desk.question(3)
    said = {"threadId": THREAD}
    mixed = desk.ledger.refuse(3, COMMAND, said, at=AT, root_thread_id=THREAD)
    assert [reply.result for reply in mixed.replies] == [None, None]
    assert ended(mixed.events[:1]) == [("withdrawn", False)]
    with pytest.raises(ApprovalClosed):
        desk.answer(first)


def test_one_under_the_id_of_an_answer_on_its_way_is_refused_alone() -> None:
    desk = Desk()
    first = desk.question(3)
    desk.answer(first)
    mixed = desk.asked(3, command="rm -rf x")
    assert len(mixed.replies) == 1
    assert ended(mixed.events[:1]) == [("withdrawn", True)]
    assert desk.ledger.pending() == []


def test_an_id_whose_end_codex_has_seen_may_name_another_question() -> None:
    desk = Desk()
    first = desk.question(0)
    desk.answer(first)
    desk.ledger.confirmed(0, AT)
    second = desk.question(0, command="rm -rf x")
    assert desk.ledger.pending() == [second]
    assert desk.answer(first) is None  # a repeat of the first says nothing to it
    assert desk.now(second).state is ApprovalState.PENDING


@pytest.mark.parametrize(
    ("choice", "decision"),
    [("allow", "accept"), ("deny", "decline"), ("cancel", "cancel")],
)
def test_each_choice_is_one_of_codex_s_words(choice: str, decision: str) -> None:
    desk = Desk()
    reply = desk.answer(desk.question(), choice)
    assert reply is not None
    assert reply.result == {"decision": decision}


def test_the_same_device_may_repeat_its_choice_and_nothing_is_sent_again() -> None:
    desk = Desk()
    approval = desk.question()
    desk.answer(approval)
    assert desk.answer(approval) is None
    desk.ledger.confirmed(0, AT)
    assert desk.answer(approval) is None
    assert desk.now(approval).state is ApprovalState.ANSWERED


@pytest.mark.parametrize(("choice", "device"), [("allow", "laptop"), ("deny", "phone")])
def test_any_other_answer_after_the_first_is_refused(choice: str, device: str) -> None:
    desk = Desk()
    approval = desk.question()
    desk.answer(approval)
    with pytest.raises(ApprovalClosed) as refusal:
        desk.answer(approval, choice, device)
    assert refusal.value.data["approval"]["decidedBy"] == "phone"
    assert desk.now(approval).choice == "allow"


def test_an_answer_to_something_else_is_a_conflict() -> None:
    desk = Desk()
    approval = desk.question()
    with pytest.raises(Conflict) as refusal:
        desk.answer(approval, digest="0" * 64)
    assert refusal.value.data["what"] == "digest"
    assert desk.now(approval).state is ApprovalState.PENDING


@pytest.mark.parametrize(
    "choice",
    ["allowForSession", "acceptForSession", "accept", "acceptWithExecpolicy", ""],
)
def test_a_choice_that_is_not_offered_is_refused(choice: str) -> None:
    desk = Desk()
    approval = desk.question()
    with pytest.raises(InvalidParams):
        desk.answer(approval, choice)
    assert desk.now(approval).state is ApprovalState.PENDING


def test_an_unknown_approval_is_not_found() -> None:
    with pytest.raises(NotFound):
        Desk().ledger.reply_to(
            "apr_guess", digest="x", choice="allow", decided_by="phone", at=AT
        )


def test_nobody_s_answer_is_a_decline_at_the_deadline() -> None:
    desk = Desk(approval_ms=1000)
    approval = desk.question(5)
    assert approval.expires_at == AT + 1000
    assert desk.ledger.next_deadline() == AT + 1000
    assert desk.ledger.expire(AT + 999) == ([], [])
    replies, events = desk.ledger.expire(AT + 1000)
    assert replies == [Reply(request_id=5, result={"decision": "decline"})]
    assert ended(events) == [("expired", None)]
    assert desk.ledger.next_deadline() is None
    assert desk.ledger.confirmed(5, AT + 1001) == []
    with pytest.raises(ApprovalClosed):
        desk.answer(approval, at=AT + 1002)


def test_a_yes_after_the_deadline_is_refused_before_the_clock_has_run() -> None:
    desk = Desk(approval_ms=1000)
    with pytest.raises(ApprovalClosed):
        desk.answer(desk.question(), at=AT + 1000)
    assert len(desk.ledger.expire(AT + 1000)[0]) == 1


def test_an_answer_on_its_way_does_not_expire() -> None:
    desk = Desk(approval_ms=1000)
    desk.answer(desk.question())
    assert desk.ledger.expire(AT + 5000) == ([], [])
    assert desk.ledger.next_deadline() is None


def test_what_codex_no_longer_asks_is_withdrawn() -> None:
    desk = Desk()
    desk.question(1)
    assert ended(desk.ledger.confirmed(1, AT)) == [("withdrawn", False)]


def test_a_withdrawal_says_whether_an_answer_had_left() -> None:
    desk = Desk()
    first, _ = desk.question(1), desk.question(2)
    desk.answer(first)
    events = desk.ledger.withdraw(thread_ids={THREAD}, at=AT)
    assert ended(events) == [("withdrawn", True), ("withdrawn", False)]
    assert desk.ledger.confirmed(1, AT) == []
    assert desk.answer(first) is None  # the same answer as before: it was sent


def test_a_withdrawal_is_for_the_threads_that_it_names() -> None:
    desk = Desk()
    desk.question(1)
    other = desk.question(2, threadId=says.CHILD)
    assert len(desk.ledger.withdraw(thread_ids={THREAD}, at=AT)) == 1
    assert desk.ledger.pending() == [other]
    assert len(desk.ledger.withdraw(thread_ids=None, at=AT)) == 1


def test_a_sub_agent_s_question_names_its_root() -> None:
    desk = Desk()
    (event,) = desk.asked(1, threadId=says.CHILD, root=THREAD).events
    assert (event.thread_id, event.root_thread_id) == (says.CHILD, THREAD)
    (event,) = desk.asked(2).events
    assert (event.thread_id, event.root_thread_id) == (THREAD, None)


def test_more_questions_than_anybody_can_answer_are_declined() -> None:
    desk = Desk()
    for number in range(APPROVALS_OPEN):
        desk.question(number)
    asked = desk.asked(9999)
    assert asked.reply == Reply(request_id=9999, result={"decision": "decline"})
    assert len(desk.ledger.pending()) == APPROVALS_OPEN


def test_the_ledger_forgets_what_ended_long_ago_and_never_what_is_open() -> None:
    desk = Desk()
    waiting = desk.question("open")
    first = desk.question(0)
    desk.ledger.confirmed(0, AT)
    for number in range(1, APPROVALS_KEPT + 5):
        desk.question(number)
        desk.ledger.confirmed(number, AT)
    assert desk.ledger.get(first.id) is None
    assert desk.ledger.pending() == [waiting]


def test_a_change_is_asked_with_the_diff_of_its_item() -> None:
    desk = Desk()
    item = item_from(says.change(), FRAME)
    approval = desk.question(0, method=CHANGE, item=item)
    assert approval.detail.changes is not None
    assert approval.detail.changes[0].diff == "one\ntwo\n"
    reply = desk.answer(approval)
    assert reply is not None
    assert reply.result == {"decision": "accept"}


def test_ids_and_digests_differ_for_equal_questions() -> None:
    desk = Desk()
    first, second = desk.question(1), desk.question(2)
    assert first.digest != second.digest
    assert len(first.digest) == 64
    with pytest.raises(Conflict):
        desk.answer(first, digest=second.digest)
