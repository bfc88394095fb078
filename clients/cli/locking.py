"""`lock` and `unlock`: the owner's panic switch. Trio shell. PROTOCOL.md section 3."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

import trio

from clients.cli.doors import open_local
from clients.cli.exits import ExitCode, FailedError, NotReachedError
from clients.cli.screen import Screen
from clients.cli.style import Span
from clients.cli.workstation import AgentProcess, lock_at_rest, mark_locked
from transport.client import LinkState
from transport.protocol.admin import (
    GatewayLockParams,
    GatewayLockResult,
    GatewayUnlockParams,
)
from transport.protocol.base import Params
from transport.protocol.gateway import GateReason, GateState
from transport.protocol.methods import GATEWAY_LOCK, GATEWAY_UNLOCK, Method

P = TypeVar("P", bound=Params)
STARTS_OR_CLOSES_S: Final = 15.0  # it has the folder, and no door that is open
LOOK_S: Final = 0.25
_LOCKED = "Locked: no device has a session or gets one, and nothing is written."


async def lock(screen: Screen, *, stop: bool) -> ExitCode:
    """Hang up on every device and let none in; it is done when this returns."""
    ask = partial(_asked, GATEWAY_LOCK, GatewayLockParams(stop=stop))
    gate = await _by_door_or_at_rest(ask, locked=True)
    if gate is None:
        return _tell_at_rest(screen, "The next Agent starts locked.", locked=True)
    _tell(screen, gate, Span(_LOCKED, "warn"))
    if not stop:
        screen.say("Turns that run go on (`threadgate lock --stop` interrupts them).")
    screen.say("`threadgate unlock` lets devices in again.")
    return ExitCode.OK


async def unlock(screen: Screen) -> ExitCode:
    """Let devices in again."""
    ask = partial(_asked, GATEWAY_UNLOCK, GatewayUnlockParams())
    gate = await _by_door_or_at_rest(ask, locked=False)
    if gate is None:
        return _tell_at_rest(screen, "The next Agent starts unlocked.", locked=False)
    if gate.reason is GateReason.LOCKED:
        raise FailedError("it was locked again meanwhile: no device is let in")
    _tell(screen, gate, Span("Unlocked: paired devices may come again.", "good"))
    return ExitCode.OK


async def _by_door_or_at_rest(
    ask: Callable[[], Awaitable[GateState | None]], *, locked: bool
) -> GateState | None:
    """Return the Agent's answer; None: none runs, and its next start will find it so.

    One that is just starting or closing is waited for. Raises: FailedError.
    """
    deadline = trio.current_time() + STARTS_OR_CLOSES_S
    marked = False
    while True:
        gate = await ask()
        if gate is not None:
            return gate
        marked = locked and (marked or mark_locked())
        agent = await lock_at_rest(locked=locked)
        if agent is None:
            return None
        if trio.current_time() > deadline:
            raise FailedError(_unreached(agent, locked=locked, marked=marked))
        await trio.sleep(LOOK_S)


async def _asked(method: Method[P, GatewayLockResult], params: P) -> GateState | None:
    """Return the Agent's answer; None: it is not reached, or hung up before that."""

    def hear(link: LinkState) -> None:
        if not link.up:
            scope.cancel(reason="the Agent hung up")

    with trio.CancelScope() as scope:
        try:
            async with open_local(on_link=hear) as client:
                return (await client.call(method, params)).gate
        except NotReachedError:
            return None
    return None


def _unreached(agent: AgentProcess, *, locked: bool, marked: bool) -> str:
    why = f"the Agent that runs here ({agent.text}) cannot be reached; {agent.end}"
    if not locked:
        return f"nothing was unlocked: {why}, then unlock"
    following = " (its next start is)" if marked else ""
    return f"not locked{following}: {why}, then lock"


def _tell(screen: Screen, gate: GateState, text: Span) -> None:
    if screen.as_json:
        screen.json({"running": True, "gate": gate.wire()})
    screen.say(text)


def _tell_at_rest(screen: Screen, text: str, *, locked: bool) -> ExitCode:
    if screen.as_json:
        screen.json({"running": False, "locked": locked})
    screen.say("No Agent runs here. ", Span(text, "warn"))
    return ExitCode.OK
