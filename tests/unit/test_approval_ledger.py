"""Approvals: one answer at most, exactly one end, nothing granted by default."""

from itertools import count
from typing import Any

import pytest

from adapter.approvals.approvals import ApprovalLedger, Asked, Reply
from adapter.approvals.server_requests import SERVER_REQUESTS, Asks
from adapter.limits import APPROVALS_KEPT, APPROVALS_OPEN
from adapter.runtime.acts import NOTHING_FILLED, Filled
from adapter.runtime.events import Emitted, RuntimeEvent
from adapter.shapes.items import Frame, item_from
from tests.support import codex_says as says
from tests.support.codex_says import AT, THREAD
from transport.errors import ApprovalClosed, Conflict, InvalidParams, NotFound
from transport.protocol.approvals import Approval, ApprovalState
from transport.protocol.events import ApprovalRequested, ApprovalResolved, Notice
from transport.protocol.items import Item, ItemStatus

COMMAND = "item/commandExecution/requestApproval"
CHANGE = "item/fileChange/requestApproval"
FRAME = Frame(
    turn_id="t1", provenance="codex:item/started", status=ItemStatus.IN_PROGRESS
)


class Desk:
    """A ledger with a person in front of it."""

    def __init__(self, approval_ms: int = 60_000) -> None:
        numbers = count(1)
        self.ledger = ApprovalLedger(
            mint=lambda: f"apr_{next(numbers):032x}", approval_ms=approval_ms
        )

    def asked(
        self,
        request_id: int | str = 0,
        method: str = COMMAND,
        *,
        item: Item | None = None,
        root: str = THREAD,
        at: int = AT,
        raw: dict[str, Any] | None = None,
        **changes: Any,
    ) -> Asked:
        make = says.change_approval if method == CHANGE else says.command_approval
        return self.ledger.asked(
            request_id,
            method,
            make(**changes) if raw is None else raw,
            at=at,
            item=item,
            root_thread_id=root,
        )

    def question(self, request_id: int | str = 0, **changes: Any) -> Approval:
        return requested(self.asked(request_id, **changes).events)

    def answer(
        self,
        approval: Approval,
        choice: str = "allow",
        device: str = "phone",
        *,
        digest: str | None = None,
        at: int = AT,
        filled: Filled = NOTHING_FILLED,
    ) -> Reply | None:
        return self.ledger.answer(
            approval.id,
            digest=digest or approval.digest,
            choice=choice,
            decided_by=device,
            at=at,
            filled=filled,
        )

    def now(self, approval: Approval) -> Approval:
        found = self.ledger.get(approval.id)
        assert found is not None
        return found


def requested(events: list[RuntimeEvent]) -> Approval:
    (event,) = events
    assert isinstance(event, Emitted)
    assert isinstance(event.data, ApprovalRequested)
    return event.data.approval


