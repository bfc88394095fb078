"""Methods of the workstation's own door, admin.sock. Sans-IO. PROTOCOL.md section 1."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from transport.protocol.base import NoParams, Params, WireId, WireModel
from transport.protocol.gateway import (
    ApprovalPolicyName,
    Ceiling,
    GateState,
    SandboxName,
    ScopeName,
)
from transport.protocol.turns import Cursor, PageLimit

AbsolutePath = Annotated[str, Field(pattern=r"^/", max_length=4096)]


class DeviceRow(WireModel):
    """One paired device as its owner sees it. Times in ms; `sessions`: live now.

    `follows_threads`: the folders of all threads are roots of its ceiling, too.
    """

    id: str
    name: str
    fingerprint: str
    scopes: list[str]
    ceiling: Ceiling
    follows_threads: bool = False
    created_at: int
    last_seen_at: int | None = None
    paired_by_check: bool
    sessions: int
    revoked: bool = False


class DeviceListParams(NoParams):
    """`device/list` takes nothing."""


class DeviceListResult(WireModel):
    """All devices, revoked ones too."""

    devices: list[DeviceRow]


class DeviceGrantParams(Params):
    """`device/grant`: set what is named, leave the rest."""

    device_id: WireId
    scopes: list[ScopeName] | None = None
    sandbox: SandboxName | None = None
    approval_policy: list[ApprovalPolicyName] | None = None
    roots: list[AbsolutePath] | None = None


class DeviceResult(WireModel):
    """The device after the change."""

    device: DeviceRow


class DeviceRevokeParams(Params):
    """`device/revoke`: its sessions are closed when the answer comes.

    `stop` also interrupts the turns that this device started.
    """

    device_id: WireId
    stop: bool = False


class PairOpenParams(Params):
    """`pair/open`: open the one pairing offer. Ends with the connection that opened it.

    `only` replaces the default roots. `unattended`: no question; grants `read` alone.
    """

    scopes: list[ScopeName] = ["read"]
    only: list[AbsolutePath] | None = None
    unattended: bool = False


class PairOpenResult(WireModel):
    """The text to carry to the device, and when it dies (ms since the epoch)."""

    text: str
    expires_at: int


class PairAwaitParams(NoParams):
    """`pair/await`: answers when a device has come, or the offer has ended."""


class PairCandidate(WireModel):
    """Who asks to be paired. `check`: six digits that the device shows too.

    `scopes`, `ceiling`, `follows_threads`: what it would get, as in `DeviceRow`.
    """

    name: str
    fingerprint: str
    check: str
    source: str
    scopes: list[str]
    ceiling: Ceiling | None = None
    follows_threads: bool = False
    known_revoked: bool = False


class PairAwaitResult(WireModel):
    """`candidate`, or `ended` with `why` (expired, failed handshakes, cancelled)."""

    outcome: Literal["candidate", "paired", "ended"]
    candidate: PairCandidate | None = None
    device: DeviceRow | None = None
    why: str | None = None


class PairDecideParams(Params):
    """`pair/decide`: the person's answer. `check` repeats what they compared."""

    accept: bool
    check: Annotated[str, Field(pattern=r"^\d{6}$")]


class PairDecideResult(WireModel):
    """The new device, or nothing on a no."""

    device: DeviceRow | None = None


class GatewayLockParams(Params):
    """`gateway/lock`: devices are hung up on, and meet silence until `gateway/unlock`.

    `stop` also interrupts the turns that devices started.
    """

    stop: bool = False


class GatewayUnlockParams(NoParams):
    """`gateway/unlock` takes nothing."""


class GatewayLockResult(WireModel):
    """The gate after the change."""

    gate: GateState


class AuditListParams(Params):
    """`audit/list`: newest first. A page has at most `limit` entries."""

    cursor: Cursor | None = None
    limit: PageLimit = 50


class AuditEntry(WireModel):
    """One entry of the audit log: `fields` are ids, kinds, sizes; never a text."""

    at: int
    event: str
    fields: dict[str, str | int | bool | None] = {}

    @classmethod
    def from_log(cls, row: Mapping[str, Any]) -> Self:
        """Return what a line of the log says; what is no plain value is left out."""
        fields = {
            name: value
            for name, value in row.items()
            if name not in {"at", "event"}
            and isinstance(value, str | int | bool | None)
        }
        return cls(at=row["at"], event=row["event"], fields=fields)


class AuditListResult(WireModel):
    """A page of entries; no `next_cursor` is the end."""

    entries: list[AuditEntry]
    next_cursor: str | None = None
