"""Normalizer and approval ledger joined: all that one app-server tells. Sans-IO.

The two must see the stream in one order: an approval is withdrawn before its turn's end
is told, and `serverRequest/resolved` belongs to the ledger.
"""

from collections.abc import Mapping
from typing import Any, Final

from adapter.approvals.approvals import ApprovalLedger
from adapter.approvals.replies import Asked
from adapter.calls.jsonrpc import Unread
from adapter.events.normalize import Normalizer
from adapter.runtime.events import RuntimeEvent
from adapter.shapes.shapes import MISFITS, mapping, maybe_id, wire_id

_UNLOADED: Final = frozenset({"thread/archived", "thread/closed", "thread/deleted"})


class Intake:
    """Give it every notification and server request, in the order of the stream."""

    def __init__(self, normalizer: Normalizer, ledger: ApprovalLedger) -> None:
        self.normalizer = normalizer
        self.ledger = ledger

    def notification(
        self, method: str, params: Mapping[str, Any], at: int
    ) -> list[RuntimeEvent]:
        """Take one in; never raises on what Codex said. `at`: ms.

        `serverRequest/resolved` confirms an answer. A turn that did not complete, and a
        thread that is unloaded, withdraw what is still open in them.
        """
        try:
            events = self._approvals(method, params, at)
        except MISFITS:
            events = []  # the normalizer will say that it does not fit
        return events + self.normalizer.notification(method, params, at)

    def request(
        self, request_id: int | str, method: str, params: Mapping[str, Any], at: int
    ) -> Asked:
        """Take a server request in, joined with its open item and its root thread."""
        thread_id = item_id = ""
        try:
            thread_id = maybe_id(params.get("threadId")) or ""
            item_id = maybe_id(params.get("itemId")) or ""
        except MISFITS:
            pass  # the ledger refuses what does not fit
        return self.ledger.asked(
            request_id,
            method,
            params,
            at=at,
            item=self.normalizer.item(thread_id, item_id),
            root_thread_id=self.normalizer.root_of(thread_id) or thread_id,
        )

    def unread(self, line: Unread, at: int) -> Asked:
        """Take in what was too long to be read: no question of Codex waits for ever, nor
        does a turn that has ended seem to run."""
        method, thread_id = line.method, line.thread_id
        params = {} if thread_id is None else {"threadId": thread_id}
        if line.request_id is not None:
            root = self.normalizer.root_of(thread_id or "") or thread_id or ""
            return self.ledger.refuse(
                line.request_id, method, params, at=at, root_thread_id=root
            )
        events: list[RuntimeEvent] = []
        if method == "turn/completed" and thread_id is not None:
            events += self.ledger.withdraw(thread_ids={thread_id}, at=at)
            events += self.normalizer.end_unread(thread_id, at)
        return Asked(events=events + self.normalizer.unread(method, params, at))

    def died(self, at: int, reason: str) -> list[RuntimeEvent]:
        """The process crashed: withdraw, close, say `notice runtimeDied`."""
        withdrawn = self.ledger.withdraw(thread_ids=None, at=at)
        return withdrawn + self.normalizer.died(at, reason)

    def ended(self, at: int) -> list[RuntimeEvent]:
        """The process ended as it should: withdraw and close."""
        withdrawn = self.ledger.withdraw(thread_ids=None, at=at)
        return withdrawn + self.normalizer.ended(at)

    def _approvals(
        self, method: str, params: Mapping[str, Any], at: int
    ) -> list[RuntimeEvent]:
        if method == "serverRequest/resolved":
            return self.ledger.confirmed(params["requestId"], at)
        over = method in _UNLOADED
        if method == "turn/completed":
            over = mapping(params["turn"])["status"] != "completed"
        elif method == "thread/status/changed":
            over = mapping(params["status"])["type"] == "notLoaded"
        if not over:
            return []
        return self.ledger.withdraw(thread_ids={wire_id(params["threadId"])}, at=at)