def ended(events: list[RuntimeEvent]) -> list[tuple[str, bool | None]]:
    """Return state and `sent` of what ended."""
    found: list[tuple[str, bool | None]] = []
    for event in events:
        assert isinstance(event, Emitted)
        assert isinstance(event.data, ApprovalResolved)
        found.append((event.data.approval.state, event.data.approval.sent))
    return found


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
        Desk().ledger.answer(
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


# Everything else is answered at once


@pytest.mark.parametrize(
    "method",
    sorted(name for name, r in SERVER_REQUESTS.items() if not isinstance(r, Asks)),
)
def test_every_other_request_is_answered_at_once_and_grants_nothing(
    method: str,
) -> None:
    asked = Desk().asked(0, method)
    assert asked.reply is not None
    assert asked.reply.request_id == 0
    assert (asked.reply.result is None) != (asked.reply.error is None)
    words = str(asked.reply.result)
    assert "accept" not in words
    assert "approved" not in words


def test_a_request_that_nobody_knows_gets_an_error_and_a_notice() -> None:
    asked = Desk().asked("x", "item/teleport/requestApproval")
    assert asked.reply is not None
    assert asked.reply.error is not None
    assert asked.reply.error[0] == -32601
    (event,) = asked.events
    assert isinstance(event, Emitted)
    assert isinstance(event.data, Notice)
    assert event.data.code == "requestRefused"
    assert event.thread_id == THREAD


def test_the_time_is_told_since_it_grants_nothing() -> None:
    asked = Desk().asked(1, "currentTime/read")
    assert asked.events == []
    assert asked.reply == Reply(request_id=1, result={"currentTimeAt": AT // 1000})


def test_a_question_in_an_unknown_shape_is_declined_not_hung() -> None:
    asked = Desk().asked(0, threadId=None)
    assert asked.reply == Reply(request_id=0, result={"decision": "decline"})
    assert len(asked.events) == 1


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


# Each kind has its own refusal, and its own answer


KINDS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "command": (COMMAND, says.command_approval(), {"decision": "decline"}),
    "change": (CHANGE, says.change_approval(), {"decision": "decline"}),
    "permissions": (
        "item/permissions/requestApproval",
        says.permissions_approval(),
        {"permissions": {}, "scope": "turn"},
    ),
    "question": (
        "item/tool/requestUserInput",
        says.input_request(),
        {"answers": {}},
    ),
    "form": (
        "mcpServer/elicitation/request",
        says.elicitation(),
        {"action": "decline", "content": None},
    ),
    "page": (
        "mcpServer/elicitation/request",
        says.page_request(),
        {"action": "decline", "content": None},
    ),
    "tool": (
        "mcpServer/elicitation/request",
        says.tool_approval(),
        {"action": "decline", "content": None},
    ),
}
EACH = pytest.mark.parametrize("kind", sorted(KINDS))


@EACH
def test_each_kind_is_refused_in_its_own_form_at_the_deadline(kind: str) -> None:
    method, raw, refusal = KINDS[kind]
    desk = Desk(approval_ms=1000)
    requested(desk.asked(1, method, raw=raw).events)
    replies, events = desk.ledger.expire(AT + 1000)
    assert replies == [Reply(request_id=1, result=refusal)]
    assert ended(events) == [("expired", None)]


@EACH
def test_each_kind_in_an_unknown_shape_is_refused_in_its_own_form(kind: str) -> None:
    method, raw, refusal = KINDS[kind]
    asked = Desk().asked(1, method, raw={**raw, "threadId": 7})
    assert asked.reply == Reply(request_id=1, result=refusal)
    (event,) = asked.events
    assert isinstance(event, Emitted)
    assert isinstance(event.data, Notice)


@EACH
def test_too_many_of_each_kind_are_refused_in_its_own_form(kind: str) -> None:
    method, raw, refusal = KINDS[kind]
    desk = Desk()
    for number in range(APPROVALS_OPEN):
        desk.question(number)
    asked = desk.asked("x", method, raw=raw)
    assert asked.reply == Reply(request_id="x", result=refusal)


@EACH
def test_each_kind_is_withdrawn_and_confirmed_like_any_other(kind: str) -> None:
    method, raw, refusal = KINDS[kind]
    desk = Desk()
    first = requested(desk.asked(1, method, raw=raw).events)
    requested(desk.asked(2, method, raw=raw).events)
    reply = desk.answer(first, "deny")
    assert reply == Reply(request_id=1, result=refusal)
    assert ended(desk.ledger.confirmed(1, AT)) == [("answered", None)]
    assert ended(desk.ledger.confirmed(2, AT)) == [("withdrawn", False)]


def test_a_deep_question_is_refused_and_not_a_fault() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"a": deep}
    asked = Desk().asked(
        1, "mcpServer/elicitation/request", raw=says.tool_approval(tool_params=deep)
    )
    assert asked.reply is not None
    assert asked.reply.result == {"action": "decline", "content": None}


def test_codex_s_own_deadline_counts_where_it_is_shorter() -> None:
    desk = Desk(approval_ms=60_000)
    method = "item/tool/requestUserInput"
    raw = says.input_request(autoResolutionMs=5_000)
    approval = requested(desk.asked(1, method, raw=raw).events)
    assert approval.expires_at == AT + 5_000
    raw = says.input_request(autoResolutionMs=600_000)
    approval = requested(desk.asked(2, method, raw=raw).events)
    assert approval.expires_at == AT + 60_000


def test_an_answer_is_repeated_only_with_the_same_content() -> None:
    desk = Desk()
    method, raw, _ = KINDS["question"]
    approval = requested(desk.asked(1, method, raw=raw).events)
    red = Filled(answers={"q1": ["Red"]})
    reply = desk.answer(approval, "answer", filled=red)
    assert reply is not None
    assert reply.result == {"answers": {"q1": {"answers": ["Red"]}}}
    assert desk.answer(approval, "answer", filled=red) is None
    with pytest.raises(ApprovalClosed):
        desk.answer(approval, "answer", filled=Filled(answers={"q1": ["Blue"]}))
    desk.ledger.confirmed(1, AT)
    assert desk.answer(approval, "answer", filled=red) is None


def test_an_answer_that_does_not_fit_leaves_the_question_open() -> None:
    desk = Desk()
    method, raw, _ = KINDS["form"]
    approval = requested(desk.asked(1, method, raw=raw).events)
    wrong = Filled(content={"colour": "green"})
    with pytest.raises(InvalidParams):
        desk.answer(approval, "answer", filled=wrong)
    with pytest.raises(InvalidParams):
        desk.ledger.check(
            approval.id, digest=approval.digest, choice="answer", filled=wrong
        )
    assert desk.now(approval).state is ApprovalState.PENDING
    assert desk.answer(approval, "answer", filled=Filled(content={"colour": "red"}))


def test_what_was_filled_in_is_in_no_event() -> None:
    desk = Desk()
    method = "item/tool/requestUserInput"
    raw = says.input_request(says.question(options=None, isSecret=True))
    approval = requested(desk.asked(1, method, raw=raw).events)
    desk.answer(approval, "answer", filled=Filled(answers={"q1": ["hunter2"]}))
    (event,) = desk.ledger.confirmed(1, AT)
    assert isinstance(event, Emitted)
    assert "hunter2" not in str(event.data.wire())
    assert "hunter2" not in repr(desk.ledger.get(approval.id))
