"""Normalizer and approval ledger joined: all that one app-server tells. Sans-IO.

The two must see the stream in one order: an approval is withdrawn before its turn's end
is told, and `serverRequest/resolved` belongs to the ledger. Interface first.
"""

from collections.abc import Mapping
from typing import Any

from adapter.approvals import ApprovalLedger, Asked
from adapter.normalize import Normalizer
from adapter.runtime import RuntimeEvent


class Intake:
    """Give it every notification and server request, in the order of the stream."""

    def __init__(self, normalizer: Normalizer, ledger: ApprovalLedger) -> None:
        self.normalizer = normalizer
        self.ledger = ledger

    def notification(
        self, method: str, params: Mapping[str, Any], at: int
    ) -> list[RuntimeEvent]:
        """`serverRequest/resolved` confirms; a turn that did not complete withdraws."""
        raise NotImplementedError

    def request(
        self, request_id: int | str, method: str, params: Mapping[str, Any], at: int
    ) -> Asked:
        """A server request: joined with its open item and its root thread."""
        raise NotImplementedError

    def died(self, at: int, reason: str) -> list[RuntimeEvent]:
        """The process crashed: withdraw, close, say `notice runtimeDied`."""
        raise NotImplementedError

    def ended(self, at: int) -> list[RuntimeEvent]:
        """The process ended as it should: withdraw and close."""
        raise NotImplementedError
