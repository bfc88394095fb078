"""A question as the approval that clients are shown, with its digest. Sans-IO.

PROTOCOL.md section 5. An approval is at most 256 KiB packed; one that has to be cut for
it can only be refused.
"""

import hashlib
import json
from typing import Final

from adapter.approvals.questions import Question, smaller
from adapter.limits import APPROVAL_BYTES
from adapter.shapes.texts import packed_bound
from transport.protocol.approvals import Approval, ApprovalState

_SMALLER: Final = (16 * 1024, 4 * 1024, 1024, 512, 256)


def show(
    approval_id: str, question: Question, root: str, at: int, expires_at: int
) -> tuple[Approval, Question]:
    """Return the approval, and the question as it is asked in the end."""
    approval = _approval(approval_id, question, root, at, expires_at)
    for limit in _SMALLER:
        if packed_bound(approval.wire()) <= APPROVAL_BYTES:
            break
        question = question.without_yes(smaller(question.detail, limit))
        approval = _approval(approval_id, question, root, at, expires_at)
    return approval, question


def _approval(
    approval_id: str, question: Question, root: str, at: int, expires_at: int
) -> Approval:
    approval = Approval(
        id=approval_id,
        kind=question.kind,
        thread_id=question.thread_id,
        root_thread_id=root,
        turn_id=question.turn_id,
        item_id=question.item_id,
        title=question.title,
        detail=question.detail,
        choices=question.listed(),
        digest="",
        created_at=at,
        expires_at=expires_at,
        state=ApprovalState.PENDING,
    )
    return approval.model_copy(update={"digest": _digest(approval)})


def _digest(approval: Approval) -> str:
    """Bind an answer to all that was shown: SHA-256 of its canonical JSON."""
    shown = approval.wire()
    for key in ("digest", "state", "createdAt", "expiresAt"):
        shown.pop(key, None)
    data = json.dumps(shown, sort_keys=True, separators=(",", ":")).encode()
    return hashlib.sha256(data).hexdigest()
