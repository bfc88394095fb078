"""Attacks on the first message of a handshake. The numbers are those of SECURITY.md's cases.

"Silent": the connection is closed without a byte. The Agent's own limits (how many may
wait, from where) are tested with the Agent.
"""

import os
from typing import Final

import pytest
import trio
from trio.testing import memory_stream_pair

from tests.support.channels import (
    DEVICE,
    PSK,
    Relay,
    accept,
    connect,
    psk_for,
    relayed,
)
from tests.support.first_units import first_unit, silent, unit
from transport.channel import Mode
from transport.errors import (
    HandshakeError,
)
from transport.identities import PrivateKey
from transport.limits import MAX_FIRST_UNIT

PAIRING_PSK: Final = bytes(reversed(range(32)))


def both_modes(mode: Mode, key: bytes) -> bytes | None:
    return PAIRING_PSK if mode is Mode.PAIRING else psk_for(mode, key)


def always(mode: Mode, key: bytes) -> bytes:
    del mode, key
    return PSK


@pytest.mark.parametrize("first", [0x11, 0x31, 0x20, 0x23, 0x2F, 0x00, 0xFF])
async def test_another_version_or_mode_is_silent(first: int) -> None:
    """Case 1."""
    await silent(unit(bytes([first]) + first_unit()[1:]))


@pytest.mark.parametrize("flipped", [Mode.SESSION, Mode.PAIRING])
async def test_a_mode_that_was_flipped_in_transit_is_silent(flipped: Mode) -> None:
    """Case 2: the first byte is in the prologue, so even the same psk does not help."""
    sent = Mode.PAIRING if flipped is Mode.SESSION else Mode.SESSION
    said = first_unit(mode=sent)
    await silent(unit(bytes([0x20 | flipped]) + said[1:]), psk_for=always)


@pytest.mark.parametrize("size", [0, 1, 31, 95])
async def test_a_message_1_that_is_too_short_is_silent(size: int) -> None:
    """Case 3."""
    if size < 16:
        await silent(unit(first_unit()[:size]))
    await silent(unit(first_unit()[: 1 + size].ljust(16, b"\0")))


@pytest.mark.parametrize("size", [65_535, MAX_FIRST_UNIT + 1])
async def test_a_large_first_unit_is_refused_by_its_length_alone(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 4: no more than 2 KiB are read, and nothing is computed."""
    computed = count_exchanges(monkeypatch)
    watched = await silent(unit(b"\x21" + os.urandom(size - 1)))
    assert watched.read <= MAX_FIRST_UNIT + 2
    assert computed == []


async def test_garbage_of_the_right_size_costs_one_exchange(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Case 4."""
    computed = count_exchanges(monkeypatch)
    await silent(unit(b"\x21" + os.urandom(96)))
    assert len(computed) == 1


def count_exchanges(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    computed: list[bytes] = []
    exchange = PrivateKey.exchange

    def counted(key: PrivateKey, public: bytes) -> bytes:
        computed.append(public)
        return exchange(key, public)

    monkeypatch.setattr(PrivateKey, "exchange", counted)
    return computed


@pytest.mark.parametrize(
    "point",
    [
        bytes(32),
        b"\1" + bytes(31),
        (2**255 - 20).to_bytes(32, "little"),
        bytes.fromhex(
            "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"
        ),
    ],
    ids=["0", "1", "p-1", "order 8"],
)
async def test_a_low_order_ephemeral_is_silent(point: bytes) -> None:
    """Case 5."""
    said = first_unit()
    await silent(unit(said[:1] + point + said[33:]))


async def test_every_flipped_bit_of_message_1_is_silent() -> None:
    """Case 6."""
    said = first_unit()
    for bit in range(len(said) * 8):
        wrong = bytearray(said)
        wrong[bit // 8] ^= 1 << bit % 8
        await silent(unit(bytes(wrong)))


async def test_every_flipped_bit_of_message_2_fails_on_the_device() -> None:
    """Case 6."""

    def flip(bit: int) -> Relay:
        def relay(number: int, passed: bytes) -> list[bytes]:
            wrong = bytearray(passed)
            if number == 0:
                wrong[2 + bit // 8] ^= 1 << bit % 8
            return [bytes(wrong)]

        return relay

    async def refuse(stream: trio.abc.Stream) -> None:
        with pytest.raises(HandshakeError):
            await accept(stream)

    for bit in range(0, 48 * 8, 5):
        async with (
            relayed(to_device=flip(bit)) as (near, far),
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(refuse, far)
            with pytest.raises(HandshakeError):
                await connect(near)


async def test_a_known_device_with_a_wrong_psk_is_silent() -> None:
    """Case 7."""
    await silent(unit(first_unit(psk=bytes(32))))


async def test_a_stranger_costs_what_a_wrong_psk_costs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Case 7: the same computations, so the same class of time."""
    computed = count_exchanges(monkeypatch)
    wrong, stranger = (
        first_unit(psk=bytes(32)),
        first_unit(identity=PrivateKey.generate()),
    )
    computed.clear()
    await silent(unit(wrong))
    at_wrong_psk = len(computed)
    computed.clear()
    await silent(unit(stranger))
    assert len(computed) == at_wrong_psk == 2


async def test_a_stranger_is_silent_even_if_he_guesses_what_stands_in_for_a_psk() -> (
    None
):
    """Case 8."""
    stranger = PrivateKey.generate()
    await silent(unit(first_unit(identity=stranger, psk=PSK)))
    await silent(unit(first_unit(identity=stranger, psk=bytes(32))))


async def test_the_payload_of_a_stranger_reaches_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Case 8."""
    caplog.set_level(0)
    said = first_unit(
        identity=PrivateKey.generate(), mode=Mode.PAIRING, payload=b"canary" * 10
    )
    near, far = memory_stream_pair()
    await near.send_all(unit(said))
    with pytest.raises(HandshakeError) as caught:
        await accept(far)
    assert "canary" not in repr(caught.value) + caplog.text


@pytest.mark.parametrize("mode", Mode)
async def test_a_message_1_of_one_mode_is_nothing_in_the_other(mode: Mode) -> None:
    """Case 12: replayed whole, it is what it was; its byte changed, it is nothing."""
    said = first_unit(mode=mode, psk=both_modes(mode, DEVICE.public))
    other = Mode.PAIRING if mode is Mode.SESSION else Mode.SESSION
    await silent(unit(bytes([0x20 | other]) + said[1:]), psk_for=both_modes)


async def test_an_agent_with_another_identity_is_refused_by_the_device() -> None:
    """Case 24: the device knows one key, and takes no other."""
    near, far = memory_stream_pair()

    async def be_another_agent() -> None:
        with pytest.raises(HandshakeError):
            await accept(far, identity=PrivateKey.generate())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(be_another_agent)
        with pytest.raises(HandshakeError):
            await connect(near)


async def test_an_agent_cannot_answer_without_the_private_key() -> None:
    """Case 24: knowing the psk and the public key is not enough."""
    near, far = memory_stream_pair()
    impostor = PrivateKey.generate()
    await far.send_all(unit(impostor.public + os.urandom(16)))
    with pytest.raises(HandshakeError):
        await connect(near)
