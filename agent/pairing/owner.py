"""What the owner does with paired devices, over admin.sock. Trio shell.

PROTOCOL.md sections 1 and 2, SECURITY.md (Revocation). Rights that are taken away are
gone before anything else happens: the memory first, then the sessions, then the disk.
What has begun is carried to its end, also where the asking session ends before.
"""

from collections.abc import Awaitable, Callable
from functools import partial

from agent.access.rights import Rights
from agent.errors import AuditUnavailableError, StorageError
from agent.mutations.refusals import storage_failed
from agent.offload import in_thread
from agent.pairing.device_records import Device
from agent.pairing.devices import Devices
from agent.records.audit import Audit
from agent.sessions.acts import Acts
from agent.sessions.eviction import Evicted, Eviction
from agent.sessions.router import Call
from agent.sessions.session_table import SessionTable
from agent.sessions.sessions import Session
from transport.errors import CloseCode, Internal
from transport.protocol.admin import (
    DeviceGrantParams,
    DeviceListParams,
    DeviceListResult,
    DeviceResult,
    DeviceRevokeParams,
    DeviceRow,
)


class Owner:
    """`device/list`, `device/grant`, `device/revoke`."""

    def __init__(
        self,
        *,
        devices: Devices,
        table: SessionTable[Session],
        acts: Acts,
        audit: Audit,
        rights_of: Callable[[str], Rights],
        eviction: Eviction,
        forget_blobs: Callable[[str], Awaitable[None]],
    ) -> None:
        self._devices = devices
        self._table = table
        self._acts = acts
        self._audit = audit
        self._rights_of = rights_of
        self._eviction = eviction
        self._forget_blobs = forget_blobs

    async def list_all(self, call: Call, params: DeviceListParams) -> DeviceListResult:
        """`device/list`."""
        del call, params
        return DeviceListResult(devices=[self._row(one) for one in self._devices.all()])

    async def grant(self, call: Call, params: DeviceGrantParams) -> DeviceResult:
        """`device/grant`: live sessions have the new rights when this answers."""
        del call
        self._devices.get(params.device_id)
        return await self._acts.carry(partial(self._grant, params)).wait()

    async def _grant(self, params: DeviceGrantParams) -> DeviceResult:
        try:
            await in_thread(
                lambda: self._audit.record(
                    "device/grant",
                    device=params.device_id,
                    scopes=None if params.scopes is None else " ".join(params.scopes),
                    ceiling=params.sandbox is not None
                    or params.approval_policy is not None
                    or params.roots is not None,
                )
            )
        except AuditUnavailableError as exc:
            raise storage_failed("audit log") from exc
        try:
            device = self._devices.grant(params)
        except StorageError as exc:
            raise storage_failed("file of devices") from exc
        self.tell(device.id)
        return DeviceResult(device=self._row(device))

    async def revoke(self, call: Call, params: DeviceRevokeParams) -> DeviceResult:
        """`device/revoke`: nothing of the device happens any more when this answers."""
        del call
        device = self._devices.revoke(params.device_id)
        gone = self._eviction.begin([device.id], CloseCode.REVOKED, stop=params.stop)
        kept = self._saved()
        self._audit.note("device/revoke", device=device.id, stop=params.stop)
        put_out = partial(self._put_out, device, gone, kept=kept)
        return await self._acts.carry(put_out).wait()

    async def _put_out(
        self, device: Device, gone: Evicted, *, kept: bool
    ) -> DeviceResult:
        await self._eviction.finish(gone)
        await self._forget_blobs(device.id)
        if not kept:
            raise Internal(
                "The device is out now, but that could not be written: make room in "
                "the state folder before the Agent restarts. It is written then by itself."
            )
        return DeviceResult(device=self._row(device))

    def _saved(self) -> bool:
        try:
            self._devices.save()
        except StorageError:
            return False
        return True

    def tell(self, device_id: str) -> None:
        """Give the device's sessions its rights as they are now."""
        for session in self._table.of(device_id):
            session.change(self._rights_of(device_id))

    def _row(self, device: Device) -> DeviceRow:
        return device.row(sessions=len(self._table.of(device.id)))
