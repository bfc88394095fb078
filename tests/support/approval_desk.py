"""A ledger of approvals with a person in front of it."""

from itertools import count
from typing import Any

from adapter.approvals.approvals import ApprovalLedger
from adapter.approvals.replies import Asked, Reply
from adapter.runtime.acts import NOTHING_FILLED, Filled
from adapter.runtime.events import Emitted, RuntimeEvent
from tests.support import codex_says as says
from tests.support.codex_says import AT, THREAD
from transport.protocol.approvals import Approval
from transport.protocol.events import ApprovalRequested, ApprovalResolved
from transport.protocol.items import Item

COMMAND = "item/commandExecution/requestApproval"
CHANGE = "item/fileChange/requestApproval"


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
        reply = self.ledger.reply_to(
            approval.id,
            digest=digest or approval.digest,
            choice=choice,
            decided_by=device,
            at=at,
            filled=filled,
        )
        if reply is not None:
            self.ledger.note_sent(
                approval.id, choice=choice, decided_by=device, filled=filled
            )
        return reply

    def now(self, approval: Approval) -> Approval:
        found = self.ledger.get(approval.id)
        assert found is not None
        return found


def requested(events: list[RuntimeEvent]) -> Approval:
    """Return the approval of the one event, in which it is asked for."""
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
