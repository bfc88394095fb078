"""Encrypted channels over streams in memory."""

import pytest
import trio
from trio.testing import (
    MockClock,
    lockstep_stream_pair,
    memory_stream_pair,
    wait_all_tasks_blocked,
)

from tests.support.channels import AGENT, DEVICE, accept, channel_pair, connect
from transport.channel import Channel, Mode
from transport.codec import pack
from transport.errors import (
    ChannelClosedError,
    CloseCode,
    HandshakeError,
    LocalProtocolError,
    PeerClosedError,
    RemoteProtocolError,
    StalledError,
    TruncatedError,
)
from transport.limits import CLOSE_S, FRAME_IN, HANDSHAKE_S, STALLED_SEND_S


class CountingStream(trio.abc.Stream):
    """Counts writes; each takes `delay_s`."""

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self.writes = 0
        self.delay_s = 0.0

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        self.writes += 1
        await trio.sleep(self.delay_s)
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self._stream.receive_some(max_bytes)

    async def aclose(self) -> None:
        await self._stream.aclose()


async def test_frames_go_both_ways_in_order() -> None:
    device, agent = await channel_pair()
    await agent.send([pack({"n": n}) for n in range(50)])
    await device.send([pack({"m": n}) for n in range(50)])
    assert [await device.receive() for _ in range(50)] == [{"n": n} for n in range(50)]
    assert [await agent.receive() for _ in range(50)] == [{"m": n} for n in range(50)]
    assert agent.remote_static == DEVICE.public
    assert device.remote_static == AGENT.public
    assert agent.handshake_hash == device.handshake_hash


async def test_any_number_of_frames_is_one_write() -> None:
    near, far = memory_stream_pair()
    counting = CountingStream(far)
    device, agent = await channel_pair(near, counting)
    before = counting.writes
    await agent.send([pack({"n": n}) for n in range(100)])
    assert counting.writes == before + 1
    assert await device.receive() == {"n": 0}


async def test_frames_of_several_senders_do_not_mix() -> None:
    device, agent = await channel_pair()
    async with trio.open_nursery() as nursery:
        for number in range(20):
            frame = pack({"n": number, "text": "x" * 200_000})
            nursery.start_soon(device.send, [frame])
        seen = {(await agent.receive())["n"] for _ in range(20)}
    assert seen == set(range(20))


async def test_a_channel_is_only_there_when_the_device_proved_itself(
    autojump_clock: MockClock,
) -> None:
    near, far = memory_stream_pair()
    channels: list[Channel] = []

    async def be_the_agent() -> None:
        channels.append(await accept(far))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(be_the_agent)
        device = await connect(near)
        await wait_all_tasks_blocked()
        assert not channels
        await device.send([pack({"n": 1})])
    assert await channels[0].receive() == {"n": 1}


async def test_a_device_that_proves_nothing_is_dropped_in_time(
    autojump_clock: MockClock,
) -> None:
    near, far = memory_stream_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connect, near)
        with pytest.raises(HandshakeError):
            await accept(far)
        assert trio.current_time() == HANDSHAKE_S
    assert await near.receive_some() == b""


async def test_a_silent_agent_ends_the_handshake_in_time(
    autojump_clock: MockClock,
) -> None:
    near, _far = memory_stream_pair()
    with pytest.raises(HandshakeError):
        await connect(near)
    assert trio.current_time() == HANDSHAKE_S
    with pytest.raises(trio.ClosedResourceError):
        await near.receive_some()


async def test_the_name_of_a_pairing_device_arrives() -> None:
    near, far = memory_stream_pair()
    channels: list[Channel] = []

    async def be_the_agent() -> None:
        channels.append(await accept(far))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(be_the_agent)
        device = await connect(near, mode=Mode.PAIRING, payload=b"phone")
        await device.send([pack({})])
    assert (channels[0].mode, channels[0].payload) == (Mode.PAIRING, b"phone")


@pytest.mark.parametrize("code", CloseCode)
async def test_a_close_tells_why(code: CloseCode) -> None:
    device, agent = await channel_pair()
    await agent.send([pack({"last": 1})])
    await agent.aclose(code)
    assert await device.receive() == {"last": 1}
    for _ in range(2):
        with pytest.raises(PeerClosedError) as caught:
            await device.receive()
        assert caught.value.code is code


async def test_an_end_without_close_is_told_apart() -> None:
    near, far = memory_stream_pair()
    device, _ = await channel_pair(near, far)
    await far.aclose()
    with pytest.raises(TruncatedError):
        await device.receive()


async def test_the_peers_close_is_found_after_a_send_that_failed() -> None:
    device, agent = await channel_pair()
    await agent.aclose(CloseCode.REVOKED)
    for _ in range(2):
        with pytest.raises(TruncatedError):
            await device.send([pack({"n": 1})])
    with pytest.raises(PeerClosedError) as caught:
        await device.receive()
    assert caught.value.code is CloseCode.REVOKED


