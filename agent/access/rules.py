"""Which rights a device has at this moment, put together for its sessions. Sans-IO.

PROTOCOL.md section 2. The owner's config file bounds every ceiling: what it does not name
no device gets, whatever was granted before.
"""

from functools import partial

from agent.access.rights import Door, Rights
from agent.access.scopes import LOCAL, local_caller, narrowed
from agent.access.sight import Sight
from agent.config import Config
from agent.pairing.devices import Devices
from agent.sessions.epoch import epoch_of
from transport.protocol.gateway import Ceiling, DeviceInfo


def within(config: Config, ceiling: Ceiling) -> Ceiling:
    """Return the ceiling, no wider than the config file allows any device."""
    return narrowed(
        ceiling, widest_sandbox=config.sandbox, policies=config.approval_policies
    )


def device_rights(devices: Devices, sight: Sight, start: str, device_id: str) -> Rights:
    """Return a device's rights as of now. Raises: NotFound. `start` names this run."""
    caller = devices.caller(device_id)
    return Rights(
        door=Door.DEVICE,
        caller=caller,
        device=DeviceInfo(
            id=device_id,
            name=caller.name,
            scopes=sorted(caller.scopes),
            ceiling=caller.ceiling,
            follows_threads=caller.follows_threads,
        ),
        epoch=epoch_of(start, devices.sight(device_id)),
        sees=None if caller.follows_threads else partial(sight.sees, caller),
    )


def owner_rights(start: str) -> Rights:
    """Return the rights of the workstation's own door."""
    caller = local_caller()
    return Rights(
        door=Door.WORKSTATION,
        caller=caller,
        device=DeviceInfo(id=LOCAL, name=caller.name, scopes=sorted(caller.scopes)),
        epoch=epoch_of(start, 0),
    )
