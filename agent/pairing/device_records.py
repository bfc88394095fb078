"""One paired device, and the file that holds them all. Sans-IO.

SECURITY.md. The file is as secret as the identity key: it holds every device's psk.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.edge_limits import DEVICE_NAME
from agent.errors import StorageError
from transport.identities import KEY_SIZE, Secret, fingerprint
from transport.protocol.admin import DeviceRow
from transport.protocol.gateway import Ceiling

FORM: Final = 1  # of the file; another number is of another version of threadgate


class DevicesFileError(StorageError):
    """The file of paired devices is not what it should be; never made anew by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A paired device. Times in ms since the epoch. `psk` is gone once it is revoked.

    `follows_threads`: the folders of all threads are roots too.
    """

    id: str
    public: bytes
    psk: Secret | None
    name: str
    scopes: frozenset[str]
    ceiling: Ceiling
    follows_threads: bool
    created_at: int
    last_seen_at: int | None = None
    paired_by_check: bool
    revoked_at: int | None = None

    @property
    def revoked(self) -> bool:
        """Whether only its tombstone is left."""
        return self.revoked_at is not None

    def row(self, *, sessions: int) -> DeviceRow:
        """Return what its owner sees. `sessions`: how many are open now."""
        return DeviceRow(
            id=self.id,
            name=self.name,
            fingerprint=fingerprint(self.public),
            scopes=sorted(self.scopes),
            ceiling=self.ceiling,
            follows_threads=self.follows_threads,
            created_at=self.created_at,
            last_seen_at=self.last_seen_at,
            paired_by_check=self.paired_by_check,
            sessions=sessions,
            revoked=self.revoked,
        )

    def tombstone(self, at: int) -> "Device":
        """Return what is kept of it: enough to know the key again."""
        return replace(self, psk=None, scopes=frozenset(), revoked_at=at)


def plain_name(raw: bytes) -> str:
    """Return a device's own name fit for a terminal: 40 printable characters at most.

    Control, format and bidirectional characters would let a stranger write into the
    question that its owner answers.
    """
    text = " ".join(raw.decode("utf-8", "replace").split())
    shown = "".join(c for c in text if c.isprintable() and c != "\ufffd")
    return shown[:DEVICE_NAME].strip() or "unnamed device"


_Hex32 = Annotated[str, Field(pattern=rf"^[0-9a-f]{{{2 * KEY_SIZE}}}$")]


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    id: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    public: _Hex32
    psk: _Hex32 | None
    name: Annotated[str, Field(min_length=1, max_length=DEVICE_NAME)]
    scopes: list[str]
    sandbox: str
    approval_policy: list[str]
    roots: list[str]
    follows_threads: bool
    created_at: int
    last_seen_at: int | None
    paired_by_check: bool
    revoked_at: int | None


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    form: Literal[1]
    devices: list[_Row]


def read_devices(data: bytes, *, where: str) -> list[Device]:
    """Return the devices of the file's bytes.

    Raises: DevicesFileError, with what to do.
    """
    try:
        rows = _File.model_validate_json(data).devices
    except ValidationError:
        raise DevicesFileError(
            f"{where} is damaged or of another version. Restore it from a backup; or "
            "remove it and pair your devices again."
        ) from None
    devices = [_device(row) for row in rows]
    if len({one.public for one in devices}) != len(devices):
        raise DevicesFileError(f"{where} names one key twice. Restore a backup.")
    return devices


def write_devices(devices: Iterable[Device]) -> bytes:
    """Return the file's bytes."""
    rows = [_row(one).model_dump() for one in devices]
    return json.dumps({"form": FORM, "devices": rows}, indent=1).encode()


def _device(row: _Row) -> Device:
    return Device(
        id=row.id,
        public=bytes.fromhex(row.public),
        psk=None if row.psk is None else Secret(bytes.fromhex(row.psk)),
        name=row.name,
        scopes=frozenset(row.scopes),
        ceiling=Ceiling(
            sandbox=row.sandbox, approval_policy=row.approval_policy, roots=row.roots
        ),
        follows_threads=row.follows_threads,
        created_at=row.created_at,
        last_seen_at=row.last_seen_at,
        paired_by_check=row.paired_by_check,
        revoked_at=row.revoked_at,
    )


def _row(device: Device) -> _Row:
    psk = device.psk
    return _Row(
        id=device.id,
        public=device.public.hex(),
        psk=None if psk is None else psk.reveal().hex(),
        name=device.name,
        scopes=sorted(device.scopes),
        sandbox=device.ceiling.sandbox,
        approval_policy=device.ceiling.approval_policy,
        roots=device.ceiling.roots,
        follows_threads=device.follows_threads,
        created_at=device.created_at,
        last_seen_at=device.last_seen_at,
        paired_by_check=device.paired_by_check,
        revoked_at=device.revoked_at,
    )
