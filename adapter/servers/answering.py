"""A person's answer goes to Codex, and is confirmed. Trio shell. PROTOCOL.md section 5."""

from contextlib import suppress
from functools import partial

import trio

from adapter.approvals.replies import Reply
from adapter.errors import NoAnswerError, NotDeliveredError
from adapter.limits import CONFIRM_S
from adapter.runtime.acts import Filled, Guard
from adapter.servers.app_server import AppServer
from transport.errors import NotFound
from transport.protocol.approvals import Approval


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

    Until the pipe takes it, it is not given: what `guard` and the ledger say is asked
    again after each wait. Raises: what these raise.
    """

    def decide() -> Reply | None:
        if guard is not None:
            guard()
        return server.ledger.reply_to(
            approval_id,
            digest=digest,
            choice=choice,
            decided_by=decided_by,
            at=server.now_ms(),
            filled=filled,
        )

    sent = partial(
        server.ledger.note_sent,
        approval_id,
        choice=choice,
        decided_by=decided_by,
        filled=filled,
    )
    # Where the process is going, its end withdraws what was sent.
    with suppress(NotDeliveredError, NoAnswerError):
        await server.peer.reply(decide, sent=sent)
    with trio.move_on_after(CONFIRM_S):
        await server.wait_until(lambda: not server.ledger.is_open(approval_id))
    approval = server.ledger.get(approval_id)
    if approval is None:
        raise NotFound("This approval is gone.", data={"id": approval_id})
    return approval
