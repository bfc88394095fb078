"""The workstation's own door: plain frames over a stream in memory."""

import struct

import pytest
import trio
from trio.testing import memory_stream_pair

from transport.channel import PlainChannel
from transport.codec import pack
from transport.errors import (
    ChannelClosedError,
    CloseCode,
    LocalProtocolError,
    PeerClosedError,
    RemoteProtocolError,
    TruncatedError,
)
from transport.limits import ADMIN_FRAME


async def test_a_frame_is_its_length_and_its_map() -> None:
    near, far = memory_stream_pair()
    await PlainChannel(near).send([pack({"n": 1}), pack({"n": 2})])
    packed = pack({"n": 1}), pack({"n": 2})
    expected = b"".join(struct.pack(">I", len(frame)) + frame for frame in packed)
    assert await far.receive_some() == expected


async def test_frames_go_both_ways() -> None:
    near, far = memory_stream_pair()
    client, agent = PlainChannel(near), PlainChannel(far)
    large = {str(n): "x" * 200_000 for n in range(5)}
    await client.send([pack({"n": 1})])
    await agent.send([pack(large)])
    assert await agent.receive() == {"n": 1}
    assert await client.receive() == large


async def test_an_end_between_frames_is_a_proper_end() -> None:
    near, far = memory_stream_pair()
    client, agent = PlainChannel(near), PlainChannel(far)
    await client.send([pack({"n": 1})])
    await client.aclose(CloseCode.GOING_AWAY)
    assert await agent.receive() == {"n": 1}
    for _ in range(2):
        with pytest.raises(PeerClosedError) as caught:
            await agent.receive()
        assert caught.value.code is CloseCode.DONE
    with pytest.raises(ChannelClosedError):
        await client.receive()


async def test_an_end_inside_a_frame_is_a_truncation() -> None:
    near, far = memory_stream_pair()
    await near.send_all(struct.pack(">I", 9) + b"cut")
    await near.aclose()
    with pytest.raises(TruncatedError):
        await PlainChannel(far).receive()


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">I", ADMIN_FRAME + 1),
        struct.pack(">I", 0),
        struct.pack(">I", 1) + b"\xc1",
    ],
    ids=["too long", "empty", "not msgpack"],
)
async def test_what_is_no_frame_ends_the_channel(data: bytes) -> None:
    near, far = memory_stream_pair()
    await near.send_all(data)
    agent = PlainChannel(far)
    for _ in range(2):
        with pytest.raises(RemoteProtocolError):
            await agent.receive()


async def test_a_frame_above_the_limit_is_our_bug() -> None:
    near, far = memory_stream_pair()
    client = PlainChannel(near)
    with pytest.raises(LocalProtocolError):
        await client.send([pack({"n": 1}), bytes(ADMIN_FRAME + 1)])
    await client.send([pack({"n": 2})])
    with trio.fail_after(1):
        assert await PlainChannel(far).receive() == {"n": 2}
