"""Events of a session: order, deltas that wait for company, gaps, and rights that change."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from agent.events.journal import Journal
from tests.support.edge import (
    NOW,
    Bench,
    Peer,
    make_rights,
)
from tests.support.journals import closed, delta, notice, opened


async def test_events_follow_a_subscription_in_order(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    bench = Bench(nursery)
    peer = await bench.connect()
    bench.feed.emit(notice("before"))
    result = await peer.subscribe()
    assert (result["head"], result["verdict"], result["open"]) == (1, "new", [])
    bench.feed.emit(notice("a"))
    bench.feed.emit(opened("th", "i"))
    assert [(await peer.receive())["seq"] for _ in range(2)] == [2, 3]


async def test_nothing_of_a_subscription_comes_before_its_answer(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    for number in range(5):
        bench.feed.emit(notice(f"n{number}"))
    peer = await bench.connect()
    number = await peer.ask(
        "events/subscribe",
        {"threads": "all", "resume": {"epoch": "e1.0", "seq": 2}},
    )
    frames = [await peer.receive() for _ in range(4)]
    assert frames[0]["id"] == number
    assert frames[0]["result"]["verdict"] == "ok"
    assert [frame["seq"] for frame in frames[1:]] == [3, 4, 5]


async def collect_texts(
    peer: Peer, clock: Callable[[], float]
) -> list[tuple[float, str]]:
    got: list[tuple[float, str]] = []
    while True:
        frame = await peer.receive()
        deltas = frame["ds"] if "ds" in frame else [frame["d"]]
        got.extend((clock(), one[4]) for one in deltas)
        if got[-1][1].endswith("!"):
            return got


@pytest.mark.parametrize("network", [True, False])
async def test_the_first_delta_of_a_burst_goes_at_once_and_more_wait_for_company(
    nursery: trio.Nursery, autojump_clock: MockClock, *, network: bool
) -> None:
    bench = Bench(nursery)
    peer = await bench.connect(network=network)
    await peer.subscribe()
    bench.feed.emit(opened("th", "i"))
    await peer.receive()
    start = trio.current_time()
    got: list[tuple[float, str]] = []

    async def watch() -> None:
        got.extend(await collect_texts(peer, lambda: trio.current_time() - start))

    async with trio.open_nursery() as watching:
        watching.start_soon(watch)
        for text in ("a", "b", "c", "d", "e!"):
            await trio.testing.wait_all_tasks_blocked()
            bench.feed.emit(delta("th", "i", text))
            await trio.sleep(0.008)
    if network:
        assert got == [
            (0.0, "a"),
            (pytest.approx(0.020), "bc"),
            (pytest.approx(0.040), "de!"),
        ]
    else:
        assert [text for _, text in got] == ["a", "b", "c", "d", "e!"]


async def test_a_whole_event_does_not_wait_and_takes_the_deltas_along(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    peer = await bench.connect(network=True)
    await peer.subscribe()
    bench.feed.emit(opened("th", "i"))
    await peer.receive()
    bench.feed.emit(delta("th", "i", "a"))
    await peer.receive()
    start = trio.current_time()
    bench.feed.emit(delta("th", "i", "b"))
    await trio.testing.wait_all_tasks_blocked()
    bench.feed.emit(closed("th", "i", "ab"))
    assert (await peer.receive())["d"][4] == "b"
    assert (await peer.receive())["event"] == "item/completed"
    assert trio.current_time() == start


async def test_a_pong_comes_before_events_and_its_seq_is_a_cursor(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    peer = await bench.connect()
    await peer.send({"ping": 1})
    assert await peer.receive() == {"pong": 1, "now": NOW}
    await peer.subscribe()
    bench.feed.emit(notice("a"))
    await peer.receive()
    bench.feed.emit(notice("b"))
    await peer.send({"ping": 2})
    frames = [await peer.receive() for _ in range(2)]
    pong = next(frame for frame in frames if "pong" in frame)
    before = frames[: frames.index(pong)]
    assert pong["seq"] == 1 + len(before), "exactly what was sent before it"


async def test_no_pong_moves_a_cursor_over_what_a_new_subscription_leaves_out(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    peer = await bench.connect(streams=trio.testing.lockstep_stream_pair())
    await peer.subscribe()
    bench.feed.emit(notice("being written"))
    await trio.testing.wait_all_tasks_blocked()
    bench.feed.emit(notice("left out"))
    params = {"threads": "all", "resume": {"epoch": "old", "seq": 1}}
    await peer.send({"id": 99, "method": "events/subscribe", "params": params})
    await peer.send({"ping": 1})
    await trio.testing.wait_all_tasks_blocked()
    told = [await peer.receive() for _ in range(3)]
    assert told[0]["data"]["code"] == "being written"
    assert (told[1]["id"], told[1]["result"]["verdict"]) == (99, "gap")
    assert (told[2]["pong"], told[2]["seq"]) == (1, 2)


async def test_rights_that_change_what_is_seen_give_a_new_epoch_and_a_gap(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    peer = await bench.connect()
    await peer.subscribe()
    bench.feed.emit(opened("th", "i"))
    await peer.receive()
    (session,) = bench.table
    session.change(make_rights(epoch="e1.1", sees=lambda root: root != "th"))
    changed, gap = await peer.receive(), await peer.receive()
    assert changed["event"] == "session/changed"
    assert changed["data"]["epoch"] == "e1.1"
    assert changed["data"]["scopes"] == ["read"]
    assert gap["event"] == "gap"
    assert gap["data"] == {"epoch": "e1.1", "head": 1, "open": []}
    bench.feed.emit(delta("th", "i", "hidden"))
    bench.feed.emit(notice("seen"))
    assert (await peer.receive())["seq"] == 3
    result = await peer.subscribe(resume={"epoch": "e1.0", "seq": 1})
    assert result["verdict"] == "gap", "the old cursor is of another epoch"


async def test_scopes_that_change_are_told_and_events_go_on(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    peer = await bench.connect(make_rights(scopes=frozenset({"read", "write"})))
    await peer.subscribe()
    (session,) = bench.table
    session.change(make_rights())
    bench.feed.emit(notice("a"))
    assert (await peer.receive())["event"] == "session/changed"
    assert (await peer.receive())["seq"] == 1
    params = {"threadId": "t", "turnId": "u", "requestKey": "k" * 16}
    error = (await peer.call("turn/interrupt", params))["error"]
    assert error["code"] == "forbidden"
    assert error["data"] == {"scope": "write"}


async def test_a_device_that_may_not_read_any_more_hears_nothing_more(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    bench = Bench(nursery)
    peer = await bench.connect(make_rights(scopes=frozenset({"read", "write"})))
    await peer.subscribe()
    (session,) = bench.table
    session.change(make_rights(scopes=frozenset({"write"}), epoch="e1.1"))
    bench.feed.emit(notice("unheard"))
    assert (await peer.receive())["event"] == "session/changed"
    await peer.send({"ping": 1})
    assert "seq" not in await peer.receive()
    assert (await peer.call("thread/list"))["error"]["code"] == "forbidden"
    assert peer.others == []


async def test_a_device_that_may_read_again_hears_on_behind_a_gap(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    bench = Bench(nursery)
    wanted: list[frozenset[str] | None] = []

    def want(_session: object, threads: frozenset[str] | None) -> None:
        wanted.append(threads)

    bench.edge = replace(bench.edge, wanted=want)
    peer = await bench.connect()
    await peer.subscribe(threads=["th"])
    (session,) = bench.table
    session.change(make_rights(scopes=frozenset({"write"}), epoch="e1.1"))
    bench.feed.emit(opened("th", "i"))
    bench.feed.emit(notice("unheard"))
    session.change(make_rights(epoch="e1.2"))
    bench.feed.emit(notice("heard"))
    told = [await peer.receive() for _ in range(4)]
    assert [one["event"] for one in told] == [
        "session/changed",
        "session/changed",
        "gap",
        "notice",
    ]
    assert told[2]["data"]["epoch"] == "e1.2"
    assert [one["ref"] for one in told[2]["data"]["open"]] == [1]
    assert told[3]["data"]["code"] == "heard"
    assert wanted == [frozenset({"th"})] * 2, "its threads are followed again"


async def test_a_session_that_falls_out_of_the_ring_gets_a_gap_and_goes_on(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery, journal=Journal(max_events=50))
    peer = await bench.connect()
    await peer.subscribe()
    for number in range(200):
        bench.feed.emit(notice(f"n{number}"))
    gap = await peer.receive()
    assert (gap["event"], gap["data"]["head"]) == ("gap", 200)
    bench.feed.emit(notice("next"))
    assert (await peer.receive())["seq"] == 201


async def test_after_three_gaps_in_a_minute_the_session_is_told_that_deltas_are_off(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery, journal=Journal(max_events=50))
    peer = await bench.connect()
    await peer.subscribe()
    for _ in range(3):
        for number in range(200):
            bench.feed.emit(notice(f"n{number}"))
        assert (await peer.receive())["event"] == "gap"
    told = await peer.receive()
    assert (told["event"], told["data"]["code"]) == ("notice", "deltasOff")
    assert "seq" not in told
