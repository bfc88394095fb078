"""Pairing, seen from the new device. Trio shell. PROTOCOL.md section 1 (Pairing)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import trio
from pydantic import ValidationError

from transport.background import open_background
from transport.channel import Channel, Mode
from transport.dial import shake_hands
from transport.errors import (
    LinkLostError,
    PairingTextError,
    SilentAgentError,
    TransportError,
    UnreachableError,
)
from transport.identities import PrivateKey, Secret
from transport.limits import MAX_DEVICE_NAME, PAIRING_S
from transport.link import Frame, Link
from transport.pairing import PairingText, check_number, device_psk, pairing_psk
from transport.protocol.gateway import AgentInfo, DeviceInfo
from transport.protocol.methods import PAIRING_CONFIRM
from transport.protocol.session import (
    ClientInfo,
    PairingConfirmParams,
    PairingConfirmResult,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """What to keep: with the identity's key, `psk` and `url` make a `Target`."""

    device: DeviceInfo
    agent: AgentInfo
    psk: Secret
    url: str


async def pair(
    text: PairingText,
    *,
    identity: PrivateKey,
    name: str,
    client: ClientInfo,
    on_check: Callable[[str], None],
    via: str | None = None,
) -> Paired:
    """Pair this device; return when the person at the workstation said yes.

    `name`: of the device, at most 100 bytes. `on_check` gets the six digits to show
    while the person decides: the workstation must show the same. `via`: the one address
    to dial instead of the text's; only such a one may name a command (`stdio:`), for a
    text comes from elsewhere (transport.pairing drops those).

    Raises:
        UnreachableError: no address answers, the offer has ended (SilentAgentError), or
            nobody decided in time. Nothing is paired.
        Forbidden: the person said no.
        PairingTextError: the text cannot be used here.
    """
    payload = name.encode()
    if not 0 < len(payload) <= MAX_DEVICE_NAME:
        raise PairingTextError(f"A device's name has 1 to {MAX_DEVICE_NAME} bytes.")
    channel, url = await _first_that_answers(text, identity, payload, via)
    try:
        psk = Secret(device_psk(text.secret, channel.handshake_hash))
        on_check(check_number(channel.handshake_hash))
        result = await _confirm(channel, client)
        return Paired(device=result.device, agent=result.agent, psk=psk, url=url)
    finally:
        await channel.aclose()


async def _first_that_answers(
    text: PairingText, identity: PrivateKey, payload: bytes, via: str | None
) -> tuple[Channel, str]:
    urls = (via,) if via else text.urls
    if not urls:
        raise PairingTextError("This pairing text holds no address.")
    failures: list[str] = []
    silent: str | None = None  # there may be another Agent, or something else
    for url in urls:
        try:
            return await _shake_hands(url, text, identity, payload), url
        except SilentAgentError:
            silent = silent or url
        except UnreachableError as exc:
            failures.append(str(exc))
    if silent is not None:
        raise SilentAgentError(
            f"the Agent at {silent} does not take this pairing text: it has expired, "
            "was used, or was closed there. Ask it for a new one."
        )
    raise UnreachableError("; ".join(failures))


async def _shake_hands(
    url: str, text: PairingText, identity: PrivateKey, payload: bytes
) -> Channel:
    return await shake_hands(
        url,
        mode=Mode.PAIRING,
        agent_key=text.agent_key,
        identity=identity,
        psk=pairing_psk(text.secret),
        payload=payload,
    )


async def _confirm(channel: Channel, client: ClientInfo) -> PairingConfirmResult:
    link = Link(channel)
    params = PairingConfirmParams(client=client).wire()
    answer = link.request_nowait(PAIRING_CONFIRM.name, params)
    ended: TransportError | None = None
    try:
        async with open_background(partial(link.serve, _ignore)):
            with trio.move_on_after(PAIRING_S):
                await answer.done.wait()
    except TransportError as exc:  # the Agent closes right behind its answer
        ended = exc
    if isinstance(answer.error, LinkLostError):
        why = str(ended or "nobody decided in time")
        raise UnreachableError(f"not paired: {why}. Ask for a new text.") from ended
    try:
        return PairingConfirmResult.model_validate(await answer.wait())
    except ValidationError as exc:
        raise UnreachableError("the Agent's answer is not as specified") from exc


def _ignore(frame: Frame) -> None:
    """A pairing connection has no events."""
