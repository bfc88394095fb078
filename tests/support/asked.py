"""Questions of a fake writer, their answers through the door, and what is on record of them."""

import json
from pathlib import Path
from typing import Any

from tests.support.door import LOCAL, House, device, send
from transport.protocol.approvals import (
    Approval,
    ApprovalAnswerParams,
)

APPROVER = device("read", "approve")


async def asked(house: House, thread_id: str = "thr") -> Approval:
    """Start a turn in the thread, and let it ask for a command."""
    house.runtime.add(thread_id, "t1")
    key = f"key-of-{thread_id}-0123456789"
    await house.door.admission.start_turn(LOCAL, send(thread_id, key=key))
    return house.runtime.writers[-1].ask()


def answer_to(approval: Approval, choice: str = "accept") -> ApprovalAnswerParams:
    """Return the params of an approval/answer."""
    return ApprovalAnswerParams(
        approval_id=approval.id, digest=approval.digest, choice=choice
    )


def audited(path: Path) -> list[dict[str, Any]]:
    """Return what the audit log says about approvals, in order."""
    log = path / "audit.jsonl"
    lines = log.read_text().splitlines() if log.exists() else []
    return [one for one in map(json.loads, lines) if "approval" in one["event"]]
