"""When a session is pinged, and when its time is over. Sans-IO.

PROTOCOL.md sections 1 and 2. Times are seconds of a monotonic clock.
"""

from dataclasses import dataclass
from enum import Enum, auto

from agent.edge_limits import OPEN_S
from transport.protocol.gateway import Limits


class Due(Enum):
    """What is to be done now."""

    DEAD = auto()  # nothing was heard of the peer: hang up
    RENEW = auto()  # it has lasted for as long as a session may: close
    UNOPENED = auto()  # it is connected, and does not open: close
    PING = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the session shows: when something came last, and was sent last."""

    heard_at: float
    sent_at: float
    opened: bool


class Timekeeping:
    """One session's time; it begins `now`."""

    def __init__(self, limits: Limits, *, now: float) -> None:
        self._ping_s = limits.ping_ms / 1000
        self._dead_s = limits.dead_ms / 1000
        self._until = now + limits.session_ms / 1000
        self._open_by = now + OPEN_S
        self._pinged_at = now
        self._pings = 0

    def due(self, now: float, seen: Seen) -> Due | None:
        """Return what is due; `None`: nothing before `next_look`."""
        if now >= seen.heard_at + self._dead_s:
            return Due.DEAD
        if now >= self._until:
            return Due.RENEW
        if not seen.opened and now >= self._open_by:
            return Due.UNOPENED
        if now >= self._ping_at(seen):
            return Due.PING
        return None

    def ping(self, now: float) -> int:
        """Count one ping, sent now; return its number."""
        self._pings += 1
        self._pinged_at = now
        return self._pings

    def next_look(self, seen: Seen) -> float:
        """Return when something may be due."""
        end = self._until if seen.opened else self._open_by
        return min(end, seen.heard_at + self._dead_s, self._ping_at(seen))

    def _ping_at(self, seen: Seen) -> float:
        return max(seen.sent_at, self._pinged_at) + self._ping_s
