"""`lock` and `unlock`: the owner's panic switch. Trio shell. PROTOCOL.md section 3."""

from clients.cli.doors import open_local
from clients.cli.exits import ExitCode, NotReachedError
from clients.cli.screen import Screen
from clients.cli.style import Span
from clients.cli.workstation import lock_at_rest
from transport.protocol.admin import GatewayLockParams, GatewayUnlockParams
from transport.protocol.gateway import GateState
from transport.protocol.methods import GATEWAY_LOCK, GATEWAY_UNLOCK

_LOCKED = "Locked: no device has a session or gets one, and nothing is written."


async def lock(screen: Screen, *, stop: bool) -> ExitCode:
    """Hang up on every device and let none in; it is done when this returns."""
    try:
        async with open_local() as client:
            params = GatewayLockParams(stop=stop)
            gate = (await client.call(GATEWAY_LOCK, params)).gate
    except NotReachedError:
        await lock_at_rest(locked=True)
        return _tell_at_rest(screen, "The next Agent starts locked.", locked=True)
    _tell(screen, gate, Span(_LOCKED, "warn"))
    if not stop:
        screen.say("Turns that run go on (`threadgate lock --stop` interrupts them).")
    screen.say("`threadgate unlock` lets devices in again.")
    return ExitCode.OK


async def unlock(screen: Screen) -> ExitCode:
    """Let devices in again."""
    try:
        async with open_local() as client:
            gate = (await client.call(GATEWAY_UNLOCK, GatewayUnlockParams())).gate
    except NotReachedError:
        await lock_at_rest(locked=False)
        return _tell_at_rest(screen, "The next Agent starts unlocked.", locked=False)
    _tell(screen, gate, Span("Unlocked: paired devices may come again.", "good"))
    return ExitCode.OK


def _tell(screen: Screen, gate: GateState, text: Span) -> None:
    if screen.as_json:
        screen.json({"running": True, "gate": gate.wire()})
    screen.say(text)


def _tell_at_rest(screen: Screen, text: str, *, locked: bool) -> ExitCode:
    if screen.as_json:
        screen.json({"running": False, "locked": locked})
    screen.say("No Agent runs here. ", Span(text, "warn"))
    return ExitCode.OK
