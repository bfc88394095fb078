"""A client that asks much and takes nothing: it is bounded, and nobody else waits for it."""

from itertools import count
from typing import Any

import trio
import trio.testing
from trio.testing import MockClock

from agent.edge_limits import READS_A_DEVICE, UNSENT_A_DEVICE
from agent.events.journal import Journal
from agent.sessions.router import Call
from tests.support.edge import (
    Bench,
    Nothing,
    make_rights,
)
from tests.support.journals import delta, opened
from transport.protocol.base import NoParams, WireModel


class Large(WireModel):
    """As large as a page may be."""

    text: str = "x" * 250_000
    more: str = "y" * 250_000


async def test_a_stalled_client_is_closed_and_others_never_wait_for_it(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery, journal=Journal(max_bytes=500_000))
    stalled = await bench.connect(
        streams=trio.testing.lockstep_stream_pair(), instance="stalled"
    )
    lively = await bench.connect(instance="lively")
    for peer in (stalled, lively):
        await peer.subscribe()
    bench.feed.emit(opened("th", "i"))
    await lively.receive()
    start = trio.current_time()
    for number in range(2_000):
        bench.feed.emit(delta("th", "i", f"{number} {'x' * 1_000}"))
        frame = await lively.receive()
        assert frame["d"][4].startswith(f"{number} ")
        assert bench.feed.journal.bytes <= 500_000
    assert trio.current_time() == start, "nothing waited for the stalled one"
    assert len(bench.table) == 2

    async def keep_alive() -> None:
        while True:
            await trio.sleep(5)
            await lively.send({"ping": 1})

    async with trio.open_nursery() as beside:
        beside.start_soon(keep_alive)
        await trio.sleep(24)
        beside.cancel_scope.cancel()
    (left,) = bench.table
    assert left.instance == "lively"


async def test_a_client_that_asks_and_does_not_read_is_not_read_either(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    served = 0

    class Large(WireModel):
        text: str = "x" * 200_000

    async def handle(call: Call, params: NoParams) -> WireModel:
        nonlocal served
        served += 1
        return Large()

    bench.handlers["gateway/status"] = handle
    peer = await bench.connect(streams=trio.testing.lockstep_stream_pair())

    with trio.move_on_after(10) as patience:
        for number in range(100, 300):
            await peer.send({"id": number, "method": "gateway/status"})
    assert patience.cancelled_caught, "nobody takes what it asks for in the end"
    assert 0 < served <= 20


class SlowLine(trio.abc.SendStream):
    """Takes 6,400 bytes a second."""

    def __init__(self, there: trio.abc.SendStream) -> None:
        self._there = there

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.sleep(len(data) / 6_400)
        await self._there.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._there.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._there.aclose()


async def test_a_client_on_a_slow_line_gets_all_that_it_asked_for(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)

    async def handle(_call: Call, _params: NoParams) -> WireModel:
        return Large()

    bench.handlers["gateway/status"] = handle
    ours, theirs = trio.testing.memory_stream_pair()
    slow = trio.StapledStream(SlowLine(ours.send_stream), ours.receive_stream)
    peer = await bench.connect(streams=(slow, theirs))

    async def keep_alive() -> None:
        for number in count():
            await trio.sleep(14)
            await peer.send({"ping": number})

    nursery.start_soon(keep_alive)
    for number in range(100, 108):
        await peer.send({"id": number, "method": "gateway/status"})
    for number in range(100, 108):
        assert "result" in await peer.answer(number)
    assert len(bench.table) == 1


async def test_a_session_whose_line_breaks_while_much_waits_for_it_ends_at_once(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)

    async def handle(_call: Call, _params: NoParams) -> WireModel:
        return Large()

    bench.handlers["gateway/status"] = handle
    ours, theirs = trio.testing.lockstep_stream_pair()
    peer = await bench.connect(streams=(ours, theirs))
    for number in (100, 101):
        await peer.send({"id": number, "method": "gateway/status"})
    await trio.testing.wait_all_tasks_blocked()
    await theirs.aclose()
    await trio.testing.wait_all_tasks_blocked()
    assert len(bench.table) == 0


async def test_a_device_with_many_sessions_has_its_share_of_the_reader_and_no_more(
    autojump_clock: MockClock,
) -> None:
    async with trio.open_nursery() as nursery:
        bench = Bench(nursery)
        go_on, reading = trio.Event(), 0

        async def read(_call: Call, _params: Any) -> WireModel:
            nonlocal reading
            reading += 1
            await go_on.wait()
            return Nothing()

        bench.handlers["thread/read"] = read
        hogs = [await bench.connect(instance=f"i{n}") for n in range(3)]
        for hog in hogs:
            for _ in range(12):
                await hog.ask("thread/read", {"threadId": "t"})
        await trio.testing.wait_all_tasks_blocked()
        assert reading == 16
        other = await bench.connect(make_rights(device_id="00000000000000bb"))
        number = await other.ask("thread/read", {"threadId": "t"})
        await trio.testing.wait_all_tasks_blocked()
        assert reading == 17, "another device does not wait"
        go_on.set()
        for hog in hogs:
            for _ in range(12):
                assert "result" in await hog.receive()
        assert "result" in await other.answer(number)
        assert reading == 37
        nursery.cancel_scope.cancel()


async def test_what_a_device_asked_for_and_does_not_take_is_bounded_for_all_its_sessions(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    bench, served, go_on = Bench(nursery), 0, trio.Event()

    async def read(_call: Call, _params: Any) -> WireModel:
        nonlocal served
        await go_on.wait()
        served += 1
        return Large()

    bench.handlers["thread/read"] = read
    names = [f"i{number}" for number in range(4)]
    pipes = [trio.testing.lockstep_stream_pair() for _ in names]
    lame = [
        await bench.connect(instance=name, streams=pipe)
        for name, pipe in zip(names, pipes, strict=True)
    ]
    for peer in lame:
        for _ in range(16):
            await peer.ask("thread/read", {"threadId": "t"})
    go_on.set()
    await trio.testing.wait_all_tasks_blocked()
    held = bench.edge.reads.unsent("00000000000000aa")
    assert UNSENT_A_DEVICE < held <= UNSENT_A_DEVICE + READS_A_DEVICE * 512 * 1024
    assert served == READS_A_DEVICE, "those that had begun, and no more"
    other = await bench.connect(make_rights(device_id="00000000000000bb"))
    assert "result" in await other.call("thread/read", {"threadId": "t"})
    for peer in lame[:-1]:
        with trio.fail_after(10):
            for _ in range(16):
                assert "result" in await peer.receive()
    await lame[-1].channel.aclose()
    await trio.testing.wait_all_tasks_blocked()
    assert bench.edge.reads.unsent("00000000000000aa") == 0


async def test_what_a_stalled_device_does_not_take_is_let_go_with_its_sessions(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    bench = Bench(nursery)

    async def read(_call: Call, _params: Any) -> WireModel:
        return Large()

    bench.handlers["thread/read"] = read
    peer = await bench.connect(streams=trio.testing.lockstep_stream_pair())
    for _ in range(2):
        await peer.ask("thread/read", {"threadId": "t"})
    await trio.testing.wait_all_tasks_blocked()
    assert bench.edge.reads.unsent("00000000000000aa") > 500_000
    await trio.sleep(25)
    assert len(bench.table) == 0
    assert bench.edge.reads.unsent("00000000000000aa") == 0
