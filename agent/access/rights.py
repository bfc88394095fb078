"""What a session may do and see, as one value that can be replaced. Sans-IO.

PROTOCOL.md section 2. A session is given new rights in one step: what it does from then
on is checked against them, what it had begun is refused by the old caller's `alive`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from agent.access.scopes import Caller
from transport.protocol.gateway import DeviceInfo


class Door(StrEnum):
    """Where a session came in. Only the workstation's own door gives admin."""

    DEVICE = "device"
    WORKSTATION = "workstation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """One device's rights at one time.

    `epoch`: the one that cursors of this device are of. `sees`: whether a root thread
    exists for it; None means that all do.
    """

    door: Door
    caller: Caller
    device: DeviceInfo
    epoch: str
    sees: Callable[[str], bool] | None = None
