"""session/open: what it tells, which versions it speaks, whom it replaces, how many there may be."""

import pytest
import trio
from trio.testing import MockClock

from tests.support.edge import (
    NOW,
    Bench,
    make_rights,
    open_params,
)
from tests.support.journals import notice
from transport.errors import CloseCode


async def test_a_request_before_session_open_is_not_open_and_the_session_lives(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    peer = await Bench(nursery).connect(opened=False)
    answer = await peer.call("gateway/status")
    assert answer["error"]["code"] == "notOpen"
    answer = await peer.call("session/open", open_params())
    assert answer["result"]["protocol"] == "2.0"


async def test_session_open_tells_all_that_a_client_needs(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    bench.feed.emit(notice("before"))
    peer = await bench.connect(opened=False)
    result = (await peer.call("session/open", open_params()))["result"]
    assert result["head"] == 1
    assert result["epoch"] == "e1.0"
    assert result["now"] == NOW
    assert result["device"]["scopes"] == ["read"]
    assert result["gate"]["state"] == "open"
    assert result["limits"]["inFlight"] == 16
    assert bench.seen == ["00000000000000aa"]


async def test_a_session_is_opened_once(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    peer = await Bench(nursery).connect()
    answer = await peer.call("session/open", open_params())
    assert answer["error"]["code"] == "invalidParams"


@pytest.mark.parametrize(("low", "high"), [("1.0", "1.9"), ("2.1", "10.0")])
async def test_another_version_is_told_ours(
    nursery: trio.Nursery, autojump_clock: MockClock, low: str, high: str
) -> None:
    peer = await Bench(nursery).connect(opened=False)
    params = {**open_params(), "protocol": {"min": low, "max": high}}
    error = (await peer.call("session/open", params))["error"]
    assert error["code"] == "unsupportedProtocol"
    assert error["data"] == {"min": "2.0", "max": "2.0"}


async def test_versions_are_compared_as_numbers(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    peer = await Bench(nursery).connect(opened=False)
    params = {**open_params(), "protocol": {"min": "1.12", "max": "2.10"}}
    assert "result" in await peer.call("session/open", params)


async def test_an_authenticated_peer_that_opens_nothing_is_sent_away(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    peer = await Bench(nursery).connect(opened=False)
    await peer.send({"ping": 1})
    start = trio.current_time()
    await peer.closed()
    assert trio.current_time() - start == pytest.approx(10, abs=1)


async def test_a_new_session_of_the_same_instance_replaces_the_older(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    first = await bench.connect()
    other = await bench.connect(instance="i2")
    second = await bench.connect()
    assert (await first.closed()).code is CloseCode.REPLACED
    assert len(bench.table) == 2
    for peer in (second, other):
        assert "result" in await peer.call("thread/list")


async def test_a_connection_that_has_not_opened_its_session_replaces_nobody(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    first = await bench.connect()
    late = await bench.connect(opened=False)
    await late.send({"ping": 1})
    assert (await late.receive())["pong"] == 1
    assert "result" in await first.call("thread/list")


async def test_another_device_with_the_same_instance_replaces_nobody(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    first = await bench.connect()
    await bench.connect(make_rights(device_id="00000000000000bb"))
    assert "result" in await first.call("thread/list")


async def test_a_device_with_too_many_sessions_is_overloaded_and_closed(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    for number in range(4):
        await bench.connect(instance=f"n{number}")
    peer = await bench.connect(opened=False)
    error = (await peer.call("session/open", open_params("n9")))["error"]
    assert error["code"] == "overloaded"
    assert (await peer.closed()).code is CloseCode.OVERLOADED
    again = await bench.connect(instance="n0")
    assert "result" in await again.call("thread/list"), "replacing is still possible"


async def test_all_sessions_together_are_bounded(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    bench = Bench(nursery)
    for number in range(6):
        device_id = f"000000000000000{number}"
        await bench.connect(make_rights(device_id=device_id))
    peer = await bench.connect(make_rights(device_id="00000000000000ff"), opened=False)
    error = (await peer.call("session/open", open_params()))["error"]
    assert error["data"] == {"limit": 6}


async def test_a_device_that_was_revoked_during_its_handshake_opens_nothing(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    peer = await bench.connect(make_rights(alive=lambda: False), opened=False)
    error = (await peer.call("session/open", open_params()))["error"]
    assert error["code"] == "forbidden"
    assert len(bench.table) == 0
