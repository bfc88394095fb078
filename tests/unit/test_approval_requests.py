"""Every request of Codex: what nobody is asked is answered at once, each kind is refused in its own form."""

from typing import Any

import pytest

from adapter.approvals.replies import Reply
from adapter.approvals.server_requests import SERVER_REQUESTS, Asks
from adapter.limits import APPROVALS_OPEN
from adapter.runtime.acts import Filled
from adapter.runtime.events import Emitted
from tests.support import codex_says as says
from tests.support.approval_desk import CHANGE, COMMAND, Desk, ended, requested
from tests.support.codex_says import AT, THREAD
from transport.errors import ApprovalClosed, InvalidParams
from transport.protocol.approvals import ApprovalState
from transport.protocol.events import Notice


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
