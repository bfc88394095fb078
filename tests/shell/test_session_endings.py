"""Keepalive and the ends of a session: silence, its renewal, a revocation, a client that is gone."""

from typing import Any, NoReturn

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from agent.sessions.router import Call
from tests.support.edge import (
    Bench,
    Nothing,
    make_rights,
)
from tests.support.journals import notice
from transport.channel import Channel
from transport.errors import CloseCode, TruncatedError
from transport.limits import MAX_RECORDS, SESSION_LIMITS
from transport.protocol.base import NoParams, WireModel
from transport.protocol.events import SessionClosing


async def test_the_agent_pings_when_it_has_said_nothing(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    peer = await bench.connect()
    start = trio.current_time()
    assert await peer.receive() == {"ping": 1}
    assert trio.current_time() - start == pytest.approx(15)
    await peer.send({"pong": 1})
    assert await peer.receive() == {"ping": 2}


async def test_a_peer_that_says_nothing_for_45_s_is_dead(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    peer = await bench.connect()
    start = trio.current_time()
    await peer.closed()
    assert trio.current_time() - start == pytest.approx(45, abs=1)
    assert len(bench.table) == 0


async def test_a_peer_that_pings_lives(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    bench = Bench(nursery)
    peer = await bench.connect()
    for number in range(10):
        await trio.sleep(14)
        await peer.send({"ping": number})
        assert (await peer.receive())["pong"] == number
    assert len(bench.table) == 1


async def test_a_session_is_renewed_after_a_day(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    """An hour here: a day of pings takes seconds."""
    assert SESSION_LIMITS.session_ms == 24 * 3_600_000
    bench = Bench(nursery)
    bench.change_limits(session_ms=3_600_000)
    peer = await bench.connect()
    start = trio.current_time()

    async def keep_alive() -> None:
        while True:
            await trio.sleep(30)
            await peer.send({"ping": 1})

    async with trio.open_nursery() as beside:
        beside.start_soon(keep_alive)
        close = await peer.closed()
        beside.cancel_scope.cancel()
    assert close.code is CloseCode.RENEW
    assert trio.current_time() - start == pytest.approx(3_600, abs=20)


async def test_a_session_whose_keys_are_used_up_is_renewed(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    peer = await bench.connect()
    await peer.subscribe()
    (session,) = bench.table
    ours = session._channel  # pyright: ignore[reportPrivateUsage]
    assert isinstance(ours, Channel)
    for channel, direction in ((ours, 0), (peer.channel, 1)):
        use_up(channel, direction)
    bench.feed.emit(notice("the last"))
    assert (await peer.receive())["seq"] == 1
    start = trio.current_time()
    bench.feed.emit(notice("too many"))
    assert (await peer.closed()).code is CloseCode.RENEW
    assert trio.current_time() == start, "it is not left silent until it is dead"
    assert peer.others == []


def use_up(channel: Channel, direction: int) -> None:
    """Leave room for one record, and CLOSE."""
    connection = channel._connection  # pyright: ignore[reportPrivateUsage]
    ciphers = connection._ciphers  # pyright: ignore[reportPrivateUsage]
    assert ciphers is not None
    ciphers[direction].n = MAX_RECORDS - 2


async def test_a_session_that_is_ended_hears_why_first(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    bench = Bench(nursery)
    peer = await bench.connect()
    (session,) = bench.table
    session.end(
        CloseCode.GOING_AWAY,
        SessionClosing(code="goingAway", message="bye", retry_after_ms=2_000),
    )
    assert (await peer.closed()).code is CloseCode.GOING_AWAY
    assert peer.others[-1]["event"] == "session/closing"
    assert "seq" not in peer.others[-1]


async def test_a_revoked_session_gets_its_close_and_nothing_else(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    peer = await bench.connect()
    await peer.subscribe()
    (session,) = bench.table
    for number in range(5):
        bench.feed.emit(notice(f"n{number}"))
    session.end(CloseCode.REVOKED)
    assert (await peer.closed()).code is CloseCode.REVOKED
    assert peer.others == []


async def test_a_peer_that_does_not_read_is_hung_up_on_within_a_second(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    streams = trio.testing.lockstep_stream_pair()
    peer = await bench.connect(streams=streams)
    await peer.subscribe()
    (session,) = bench.table
    bench.feed.emit(notice("nobody reads this"))
    await trio.testing.wait_all_tasks_blocked()
    start = trio.current_time()
    session.end(CloseCode.REVOKED)
    await trio.sleep(1.1)
    with pytest.raises(TruncatedError):
        while True:
            await peer.receive()
    assert trio.current_time() - start < 1.2


async def test_a_mutation_runs_on_when_its_client_is_gone(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    began, go, done = trio.Event(), trio.Event(), trio.Event()

    async def handle(call: Call, params: Any) -> WireModel:
        began.set()
        await go.wait()
        done.set()
        return Nothing()

    bench.handlers["turn/interrupt"] = handle
    peer = await bench.connect(make_rights(scopes=frozenset({"read", "write"})))
    params = {"threadId": "t", "turnId": "u", "requestKey": "k" * 16}
    await peer.ask("turn/interrupt", params)
    with trio.fail_after(10):
        await began.wait()
        await peer.channel.aclose()
        await trio.testing.wait_all_tasks_blocked()
        assert len(bench.table) == 0
        go.set()
        await done.wait()


async def test_a_read_ends_with_its_session(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    bench = Bench(nursery)
    ended = trio.Event()

    async def handle(call: Call, params: NoParams) -> NoReturn:
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    bench.handlers["gateway/status"] = handle
    peer = await bench.connect()
    await peer.ask("gateway/status")
    await trio.testing.wait_all_tasks_blocked()
    with trio.fail_after(10):
        await peer.channel.aclose()
        await ended.wait()
