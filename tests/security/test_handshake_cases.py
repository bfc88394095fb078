"""Attacks on handshake and carrier. The numbers are those of SECURITY.md's cases.

"Silent": the connection is closed without a byte. The Agent's own limits (how many may
wait, from where) are tested with the Agent.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

from tests.support.channels import (
    AGENT,
    DEVICE,
    PSK,
    Relay,
    accept,
    channel_pair,
    connect,
    honest,
    psk_for,
    relayed,
)
from transport.channel import Channel, Mode
from transport.codec import pack
from transport.connection import DeviceConnection
from transport.errors import (
    CloseCode,
    HandshakeError,
    LocalProtocolError,
    PeerClosedError,
    RemoteProtocolError,
    TruncatedError,
)
from transport.framing import NOISE_PREFIX, encode_unit
from transport.identities import PrivateKey
from transport.limits import FIRST_UNIT_S, HANDSHAKE_S, MAX_FIRST_UNIT
from transport.noise import MAX_NONCE, CipherState

PAIRING_PSK: Final = bytes(reversed(range(32)))


def both_modes(mode: Mode, key: bytes) -> bytes | None:
    return PAIRING_PSK if mode is Mode.PAIRING else psk_for(mode, key)


def always(mode: Mode, key: bytes) -> bytes:
    del mode, key
    return PSK


def first_unit(**changes: Any) -> bytes:
    """Return what a device says first, without its length."""
    values: dict[str, Any] = {
        "mode": Mode.SESSION,
        "agent_key": AGENT.public,
        "identity": DEVICE,
        "ephemeral": PrivateKey.generate(),
        "psk": PSK,
        "padded": True,
    }
    return DeviceConnection(**(values | changes)).first_bytes[2:]


class Watched(trio.abc.Stream):
    """Counts what an Agent reads and writes."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self.read = self.written = 0

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self.written += len(data)
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data = await self._stream.receive_some(max_bytes)
        self.read += len(data)
        return data

    async def aclose(self) -> None:
        await self._stream.aclose()


async def silent(data: bytes, **changes: Any) -> Watched:
    """Send this to an Agent; it must hang up without a byte."""
    near, far = memory_stream_pair()
    watched = Watched(far)
    await near.send_all(data)
    with trio.fail_after(240), pytest.raises(HandshakeError):
        await accept(watched, **changes)
    assert watched.written == 0
    assert await near.receive_some() == b""
    return watched


def unit(data: bytes) -> bytes:
    return encode_unit(data, NOISE_PREFIX)


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


async def test_a_replayed_message_1_makes_no_channel(autojump_clock: MockClock) -> None:
    """Case 9: nothing happens on it, and its place is free after 5 s."""
    recorded: list[bytes] = []

    def record(_number: int, passed: bytes) -> list[bytes]:
        recorded.append(passed)
        return [passed]

    async with relayed(to_agent=record) as (near, far):
        device, agent = await channel_pair(near, far)
        replayer, victim = memory_stream_pair()
        await replayer.send_all(recorded[0])
        for later in (b"", recorded[1]):  # alone, and with the record that followed it
            await replayer.send_all(later)
        began = trio.current_time()
        with pytest.raises(HandshakeError):
            await accept(victim)
        assert trio.current_time() - began <= HANDSHAKE_S
        await device.send([pack({"still": "here"})])
        assert await agent.receive() == {"still": "here"}

    replayer, victim = memory_stream_pair()
    await replayer.send_all(recorded[0])
    began = trio.current_time()
    with pytest.raises(HandshakeError):
        await accept(victim)
    assert trio.current_time() - began == HANDSHAKE_S


async def test_message_1_twice_ends_the_connection() -> None:
    """Case 10."""
    near, far = memory_stream_pair()
    await near.send_all(unit(first_unit()) * 2)
    with pytest.raises(HandshakeError):
        await accept(far)


