"""Who of our writers has which thread: one at most, and how far it is. Sans-IO.

PROTOCOL.md section 3 (Lease). A lease is `none` again only when its process has been
reaped: before that, Codex's lock may still be taken.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from agent.errors import AgentError
from agent.limits import ELSEWHERE_KEPT
from transport.protocol.gateway import LeaseInfo, LeaseState


class Step(StrEnum):
    """What happens to a lease."""

    OPEN = "open"
    HOLD = "hold"
    RELEASE = "release"
    END = "end"
    LOSE = "lose"  # ends, and somebody else has the thread


_NEXT: Final = {
    (LeaseState.NONE, Step.OPEN): LeaseState.LOADING,
    (LeaseState.ELSEWHERE, Step.OPEN): LeaseState.LOADING,
    (LeaseState.LOADING, Step.HOLD): LeaseState.HELD,
    (LeaseState.LOADING, Step.RELEASE): LeaseState.RELEASING,
    (LeaseState.HELD, Step.RELEASE): LeaseState.RELEASING,
    (LeaseState.RELEASING, Step.END): LeaseState.NONE,
    (LeaseState.RELEASING, Step.LOSE): LeaseState.ELSEWHERE,
}
_OURS: Final = (LeaseState.LOADING, LeaseState.HELD, LeaseState.RELEASING)


class LeaseError(AgentError):
    """A step that the table does not allow: a bug of the caller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    state: LeaseState
    since: int


class LeaseBook:
    """All leases by key: the thread's id, or a made-up one until the thread has one."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._rows: dict[str, _Row] = {}
        self._unnamed: set[str] = set()

    def state(self, key: str) -> LeaseState:
        """Return how the lease stands."""
        row = self._rows.get(key)
        return LeaseState.NONE if row is None else row.state

    @property
    def count(self) -> int:
        """How many writers of ours live."""
        return sum(row.state in _OURS for row in self._rows.values())

    @property
    def is_full(self) -> bool:
        """Whether no further writer may be started."""
        return self.count >= self._most

    def take(self, key: str, step: Step, *, at: int) -> LeaseState:
        """Make one step at `at` ms; return the new state. Raises: LeaseError."""
        now = self.state(key)
        after = _NEXT.get((now, step))
        if after is None or (step is Step.OPEN and self.is_full):
            raise LeaseError(f"{step} of {key} while {now}, {self.count} writers")
        if after is LeaseState.NONE:
            del self._rows[key]
            self._unnamed.discard(key)
        else:
            self._rows[key] = _Row(state=after, since=at)
            self._trim()
        return after

    def _trim(self) -> None:
        lost = [k for k, row in self._rows.items() if row.state not in _OURS]
        for key in lost[: -ELSEWHERE_KEPT or None]:
            del self._rows[key]

    def open_unnamed(self, key: str, *, at: int) -> None:
        """Open a lease for a thread that has no id yet."""
        self.take(key, Step.OPEN, at=at)
        self._unnamed.add(key)

    def name(self, key: str, thread_id: str) -> None:
        """A new thread has its id now. Raises: LeaseError where that is taken."""
        if key not in self._unnamed or self.state(thread_id) in _OURS:
            raise LeaseError(f"{key} cannot become {thread_id}")
        self._unnamed.discard(key)
        self._rows[thread_id] = self._rows.pop(key)

    def forget_elsewhere(self, key: str) -> None:
        """The other holder is gone."""
        if self.state(key) is LeaseState.ELSEWHERE:
            del self._rows[key]

    def rows(self) -> list[LeaseInfo]:
        """Return our leases as clients see them, oldest first."""
        ours = [
            LeaseInfo(thread_id=key, state=row.state, since=row.since)
            for key, row in self._rows.items()
            if row.state in _OURS and key not in self._unnamed
        ]
        return sorted(ours, key=lambda row: row.since)
