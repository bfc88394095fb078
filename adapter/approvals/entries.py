"""The questions of one app-server, by our opaque id and by Codex's request. Sans-IO.

PROTOCOL.md section 5. An open one is never dropped; what has ended is kept for a while, so
that a late answer is told what became of it.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from adapter.approvals.choices import Result, Way, Ways
from adapter.approvals.replies import RequestId
from adapter.limits import APPROVALS_KEPT
from transport.errors import Conflict, InvalidParams, NotFound
from transport.protocol.approvals import Approval, ApprovalState

_OPEN: Final = frozenset({ApprovalState.PENDING, ApprovalState.ANSWERING})


@dataclass(slots=True, kw_only=True)
class Entry:
    """One question, as it stands.

    `given`: what tells the answer from others; it may be a secret, so no more.
    `until`: its deadline, on the ledger's clock. `mark`: tells what Codex asked from
    anything else that it may ask in a request of the same id.
    """

    request_id: RequestId
    mark: str
    approval: Approval
    until: int
    ways: Ways
    declined: Result
    given: str | None = None

    @property
    def open(self) -> bool:
        """Whether it has no end yet."""
        return self.approval.state in _OPEN

    def way(self, digest: str, choice: str) -> Way:
        """Return what was chosen. Raises: Conflict (digest), InvalidParams."""
        if digest != self.approval.digest:
            raise Conflict(
                "This is not what you were shown. Read the approval again.",
                data={"what": "digest", "approval": self.approval.wire()},
            )
        if choice not in self.ways:
            offered = ", ".join(self.ways)
            raise InvalidParams(
                f"That is not one of the answers: {offered}.",
                data={"field": "choice", "reason": "not offered"},
            )
        return self.ways[choice]


class Entries:
    """All of them, the oldest first."""

    def __init__(self) -> None:
        self._by_id: dict[str, Entry] = {}
        self._by_request: dict[tuple[type, RequestId], Entry] = {}

    def add(self, entry: Entry) -> None:
        """Take a new one in; the oldest that ended are dropped for it."""
        self._by_id[entry.approval.id] = entry
        self._by_request[_key(entry.request_id)] = entry
        ended = [one for one in self._by_id.values() if not one.open]
        for one in ended[: max(0, len(ended) - APPROVALS_KEPT)]:
            del self._by_id[one.approval.id]
            if self.asked_in(one.request_id) is one:
                self.free(one.request_id)

    def free(self, request_id: RequestId) -> None:
        """Codex has seen the end of this request: its id may name another one."""
        self._by_request.pop(_key(request_id), None)

    def find(self, approval_id: str) -> Entry | None:
        """Return the one that we gave this id; `None`: there is none, or no more."""
        return self._by_id.get(approval_id)

    def of(self, approval_id: str) -> Entry:
        """Return the one that we gave this id. Raises: NotFound."""
        entry = self.find(approval_id)
        if entry is None:
            raise NotFound(
                "There is no such approval: it may have ended long ago.",
                data={"kind": "approval", "id": approval_id},
            )
        return entry

    def asked_in(self, request_id: RequestId) -> Entry | None:
        """Return the one that Codex asked in this request, and has not seen the end of."""
        return self._by_request.get(_key(request_id))

    def open(self) -> list[Entry]:
        """Return what is pending or answering."""
        return [one for one in self._by_id.values() if one.open]

    def pending(self) -> list[Entry]:
        """Return what nobody has answered."""
        waits = ApprovalState.PENDING
        return [one for one in self._by_id.values() if one.approval.state is waits]


def print_of_asked(method: str, params: Mapping[str, Any]) -> str:
    """Return what tells one question from another. Raises: RecursionError."""
    said = json.dumps([method, params], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()


def _key(request_id: RequestId) -> tuple[type, RequestId]:
    """0 and "0" are two requests."""
    return type(request_id), request_id