async def test_a_record_before_message_2_ends_the_connection() -> None:
    """Case 11."""
    near, far = memory_stream_pair()
    sealed = CipherState(bytes(32)).encrypt_with_ad(b"", bytes(128))
    await near.send_all(unit(first_unit()) + unit(sealed))
    with pytest.raises(HandshakeError):
        await accept(far)


@pytest.mark.parametrize("mode", Mode)
async def test_a_message_1_of_one_mode_is_nothing_in_the_other(mode: Mode) -> None:
    """Case 12: replayed whole, it is what it was; its byte changed, it is nothing."""
    said = first_unit(mode=mode, psk=both_modes(mode, DEVICE.public))
    other = Mode.PAIRING if mode is Mode.SESSION else Mode.SESSION
    await silent(unit(bytes([0x20 | other]) + said[1:]), psk_for=both_modes)


async def test_a_connection_that_says_nothing_is_closed_at_2_s(
    autojump_clock: MockClock,
) -> None:
    """Case 13."""
    await silent(b"")
    assert trio.current_time() == FIRST_UNIT_S


async def test_one_byte_a_second_is_closed_at_2_s(autojump_clock: MockClock) -> None:
    """Case 14."""
    near, far = memory_stream_pair()

    async def drip() -> None:
        with suppress(trio.BrokenResourceError):  # the Agent has hung up
            for byte in unit(first_unit()):
                await near.send_all(bytes([byte]))
                await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(drip)
        with pytest.raises(HandshakeError):
            await accept(far)
        assert trio.current_time() == FIRST_UNIT_S
        nursery.cancel_scope.cancel()


async def test_a_device_that_stops_after_message_1_is_closed_at_5_s(
    autojump_clock: MockClock,
) -> None:
    """Case 9 and 13."""
    near, far = memory_stream_pair()
    await near.send_all(unit(first_unit()))
    with pytest.raises(HandshakeError):
        await accept(far)
    assert trio.current_time() == HANDSHAKE_S


async def test_records_spliced_from_another_session_end_only_their_victim() -> None:
    """Case 16."""
    units: list[bytes] = []

    def record(_number: int, passed: bytes) -> list[bytes]:
        units.append(passed)
        return [passed]

    splice: list[bytes] = []

    def insert(_number: int, passed: bytes) -> list[bytes]:
        return [*splice, passed]

    async with relayed(to_agent=record) as first, relayed(to_agent=insert) as second:
        one_device, one_agent = await channel_pair(*first)
        two_device, two_agent = await channel_pair(*second)
        await one_device.send([pack({"n": 1})])
        assert await one_agent.receive() == {"n": 1}
        splice.append(units[-1])
        await two_device.send([pack({"n": 2})])
        with pytest.raises(RemoteProtocolError):
            await two_agent.receive()
        await one_device.send([pack({"n": 3})])
        assert await one_agent.receive() == {"n": 3}


# Case 17: a relay that does harm to the record number AT, which carries frame AT - 2
# (unit 0 is message 1, unit 1 the record that proves the device).

AT: Final = 5
held: list[bytes] = []


def swap(number: int, passed: bytes) -> list[bytes]:
    if number == AT:
        held.append(passed)
        return []
    return [passed, held.pop()] if number == AT + 1 else [passed]


def at(change: Callable[[bytes], list[bytes]]) -> Relay:
    return lambda number, passed: change(passed) if number == AT else [passed]


HARM: Final[dict[str, Relay]] = {
    "drops": at(lambda passed: []),
    "repeats": at(lambda passed: [passed, passed]),
    "swaps": swap,
    "cuts": at(lambda passed: [unit(passed[2:-1])]),
    "cuts to nothing": at(lambda passed: [unit(b"")]),
    "flips": at(lambda passed: [passed[:9] + bytes([passed[9] ^ 1]) + passed[10:]]),
    "injects": at(lambda passed: [unit(os.urandom(40)), passed]),
    "injects an empty record": at(lambda passed: [unit(b"x" * 16), passed]),
    "lies about a length": at(lambda passed: [passed[:2] + passed[3:]]),
}


