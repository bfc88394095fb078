"""One pairing connection at the door, from the device's request to its answer. Trio shell.

PROTOCOL.md section 1 (Pairing), SECURITY.md. What the offer is, and who says yes: `pair`.
"""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import trio

from agent.edge_limits import DECISION_S
from agent.pairing.offers import Offer
from agent.pairing.pair import Pairings
from agent.sessions.requests import Ping, Request, read_frame, read_params
from transport.background import open_background
from transport.channel import Channel, receive_first
from transport.codec import pack
from transport.errors import (
    CloseCode,
    Forbidden,
    InvalidParams,
    Refusal,
    TransportError,
)
from transport.limits import SESSION_LIMITS
from transport.protocol.gateway import DeviceInfo
from transport.protocol.methods import PAIRING_CONFIRM
from transport.protocol.session import PairingConfirmResult

_LOG: Final = logging.getLogger(__name__)
_PING_S: Final = SESSION_LIMITS.ping_ms / 1000


async def serve_pairing(
    pairings: Pairings, channel: Channel, offer: Offer, *, source: str
) -> None:
    """Serve a pairing connection to its end, and close it."""
    try:
        request = _confirm_request(await receive_first(channel))
    except (TransportError, Refusal):
        pairings.fail_handshake(offer)
        await channel.aclose(CloseCode.PROTOCOL_ERROR)
        return
    await _answer(pairings, channel, request, offer, source)


async def _answer(
    pairings: Pairings, channel: Channel, request: Request, offer: Offer, source: str
) -> None:
    if not pairings.take(channel, offer, source=source):
        refusal = Forbidden("This pairing offer is not open any more.")
        await _send_last(channel, {"id": request.id, "error": refusal.wire()})
        return
    _LOG.info("pairing: a device from %s waits for an answer", source)
    try:
        answer = await _decision(pairings, channel, offer)
    except Refusal as refusal:
        await _send_last(channel, {"id": request.id, "error": refusal.wire()})
    else:
        result = PairingConfirmResult(device=answer, agent=pairings.house.agent)
        await _send_last(channel, {"id": request.id, "result": result.wire()})


async def _decision(pairings: Pairings, channel: Channel, offer: Offer) -> DeviceInfo:
    if offer.terms.unattended:
        pairings.store(offer, by_check=False)
    keep_alive = partial(_keep_alive, pairings, channel, offer)
    async with open_background(keep_alive):
        with trio.move_on_after(DECISION_S):
            await pairings.wait_over(offer)
    if not offer.over:
        pairings.refuse(offer, "No answer within a minute.")
    device = offer.device
    if device is None:
        raise Forbidden(f"The workstation did not pair this device. {offer.why}")
    return DeviceInfo(
        id=device.id,
        name=device.name,
        scopes=sorted(device.scopes),
        ceiling=device.ceiling,
        follows_threads=device.follows_threads,
    )


async def _keep_alive(
    pairings: Pairings,
    channel: Channel,
    offer: Offer,
    *,
    task_status: trio.TaskStatus[None],
) -> None:
    task_status.started()
    number = 0
    try:
        while True:
            frame: Mapping[str, Any] | None = None
            with trio.move_on_after(_PING_S):
                frame = await channel.receive()
            if frame is None:
                number += 1
                await channel.send([pack({"ping": number})])
            elif isinstance(ping := read_frame(frame), Ping):
                now = pairings.house.now_ms()
                await channel.send([pack({"pong": ping.number, "now": now})])
    except TransportError:
        pairings.refuse(offer, "The device went away.")


def _confirm_request(frame: Mapping[str, Any]) -> Request:
    """Return the one request that a pairing connection may make. Raises: Refusal."""
    request = read_frame(frame)
    if not isinstance(request, Request) or request.method != PAIRING_CONFIRM.name:
        raise InvalidParams("Only pairing/confirm is allowed here.")
    read_params(PAIRING_CONFIRM.params, request.params)
    return request


async def _send_last(channel: Channel, frame: Mapping[str, Any]) -> None:
    """Send one answer and hang up."""
    try:
        await channel.send([pack(frame)])
    except TransportError:
        _LOG.info("pairing: the device was gone before it was told")
    await channel.aclose(CloseCode.DONE)
