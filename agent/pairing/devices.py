"""The paired devices: who is known, with which rights, and how that changes. Blocking I/O.

SECURITY.md, PROTOCOL.md section 2. All changes happen in one step without a checkpoint:
in the file first where they give, in memory first where they take away. So nobody has
what the file does not say, and a full disk keeps nobody in.
"""

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from agent.access.scopes import Caller
from agent.edge_limits import DEVICES, LAST_SEEN_S
from agent.errors import StorageError
from agent.pairing.device_records import (
    Device,
    DevicesFileError,
    read_devices,
    write_devices,
)
from agent.records.reserve import Insist, at_once
from transport.errors import InvalidParams, NotFound, Overloaded
from transport.keys import KeyFileError, read_secret_file, write_secret_file
from transport.protocol.admin import DeviceGrantParams
from transport.protocol.gateway import Ceiling

__all__ = ["Device", "Devices", "DevicesFileError"]

_LOG: Final = logging.getLogger(__name__)


class Devices:
    """All records, the file's and the memory's. `now_ms`: the wall clock.

    `within`: cuts a ceiling to what the owner's config file allows any device.
    `insist`: runs a write for which a full disk has kept room.
    """

    def __init__(
        self,
        path: Path,
        *,
        now_ms: Callable[[], int],
        within: Callable[[Ceiling], Ceiling] = lambda ceiling: ceiling,
        insist: Insist = at_once,
    ) -> None:
        self._path = path
        self._now_ms = now_ms
        self._within = within
        self._insist = insist
        self._by_id: dict[str, Device] = {one.id: one for one in _load(path)}
        self._generation: Counter[str] = Counter()
        self._sights: Counter[str] = Counter()
        self._unwritten_seen = 0
        self._owed = False

    def __len__(self) -> int:
        return len(self._by_id)

    def all(self) -> list[Device]:
        """Return every record, revoked ones too, oldest first."""
        return list(self._by_id.values())

    def get(self, device_id: str) -> Device:
        """Return one record. Raises: NotFound."""
        device = self._by_id.get(device_id)
        if device is None:
            raise NotFound(
                "There is no such device; see threadgate devices.",
                data={"kind": "device", "id": device_id},
            )
        return device

    def by_public(self, public: bytes) -> Device | None:
        """Return the device of a public key, revoked or not."""
        return next((one for one in self.all() if one.public == public), None)

    def psk_of(self, public: bytes) -> bytes | None:
        """Return the psk that lets this key in now."""
        device = self.by_public(public)
        if device is None or device.psk is None:
            return None
        return device.psk.reveal()

    def caller(self, device_id: str) -> Caller:
        """Return the device as a caller; it dies with the next change of its rights."""
        device = self.get(device_id)
        generation = self._generation[device_id]
        return Caller(
            device_id=device_id,
            name=device.name,
            scopes=device.scopes,
            ceiling=self._within(device.ceiling),
            follows_threads=device.follows_threads,
            alive=lambda: (
                device_id in self._by_id
                and self._generation[device_id] == generation
                and not device.revoked
            ),
        )

    def sight(self, device_id: str) -> int:
        """Return how often it has changed, in this run, what the device can see."""
        return self._sights[device_id]

    def add(self, device: Device) -> None:
        """Store a new device, durably; a record of the same key goes.

        Raises: StorageError (nothing is stored), Overloaded.
        """
        others = [one for one in self.all() if one.public != device.public]
        if len(others) >= DEVICES:
            raise Overloaded(
                "The file of devices is full. Remove old ones from it.",
                data={"limit": DEVICES},
            )
        self._write([*others, device])
        for gone in set(self._by_id) - {one.id for one in others}:
            del self._generation[gone], self._sights[gone]
        self._by_id = {one.id: one for one in [*others, device]}

    def grant(self, params: DeviceGrantParams) -> Device:
        """Set what is named in the params.

        Raises: NotFound, InvalidParams (more than the config file allows any device: a
        grant that cannot count must not look as if it did), StorageError.
        """
        before = self.get(params.device_id)
        if before.revoked:
            raise NotFound(
                "This device is revoked; pair it again.",
                data={"kind": "device", "id": before.id},
            )
        device = _granted(before, params)
        _check_allowed(params, self._within(device.ceiling))
        self._write([device if one.id == device.id else one for one in self.all()])
        self._replace(device)
        if _sees_otherwise(before, device):
            self._sights[device.id] += 1
        return device

    def revoke(self, device_id: str) -> Device:
        """Let it in no more, from this line on; `save` makes that last.

        Raises: NotFound.
        """
        device = self.get(device_id)
        if not device.revoked:
            self._replace(device.tombstone(self._now_ms()))
            self._owed = True
        return self.get(device_id)

    def save(self) -> None:
        """Write the file, at any cost where rights were taken away.

        Raises: StorageError.
        """
        insist = self._insist if self._owed else at_once
        insist(lambda: self._write(self.all()))

    def seen(self, device_id: str) -> None:
        """Note that a session of it has opened."""
        device = self._by_id.get(device_id)
        if device is None:
            return
        now = self._now_ms()
        self._by_id[device_id] = replace(device, last_seen_at=now)
        if abs(now - self._unwritten_seen) >= LAST_SEEN_S * 1000:
            self._unwritten_seen = now
            self.keep_seen()

    def keep_seen(self) -> None:
        """Write when devices were last seen; no harm where the disk refuses."""
        try:
            self.save()
        except StorageError:
            _LOG.warning("the file of devices could not be written")

    def catch_up(self) -> None:
        """Write what was taken away while the disk was full, if it takes it now."""
        if self._owed:
            self.keep_seen()

    def _replace(self, device: Device) -> None:
        self._generation[device.id] += 1
        self._by_id[device.id] = device

    def _write(self, devices: list[Device]) -> None:
        try:
            write_secret_file(self._path, write_devices(devices))
        except (OSError, KeyFileError) as exc:
            raise StorageError(f"{self._path} could not be written: {exc}") from exc
        self._owed = False


