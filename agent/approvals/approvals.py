"""Which approvals a caller may see: those that wait, those that ended. Trio shell.

PROTOCOL.md sections 2 and 5. An approval of a thread that does not exist for the caller
is not there.
"""

from collections.abc import Callable, Sequence

from agent.access.scopes import Caller
from agent.access.sight import Sight
from agent.app_servers.lease import Lease
from agent.app_servers.lease_registry import LeaseRegistry
from agent.approvals.decided import Decided
from agent.reading.pages import fitting, unwrap_cursor, wrap_cursor
from transport.errors import NotFound
from transport.protocol.approvals import (
    Approval,
    ApprovalListParams,
    ApprovalListResult,
)


class Approvals:
    """`approval/list`, and finding the one that is answered."""

    def __init__(
        self,
        *,
        leases: LeaseRegistry,
        sight: Sight,
        decided: Decided,
        head: Callable[[], int],
    ) -> None:
        self._leases = leases
        self._sight = sight
        self._decided = decided
        self._head = head

    async def list(
        self, caller: Caller, params: ApprovalListParams
    ) -> ApprovalListResult:
        """Return what waits for an answer, oldest first. Raises: InvalidParams."""
        head = self._head()
        listing = {"method": "approval/list", "thread": params.thread_id}
        after = unwrap_cursor(listing, params.cursor)
        rows = [
            approval
            for approval in sorted(waiting_in(self._leases), key=_place)
            if self._shows(caller, approval)
            and params.thread_id in (None, approval.thread_id, approval.root_thread_id)
            and (after is None or _place(approval) > after)
        ]
        page = rows[: params.limit]
        page = page[: fitting(page)]
        cursor = _place(page[-1]) if len(page) < len(rows) else None
        return ApprovalListResult(
            approvals=page, next_cursor=wrap_cursor(listing, cursor), head=head
        )

    def find(self, caller: Caller, approval_id: str) -> tuple[Lease | None, Approval]:
        """Return an approval, and the lease whose writer still has it open.

        Raises: NotFound.
        """
        for lease in self._leases.held():
            for approval in lease.writer.approvals() if lease.writer else ():
                if approval.id == approval_id and self._shows(caller, approval):
                    return lease, approval
        ended = self._decided.get(approval_id)
        if ended is not None and self._shows(caller, ended):
            return None, ended
        raise NotFound(
            "There is no such approval (or not for this device). `threadgate approvals` "
            "lists those that wait.",
            data={"kind": "approval", "id": approval_id},
        )

    def _shows(self, caller: Caller, approval: Approval) -> bool:
        return self._sight.sees(caller, approval.root_thread_id)


def waiting_in(leases: LeaseRegistry) -> Sequence[Approval]:
    """Return what the writers of ours wait for, by writer."""
    return [
        approval
        for lease in leases.held()
        if lease.writer is not None
        for approval in lease.writer.approvals()
    ]


def _place(approval: Approval) -> str:
    return f"{approval.created_at:020d} {approval.id}"
