"""Handshakes that are replayed, out of turn or never finished. The numbers are those of SECURITY.md's cases."""

from contextlib import suppress

import pytest
import trio
from trio.testing import MockClock, memory_stream_pair

from tests.support.channels import (
    accept,
    channel_pair,
    connect,
    relayed,
    say_half,
)
from tests.support.first_units import first_unit, silent, unit
from transport.channel import Channel, receive_first
from transport.codec import pack
from transport.errors import (
    HandshakeError,
)
from transport.limits import FIRST_UNIT_S, HANDSHAKE_S
from transport.noise import CipherState


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


async def test_a_first_frame_that_never_ends_is_waited_for_as_long_again(
    autojump_clock: MockClock,
) -> None:
    near, far = memory_stream_pair()
    found: list[Channel] = []

    async def be_the_agent() -> None:
        found.append(await accept(far))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(be_the_agent)
        await say_half(await connect(near))
    with pytest.raises(HandshakeError):
        await receive_first(found[0])
    assert trio.current_time() == HANDSHAKE_S