def _load(path: Path) -> list[Device]:
    try:
        data = read_secret_file(path)
    except FileNotFoundError:
        return []
    return read_devices(data, where=str(path))


def _granted(device: Device, params: DeviceGrantParams) -> Device:
    ceiling = device.ceiling
    named = {
        "sandbox": params.sandbox,
        "approval_policy": params.approval_policy,
        "roots": params.roots,
    }
    update = {key: value for key, value in named.items() if value is not None}
    scopes = device.scopes if params.scopes is None else frozenset(params.scopes)
    return replace(
        device,
        scopes=scopes,
        ceiling=ceiling.model_copy(update=update),
        # Roots that are named are all of them: no thread's folder is added.
        follows_threads=device.follows_threads and params.roots is None,
    )


def _sees_otherwise(before: Device, after: Device) -> bool:
    return _sight_of(before) != _sight_of(after)


def _sight_of(device: Device) -> tuple[bool, bool, list[str]]:
    """All that decides which threads exist for it. The same roots see less without
    the folders of threads beside them."""
    return "read" in device.scopes, device.follows_threads, device.ceiling.roots


def _check_allowed(params: DeviceGrantParams, counts: Ceiling) -> None:
    missing = [
        one for one in params.approval_policy or () if one not in counts.approval_policy
    ]
    if params.sandbox not in (None, counts.sandbox):
        field, setting = "sandbox", f'sandbox = "{params.sandbox}"'
    elif missing:
        field, setting = "approvalPolicy", f'approval_policies = [..., "{missing[0]}"]'
    else:
        return
    reason = f"the Agent's config file must allow it first: {setting}"
    raise InvalidParams(
        f"Nothing was granted: {reason}.", data={"field": field, "reason": reason}
    )
