"""Approvals that have ended, and which device gave which answer. Sans-IO.

PROTOCOL.md section 5. For late answers: the same one of the same device is answered again,
every other one is told the end. What was filled in may be a secret: of an answer only
what tells it from others is kept.
"""

from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager

from agent.limits import RESOLVED_BYTES, RESOLVED_KEPT
from transport.protocol.approvals import Approval


class Decided:
    """The newest of them. `answer`: what tells it from others (`print_of`)."""

    def __init__(self) -> None:
        self._ended: OrderedDict[str, Approval] = OrderedDict()
        self._bytes = 0
        self._given: OrderedDict[tuple[str, str], str] = OrderedDict()

    def __len__(self) -> int:
        """How many ended approvals are kept."""
        return len(self._ended)

    def keep(self, approval: Approval) -> None:
        """It has ended."""
        self._ended[approval.id] = approval
        self._bytes += _cost(approval)
        while len(self._ended) > RESOLVED_KEPT or self._bytes > RESOLVED_BYTES:
            _, old = self._ended.popitem(last=False)
            self._bytes -= _cost(old)

    def get(self, approval_id: str) -> Approval | None:
        """Return an approval that has ended."""
        return self._ended.get(approval_id)

    @contextmanager
    def noted(self, approval_id: str, device_id: str, answer: str) -> Generator[None]:
        """Note what this device is the first to give, unless it turns out refused."""
        key = (approval_id, device_id)
        first = key not in self._given
        if first:
            self._given[key] = answer
        while len(self._given) > RESOLVED_KEPT:
            self._given.popitem(last=False)
        try:
            yield
        except Exception:
            if first:
                self._given.pop(key, None)
            raise

    def not_given(self, approval_id: str, device_id: str) -> None:
        """What was noted of this device did not get through."""
        self._given.pop((approval_id, device_id), None)

    def gave(self, approval_id: str, device_id: str, answer: str) -> bool:
        """Whether this device has given just this answer."""
        return self._given.get((approval_id, device_id)) == answer


def _cost(approval: Approval) -> int:
    return len(approval.model_dump_json())
