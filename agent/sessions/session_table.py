"""Which sessions are open: bounds, replacement, everyone of a device. Sans-IO.

PROTOCOL.md section 2 (Session).
"""

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from agent.access.scopes import LOCAL
from agent.edge_limits import LOCAL_SESSIONS, OWN_DESCRIPTORS, RETRY_AFTER_MS
from transport.errors import Overloaded


class Seat(Protocol):
    """What the table knows of a session."""

    @property
    def device_id(self) -> str:
        """Whose session it is."""
        ...

    @property
    def instance(self) -> str:
        """The client program's own mark, kept over reconnects."""
        ...


S = TypeVar("S", bound=Seat)


def sessions_within(descriptors: int, *, wanted: int, half_open: int) -> int:
    """Return how many sessions devices may have, so that descriptors are left for the rest.

    Each may have a file open beside its socket (an upload). `half_open`: connections
    that have not proved themselves, which are gone in seconds and so count for a quarter
    at most. An eighth is the devices' in any case.
    """
    strangers = min(half_open, descriptors // 4)
    left = (descriptors - OWN_DESCRIPTORS - strangers) // 2
    return max(1, min(wanted, max(left, descriptors // 8)))


class SessionTable(Generic[S]):
    """All open sessions, oldest first. The workstation's own have a bound of theirs."""

    def __init__(self, *, most: int, most_per_device: int) -> None:
        self._most = most
        self._most_per_device = most_per_device
        self._sessions: dict[int, S] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[S]:
        return iter(list(self._sessions.values()))

    def of(self, device_id: str) -> list[S]:
        """Return the open sessions of one device."""
        return [one for one in self if one.device_id == device_id]

    def add(self, session: S) -> list[S]:
        """Let a session in; return those that it replaces, which are out now.

        Raises: Overloaded.
        """
        mine = self.of(session.device_id)
        replaced = [one for one in mine if one.instance == session.instance]
        local = session.device_id == LOCAL
        bound = LOCAL_SESSIONS if local else self._most_per_device
        if len(mine) - len(replaced) >= bound:
            raise _full(f"This device has {bound} sessions open; close one.", bound)
        if not local and self._remote() - len(replaced) >= self._most:
            raise _full(f"The Agent has {self._most} sessions open.", self._most)
        for one in replaced:
            self.remove(one)
        self._sessions[id(session)] = session
        return replaced

    def remove(self, session: S) -> None:
        """Forget a session that has ended; twice is harmless."""
        self._sessions.pop(id(session), None)

    def _remote(self) -> int:
        return sum(one.device_id != LOCAL for one in self._sessions.values())


def _full(message: str, limit: int) -> Overloaded:
    return Overloaded(message, data={"limit": limit}, retry_after_ms=RETRY_AFTER_MS)
