"""Says of a question that nobody here may allow now that it keeps its thread. Trio shell.

PROTOCOL.md section 3 (Gate, Lease). While Codex desktop is open a yes is refused, and the
question holds its writer until a no or its deadline: so long the desktop cannot have the
thread. Who could say that no is told so.
"""

from collections.abc import Callable

from adapter.runtime.events import Emit, Emitted, RuntimeEvent
from agent.app_servers.lease_registry import LeaseRegistry
from agent.approvals.approvals import waiting_in
from agent.gate.gatekeeper import GateKeeper
from transport.protocol.approvals import Approval
from transport.protocol.events import ApprovalRequested, Notice, NoticeLevel
from transport.protocol.gateway import GateReason

KEEPS = (
    "Codex cannot be continued at the workstation in this thread while a question waits "
    "in it, and a yes is refused while another program may write. Say no, or it ends at "
    "its deadline."
)


class KeptThreads:
    """Tells it once for each question: as the gate closes, or as it is asked."""

    def __init__(
        self,
        *,
        leases: LeaseRegistry,
        keeper: GateKeeper,
        emit: Emit,
        now_ms: Callable[[], int],
    ) -> None:
        self._leases = leases
        self._keeper = keeper
        self._emit = emit
        self._now_ms = now_ms
        self._told: set[str] = set()  # of those that wait
        leases.listen(self._heard)

    def gate_changed(self) -> None:
        """Tell of all questions that wait, where the gate has closed."""
        for approval in waiting_in(self._leases):
            self._tell(approval)

    def _heard(self, event: RuntimeEvent) -> None:
        if isinstance(event, Emitted) and isinstance(event.data, ApprovalRequested):
            self._tell(event.data.approval)

    def _tell(self, approval: Approval) -> None:
        if not self._somebody_waits() or approval.id in self._told:
            return
        self._told &= {one.id for one in waiting_in(self._leases)}
        self._told.add(approval.id)
        thread_id = approval.root_thread_id
        notice = Notice(
            level=NoticeLevel.WARNING,
            code="questionKeepsThread",
            message=KEEPS,
            thread_id=thread_id,
        )
        self._emit(Emitted(at=self._now_ms(), thread_id=thread_id, data=notice))

    def _somebody_waits(self) -> bool:
        return self._keeper.state.reason in (
            GateReason.DESKTOP_ACTIVE,
            GateReason.WRITER_WITHOUT_LOCK,
        )
