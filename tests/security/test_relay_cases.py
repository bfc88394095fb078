"""Attacks of a relay on the records of a session. The numbers are those of SECURITY.md's cases."""

import os
from collections.abc import Callable
from typing import Any, Final

import pytest
import trio
from trio.testing import memory_stream_pair

from tests.support.channels import (
    Relay,
    channel_pair,
    honest,
    relayed,
)
from tests.support.first_units import unit
from transport.channel import Channel
from transport.codec import pack
from transport.errors import (
    CloseCode,
    LocalProtocolError,
    PeerClosedError,
    RemoteProtocolError,
    TruncatedError,
)
from transport.noise import MAX_NONCE, CipherState


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
