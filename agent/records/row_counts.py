"""How many rows of the ledger each device has, and how many it may have. Sans-IO.

PROTOCOL.md section 3 (Request keys). A row that is forgotten before its time could let its
act be carried out twice, so none is: whoever has as many as it may is refused the next
one. Those of a revoked device stay as well: by them a turn of ours is known again, and a key
that two devices have used. Counted here as rows come and go: on the disk a count would
look at all of them.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from agent.access.scopes import LOCAL
from agent.limits import OWNER_ROWS, ROWS, ROWS_A_DEVICE


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Rows there may be: of one device, of all of them, of the workstation beside them."""

    device: int = ROWS_A_DEVICE
    devices: int = ROWS
    owner: int = OWNER_ROWS


@dataclass(frozen=True, slots=True, kw_only=True)
class Full:
    """The bound that is reached; `device`: whose it is, `None` for all devices'."""

    limit: int
    device: str | None


class RowCounts:
    """The rows that are there, by device."""

    def __init__(self, counts: Mapping[str, int], *, room: Room) -> None:
        self._room = room
        self._counts = Counter(counts)
        self._remote = sum(self._counts.values()) - self._counts[LOCAL]

    def add(self, device: str, more: int = 1) -> None:
        """So many rows of the device have come, or (below zero) gone."""
        self._counts[device] += more
        if device != LOCAL:
            self._remote += more
        if not self._counts[device]:
            del self._counts[device]

    def full_for(self, device: str) -> Full | None:
        """Return the bound that keeps the device from one more row, if one does."""
        share = self._room.owner if device == LOCAL else self._room.device
        if self._counts[device] >= share:
            return Full(limit=share, device=device)
        if device != LOCAL and self._remote >= self._room.devices:
            return Full(limit=self._room.devices, device=None)
        return None