@pytest.mark.parametrize("harm", HARM.values(), ids=HARM.keys())
async def test_a_relay_that_does_harm_ends_the_session_with_a_right_prefix(
    harm: Relay,
) -> None:
    """Case 17."""
    async with relayed(to_agent=harm) as (near, far):
        device, agent = await channel_pair(near, far)
        for number in range(8):
            await device.send([pack({"n": number})])
        await device.aclose()
        got = await frames_until(agent, RemoteProtocolError)
        await agent.aclose()
    assert got == [{"n": number} for number in range(len(got))]
    assert AT - 2 <= len(got) <= AT - 1  # a repeated record is right the first time


@pytest.mark.parametrize("harm", HARM.values(), ids=HARM.keys())
async def test_a_relay_harms_the_way_back_no_better(harm: Relay) -> None:
    """Case 17."""
    async with relayed(to_device=harm) as (near, far):
        device, agent = await channel_pair(near, far)
        for number in range(8):
            await agent.send([pack({"n": number})])
        await agent.aclose()
        got = await frames_until(device, RemoteProtocolError)
        await device.aclose()
    assert got == [{"n": number} for number in range(len(got))]
    assert AT - 1 <= len(got) <= AT  # unit 0 is message 2


async def frames_until(
    channel: Channel, error: type[Exception]
) -> list[dict[str, Any]]:
    got: list[dict[str, Any]] = []
    with trio.fail_after(240), pytest.raises(error):
        while True:
            got.append(await channel.receive())
    return got


async def test_a_relay_that_does_no_harm_is_not_noticed() -> None:
    """Case 17, the other way round."""
    async with relayed(to_agent=honest, to_device=honest) as (near, far):
        device, agent = await channel_pair(near, far)
        for number in range(8):
            await device.send([pack({"n": number})])
        await device.aclose()
        assert len(await frames_until(agent, PeerClosedError)) == 8


async def test_a_stream_cut_between_records_is_a_truncation() -> None:
    """Case 18."""
    near, far = memory_stream_pair()
    device, agent = await channel_pair(near, far)
    await device.send([pack({"n": 0})])
    await near.aclose()
    assert await frames_until(agent, TruncatedError) == [{"n": 0}]


@pytest.mark.parametrize(
    "data", [b"\0\0", b"\0\x0f" + bytes(15), b"\xff\xff" + bytes(9), b"\0"]
)
async def test_a_length_that_cannot_be_ends_the_session(data: bytes) -> None:
    """Case 19."""
    near, far = memory_stream_pair()
    device, agent = await channel_pair(near, far)
    await near.send_all(data)
    await near.send_eof()
    with pytest.raises(RemoteProtocolError):
        await agent.receive()
    await agent.aclose()
    with pytest.raises((PeerClosedError, RemoteProtocolError)):
        await device.receive()


async def test_a_broken_record_is_answered_by_a_general_close() -> None:
    """Cases 17 and 19: the peer learns that, not what."""
    near, far = memory_stream_pair()
    device, agent = await channel_pair(near, far)
    await near.send_all(unit(os.urandom(99)))
    with pytest.raises(RemoteProtocolError):
        await agent.receive()
    await agent.aclose(CloseCode.DONE)
    with pytest.raises(PeerClosedError) as caught:
        await device.receive()
    assert caught.value.code is CloseCode.PROTOCOL_ERROR


def test_the_last_nonce_is_refused() -> None:
    """Case 22."""
    cipher = CipherState(bytes(32))
    cipher.n = MAX_NONCE
    with pytest.raises(LocalProtocolError):
        cipher.encrypt_with_ad(b"", b"")
    with pytest.raises(RemoteProtocolError):
        cipher.decrypt_with_ad(b"", bytes(16))


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
