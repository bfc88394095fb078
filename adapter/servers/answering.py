"""A person's answer goes to Codex, and is confirmed. Trio shell. PROTOCOL.md section 5."""

from contextlib import suppress
from typing import Final

import trio

from adapter.approvals.replies import Reply
from adapter.errors import NoAnswerError, NotDeliveredError
from adapter.limits import CONFIRM_S
from adapter.runtime.acts import Filled, Guard
from adapter.servers.app_server import AppServer
from transport.errors import NotFound
from transport.protocol.approvals import Approval, ApprovalState

_OPEN: Final = frozenset({ApprovalState.PENDING, ApprovalState.ANSWERING})


async def give_answer(
    server: AppServer,
    approval_id: str,
    *,
    digest: str,
    choice: str,
    decided_by: str,
    filled: Filled,
    guard: Guard | None,
) -> Approval:
    """Answer once; return when Codex confirmed, or after 15 s still answering.

    Raises: what `guard` and the ledger raise.
    """

    def decide() -> Reply | None:
        if guard is not None:
            guard()
        return server.ledger.answer(
            approval_id,
            digest=digest,
            choice=choice,
            decided_by=decided_by,
            at=server.now_ms(),
            filled=filled,
        )

    # Where the process is going, its end withdraws what was sent.
    with suppress(NotDeliveredError, NoAnswerError):
        await server.peer.reply(decide)
    with trio.move_on_after(CONFIRM_S):
        await server.wait_until(lambda: not _is_open(server, approval_id))
    approval = server.ledger.get(approval_id)
    if approval is None:
        raise NotFound("This approval is gone.", data={"id": approval_id})
    return approval


def _is_open(server: AppServer, approval_id: str) -> bool:
    approval = server.ledger.get(approval_id)
    return approval is not None and approval.state in _OPEN
