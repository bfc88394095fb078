"""`devices list|grant|revoke`: the owner's say over paired devices. Trio shell."""

from collections.abc import Sequence
from pathlib import Path

from clients.cli.doors import open_local
from clients.cli.exits import ExitCode, UsageProblemError
from clients.cli.find import find_device, list_devices
from clients.cli.lines.devices import device_table
from clients.cli.screen import Screen
from clients.cli.style import Span
from transport.protocol.admin import (
    DeviceGrantParams,
    DeviceResult,
    DeviceRevokeParams,
)
from transport.protocol.gateway import ApprovalPolicyName, SandboxName, ScopeName
from transport.protocol.methods import DEVICE_GRANT, DEVICE_REVOKE


async def list_all(screen: Screen) -> ExitCode:
    """List the devices, revoked ones too."""
    async with open_local() as client:
        devices = await list_devices(client)
    if screen.as_json:
        screen.json({"devices": [device.wire() for device in devices]})
    screen.lines(device_table(devices, screen.clock(), width=None))
    return ExitCode.OK


async def grant(
    screen: Screen,
    *,
    device: str,
    scopes: Sequence[ScopeName] | None,
    sandbox: SandboxName | None,
    policies: Sequence[ApprovalPolicyName],
    only: Sequence[Path],
) -> ExitCode:
    """Set what is named; what is not named stays as it is."""
    if not (scopes is not None or sandbox or policies or only):
        raise UsageProblemError(
            "say what to set: --scopes, --sandbox, --policy or --only"
        )
    async with open_local() as client:
        row = await find_device(client, device)
        params = DeviceGrantParams(
            device_id=row.id,
            scopes=list(scopes) if scopes is not None else None,
            sandbox=sandbox,
            approval_policy=list(policies) or None,
            roots=[str(folder.resolve()) for folder in only] or None,
        )
        result = await client.call(DEVICE_GRANT, params)
    _show(screen, result)
    return ExitCode.OK


async def revoke(screen: Screen, *, device: str, stop: bool) -> ExitCode:
    """Cut a device off; it is done when this returns."""
    async with open_local() as client:
        row = await find_device(client, device)
        params = DeviceRevokeParams(device_id=row.id, stop=stop)
        result = await client.call(DEVICE_REVOKE, params)
    screen.say(Span(f"Revoked: {row.name} ({row.id}). It is cut off.", "good"))
    if not stop:
        screen.say("A turn that it has begun goes on (`--stop` interrupts its turns).")
    if screen.as_json:
        screen.json(result.wire())
    return ExitCode.OK


def _show(screen: Screen, result: DeviceResult) -> None:
    if screen.as_json:
        screen.json(result.wire())
    screen.lines(device_table([result.device], screen.clock(), width=None))
