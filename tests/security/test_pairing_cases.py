"""Attacks on pairing, as far as the transport alone decides. Numbers: SECURITY.md's cases.

Offers, the question at the workstation and what is stored: `test_offer_cases`.
"""

import logging
import traceback
from contextlib import suppress
from typing import Any, Final

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

from tests.support.channels import AGENT, accept, connect
from transport.channel import Channel, Mode
from transport.codec import pack
from transport.errors import HandshakeError, PairingTextError
from transport.identities import PrivateKey, Secret
from transport.limits import MAX_DEVICE_NAME
from transport.pairing import (
    PairingText,
    check_number,
    device_psk,
    pairing_psk,
    parse_pairing_text,
)

SECRET: Final = Secret(b"canary--canary--canary--canary--")


class Offer:
    """What an Agent does with its one offer: the psk, until it is taken."""

    def __init__(self) -> None:
        self.open = True
        self.asked = 0

    def psk_for(self, mode: Mode, key: bytes) -> bytes | None:
        del key
        self.asked += 1
        return pairing_psk(SECRET) if self.open and mode is Mode.PAIRING else None


async def attempt(
    offer: Offer, secret: Secret, **changes: Any
) -> tuple[Channel, Channel]:
    """Return (device, agent), or raise that both sides failed."""
    near, far = memory_stream_pair()
    values: dict[str, Any] = {
        "mode": Mode.PAIRING,
        "identity": PrivateKey.generate(),
        "psk": pairing_psk(secret),
        "payload": b"phone",
    }
    found: dict[str, Channel] = {}

    async def be_the_agent() -> None:
        with suppress(HandshakeError):
            found["agent"] = await accept(far, psk_for=offer.psk_for)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(be_the_agent)
        with suppress(HandshakeError):
            found["device"] = await connect(near, **(values | changes))
            await found["device"].send([pack({})])
    if len(found) < 2:
        assert not found
        raise HandshakeError("on both sides")
    return found["device"], found["agent"]


async def refused(offer: Offer, secret: Secret, **changes: Any) -> None:
    with pytest.raises(HandshakeError):
        await attempt(offer, secret, **changes)


async def test_a_handshake_after_the_offers_end_is_silent() -> None:
    """Case 61."""
    offer = Offer()
    offer.open = False
    await refused(offer, SECRET)


async def test_a_second_device_with_the_same_text_is_silent() -> None:
    """Case 62: the offer is taken when the first has proven itself."""
    offer = Offer()
    await attempt(offer, SECRET)
    offer.open = False
    await refused(offer, SECRET)


async def test_a_handshake_that_proves_nothing_does_not_take_the_offer(
    autojump_clock: MockClock,
) -> None:
    """Case 62: a replay, or a relay that held the device's record back."""
    offer = Offer()
    near, far = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_connect_and_fall_silent, near)
        with pytest.raises(HandshakeError):
            await accept(far, psk_for=offer.psk_for)
    device, _ = await attempt(offer, SECRET)
    assert device.mode is Mode.PAIRING


async def _connect_and_fall_silent(stream: trio.abc.Stream) -> None:
    await connect(stream, mode=Mode.PAIRING, psk=pairing_psk(SECRET))


async def test_every_wrong_secret_can_be_counted() -> None:
    """Case 63: the Agent is asked for the psk, and the handshake then fails."""
    offer = Offer()
    for _ in range(3):
        await refused(offer, Secret(bytes(32)))
    assert offer.asked == 3


async def test_a_thief_of_the_text_is_betrayed_by_the_check_number() -> None:
    """Case 64: his channel and the owner's never show the same six digits."""
    offer = Offer()
    numbers: set[str] = set()
    for _ in range(20):
        device, agent = await attempt(offer, SECRET)
        shown = check_number(device.handshake_hash)
        assert shown == check_number(agent.handshake_hash)
        numbers.add(shown)
    assert len(numbers) >= 19


async def test_each_pairing_gives_its_own_psk() -> None:
    """Case 64: knowing the text does not tell what the device then uses."""
    offer = Offer()
    first, _ = await attempt(offer, SECRET)
    second, agent = await attempt(offer, SECRET)
    made = [device_psk(SECRET, one.handshake_hash) for one in (first, second, agent)]
    assert made[1] == made[2]
    assert len({made[0], made[1], pairing_psk(SECRET)}) == 3


@pytest.mark.parametrize("size", [MAX_DEVICE_NAME + 1, 1_900])
async def test_a_name_above_the_limit_is_silent(size: int) -> None:
    """Case 66. What a name may hold is for the Agent to clean."""
    await refused(Offer(), SECRET, payload=b"x" * size)


async def test_a_name_arrives_as_it_was_sent() -> None:
    """Case 66: the transport changes nothing that the Agent must look at."""
    name = b"\x1b[31m\xff\n" + "\u202e".encode()
    _, agent = await attempt(Offer(), SECRET, payload=name)
    assert agent.payload == name


def test_a_text_with_one_wrong_character_leads_to_no_connection() -> None:
    """Case 67: it is not even parsed, so there is nowhere to connect to."""
    text = PairingText(
        agent_key=AGENT.public, secret=SECRET, urls=("tcp://127.0.0.1:7443",)
    ).encode()
    for place in range(6, len(text)):
        wrong = text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :]
        with pytest.raises(PairingTextError, match="mistyped"):
            parse_pairing_text(wrong)


async def test_no_secret_reaches_a_log_or_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Case 83, for the transport's own secrets."""
    caplog.set_level(logging.DEBUG)
    text = PairingText(agent_key=AGENT.public, secret=SECRET, urls=("tcp://h:1",))
    psk = pairing_psk(SECRET)
    said: list[str] = [repr(text), str(text)]
    near, far = memory_stream_pair()
    await near.send_all(b"\0\x61\x21" + bytes(96))
    try:
        await accept(far, identity=PrivateKey.from_bytes(psk))
    except HandshakeError as exc:
        said += traceback.format_exception(exc)
    try:
        parse_pairing_text(text.encode()[:-1])
    except PairingTextError as exc:
        said += traceback.format_exception(exc)
    everything = "".join(said) + caplog.text
    assert len(said) > 2
    for secret in (SECRET.reveal(), psk):
        for form in (secret.hex(), repr(secret)[2:-1], str(list(secret))):
            assert form not in everything
    assert text.encode()[60:110] not in everything