async def test_a_peer_that_broke_the_protocol_is_told_so() -> None:
    near, far = memory_stream_pair()
    device, agent = await channel_pair(near, far)
    await near.send_all(bytes([0, 16]) + bytes(16))
    for _ in range(2):
        with pytest.raises(RemoteProtocolError):
            await agent.receive()
    await agent.aclose(CloseCode.DONE)
    with pytest.raises(PeerClosedError) as caught:
        await device.receive()
    assert caught.value.code is CloseCode.PROTOCOL_ERROR


async def test_a_cancelled_send_closes_the_stream(autojump_clock: MockClock) -> None:
    near, far = lockstep_stream_pair()
    device, agent = await channel_pair(near, far)
    with trio.move_on_after(1) as scope:
        await device.send([pack({"n": 1})])
    assert scope.cancelled_caught
    with pytest.raises(ChannelClosedError):
        await device.send([pack({"n": 2})])
    with pytest.raises(TruncatedError):
        while True:  # whatever part of it was out
            await agent.receive()


async def test_a_send_that_was_cancelled_before_it_began_harms_nothing() -> None:
    device, agent = await channel_pair()
    with trio.CancelScope() as scope:
        scope.cancel()
        await device.send([pack({"n": 1})])
    assert scope.cancelled_caught
    await device.send([pack({"n": 2})])
    assert await agent.receive() == {"n": 2}


async def test_a_cancelled_receive_loses_nothing(autojump_clock: MockClock) -> None:
    near, far = memory_stream_pair()
    device, agent = await channel_pair(near, far)
    with trio.move_on_after(1):
        await agent.receive()
    await device.send([pack({"n": 1})])
    assert await agent.receive() == {"n": 1}


async def test_a_peer_that_takes_nothing_is_cut_off(autojump_clock: MockClock) -> None:
    near, far = lockstep_stream_pair()
    device, _ = await channel_pair(near, far)
    began = trio.current_time()
    with pytest.raises(StalledError):
        await device.send([pack({"n": 1})])
    assert trio.current_time() - began == STALLED_SEND_S
    with pytest.raises(ChannelClosedError):
        await device.receive()


async def test_a_slow_peer_that_takes_something_is_not_cut_off(
    autojump_clock: MockClock,
) -> None:
    near, far = memory_stream_pair()
    slow = CountingStream(far)
    device, agent = await channel_pair(near, slow)
    slow.delay_s = STALLED_SEND_S - 1
    frame = {str(n): "x" * 250_000 for n in range(4)}
    began = trio.current_time()
    await agent.send([pack(frame)])
    assert trio.current_time() - began > 10 * STALLED_SEND_S
    assert await device.receive() == frame


async def test_a_close_does_not_wait_long_for_a_peer_that_reads_nothing(
    autojump_clock: MockClock,
) -> None:
    near, far = lockstep_stream_pair()
    device, _ = await channel_pair(near, far)
    began = trio.current_time()
    await device.aclose()
    assert trio.current_time() - began == CLOSE_S


async def test_a_close_ends_a_send_that_hangs(autojump_clock: MockClock) -> None:
    near, far = lockstep_stream_pair()
    device, _ = await channel_pair(near, far)
    async with trio.open_nursery() as nursery:

        async def hang() -> None:
            with pytest.raises(ChannelClosedError):
                await device.send([pack({"n": 1})])

        nursery.start_soon(hang)
        await wait_all_tasks_blocked()
        await device.aclose()
        assert trio.current_time() == CLOSE_S


async def test_closing_twice_is_closing_once() -> None:
    device, agent = await channel_pair()
    await agent.aclose(CloseCode.RENEW)
    await agent.aclose(CloseCode.DONE)
    with pytest.raises(PeerClosedError) as caught:
        await device.receive()
    assert caught.value.code is CloseCode.RENEW
    with pytest.raises(ChannelClosedError):
        await agent.receive()
    with pytest.raises(ChannelClosedError):
        await agent.send([pack({})])


async def test_a_frame_above_the_limit_is_our_bug_and_breaks_nothing() -> None:
    device, agent = await channel_pair()
    with pytest.raises(LocalProtocolError):
        await device.send([bytes(FRAME_IN + 1)])
    await device.send([pack({"n": 1})])
    assert await agent.receive() == {"n": 1}


async def test_a_channel_knows_when_it_last_heard_and_said_something(
    autojump_clock: MockClock,
) -> None:
    device, agent = await channel_pair()
    await trio.sleep(10)
    await device.send([pack({"n": 1})])
    await agent.receive()
    assert (device.sent_at, agent.heard_at) == (10, 10)
    assert (device.heard_at, agent.sent_at) == (0, 0)
