"""The ledger of one app-server's questions: opaque id ↔ server request. Sans-IO.

PROTOCOL.md section 5. Interface first; the bodies follow in the next commits.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from adapter.runtime import RuntimeEvent
from transport.protocol.approvals import Approval
from transport.protocol.items import Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What to write back to the app-server. `request_id` keeps its JSON type (0 is one)."""

    request_id: int | str
    result: Mapping[str, Any] | None = None
    error: tuple[int, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a server request led to: events, and the reply where none is waited for."""

    events: list[RuntimeEvent]
    reply: Reply | None = None


class ApprovalLedger:
    """Every question has one answer at most and exactly one end."""

    def __init__(self, *, mint: Callable[[], str], approval_ms: int = 300_000) -> None:
        """`mint` returns a fresh `apr_` id with 128 random bits."""
        raise NotImplementedError

    def asked(
        self,
        request_id: int | str,
        method: str,
        params: Mapping[str, Any],
        *,
        at: int,
        item: Item | None,
        root_thread_id: str,
    ) -> Asked:
        """Take any server request in: ask a person, or refuse at once."""
        raise NotImplementedError

    def answer(
        self, approval_id: str, *, digest: str, choice: str, decided_by: str, at: int
    ) -> Reply | None:
        """Enter `answering`; write the reply before any checkpoint.

        `None`: the same device repeats its choice, nothing more is to be sent; read
        the state with `get`. Raises: NotFound, Conflict (digest), InvalidParams
        (choice), ApprovalClosed.
        """
        raise NotImplementedError

    def confirmed(self, request_id: int | str, at: int) -> list[RuntimeEvent]:
        """`serverRequest/resolved` came."""
        raise NotImplementedError

    def expire(self, now: int) -> tuple[list[Reply], list[RuntimeEvent]]:
        """Decline what nobody answered in time."""
        raise NotImplementedError

    def next_deadline(self) -> int | None:
        """When `expire` has something to do next (ms)."""
        raise NotImplementedError

    def withdraw(
        self, *, thread_ids: Collection[str] | None, at: int
    ) -> list[RuntimeEvent]:
        """End what is open in these threads (`None`: all, the process is gone)."""
        raise NotImplementedError

    def pending(self) -> list[Approval]:
        """What is pending or answering, oldest first."""
        raise NotImplementedError

    def get(self, approval_id: str) -> Approval | None:
        """An approval, also one that ended lately."""
        raise NotImplementedError
