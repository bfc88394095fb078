"""One session over memory streams and a mock clock: order, keepalive, bounds, endings."""

from collections.abc import Callable
from typing import Any, NoReturn

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from agent.edge_limits import READS_A_DEVICE, UNSENT_A_DEVICE
from agent.events.journal import Journal
from agent.sessions.router import Call
from tests.support.edge import (
    NOW,
    Bench,
    Nothing,
    Peer,
    make_rights,
    open_params,
)
from tests.support.journals import closed, delta, notice, opened
from transport.errors import CloseCode, NotFound, TruncatedError
from transport.protocol.base import NoParams, WireModel
from transport.protocol.events import SessionClosing


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


async def test_requests_may_be_pipelined_behind_session_open(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    peer = await Bench(nursery).connect(opened=False)
    await peer.send(
        {"id": 1, "method": "session/open", "params": open_params()},
        {"id": 2, "method": "events/subscribe", "params": {"threads": "all"}},
        {"id": 3, "method": "gateway/status"},
    )
    answers = [await peer.receive() for _ in range(3)]
    assert [answer["id"] for answer in answers] == [1, 2, 3]
    assert all("result" in answer for answer in answers)


async def test_requests_start_in_order_and_answers_may_overtake(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    started: list[int] = []
    hold = trio.Event()

    async def handle(call: Call, params: Any) -> WireModel:
        started.append(params.limit)
        if params.limit == 1:
            await hold.wait()
        return Nothing()

    bench.handlers["thread/list"] = handle
    peer = await bench.connect()
    frames = [
        {"id": number, "method": "thread/list", "params": {"limit": number}}
        for number in range(1, 13)
    ]
    await peer.send(*frames)
    answers = [await peer.receive() for _ in range(11)]
    assert started == list(range(1, 13))
    assert 1 not in [answer["id"] for answer in answers]
    hold.set()
    assert (await peer.receive())["id"] == 1


async def test_the_seventeenth_request_in_flight_is_overloaded(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    hold = trio.Event()

    async def handle(call: Call, params: NoParams) -> WireModel:
        await hold.wait()
        return Nothing()

    bench.handlers["gateway/status"] = handle
    peer = await bench.connect()
    for number in range(100, 117):
        await peer.send({"id": number, "method": "gateway/status"})
    answer = await peer.receive()
    assert answer["id"] == 116
    assert answer["error"]["code"] == "overloaded"
    assert answer["error"]["retryable"] is True
    assert answer["error"]["data"] == {"limit": 16}
    hold.set()
    ids = {(await peer.receive())["id"] for _ in range(16)}
    assert ids == set(range(100, 116))


async def test_an_id_that_is_in_flight_is_refused_and_its_first_use_is_answered(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    hold = trio.Event()

    async def handle(call: Call, params: NoParams) -> WireModel:
        await hold.wait()
        return Nothing()

    bench.handlers["gateway/status"] = handle
    peer = await bench.connect()
    await peer.send(*[{"id": 7, "method": "gateway/status"}] * 2)
    assert (await peer.receive())["error"]["data"]["field"] == "id"
    hold.set()
    assert (await peer.receive()) == {"id": 7, "result": {}}


@pytest.mark.parametrize(
    ("method", "params", "field"),
    [
        ("thread/read", {"threadId": "t", "extra": 1}, "extra"),
        ("thread/read", {}, "threadId"),
        ("thread/read", {"threadId": "t", "turns": "10"}, "turns"),
        ("thread/read", {"threadId": "t", "turns": True}, "turns"),
        ("thread/read", {"thread_id": "t"}, "threadId"),
        ("thread/list", {"cwd": None}, "cwd"),
        ("events/subscribe", {"threads": "some"}, "threads"),
        ("events/subscribe", {"threads": ["t", 5]}, "threads.1"),
    ],
)
async def test_params_are_strict_and_the_refusal_names_the_field(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
    method: str,
    params: dict[str, Any],
    field: str,
) -> None:
    peer = await Bench(nursery).connect()
    error = (await peer.call(method, params))["error"]
    assert error["code"] == "invalidParams"
    assert error["data"]["field"].startswith(field)
    assert error["data"]["reason"]


async def test_an_unknown_method_is_not_found(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    peer = await Bench(nursery).connect()
    error = (await peer.call("command/exec", {"command": "id"}))["error"]
    assert error["code"] == "methodNotFound"


async def test_a_fault_of_ours_tells_the_client_nothing_about_it(
    nursery: trio.Nursery, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(nursery)

    async def handle(call: Call, params: NoParams) -> WireModel:
        msg = "secret /home/person/plan.txt"
        raise RuntimeError(msg)

    bench.handlers["gateway/status"] = handle
    peer = await bench.connect()
    error = (await peer.call("gateway/status"))["error"]
    assert error["code"] == "internal"
    assert "secret" not in str(error)
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text
    assert "result" in await peer.call("thread/list"), "the session lives on"


async def test_an_answer_above_the_frame_size_is_a_fault_of_ours(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)

    class Big(WireModel):
        text: str = "x" * 1_100_000

    async def handle(call: Call, params: NoParams) -> WireModel:
        return Big()

    bench.handlers["gateway/status"] = handle
    peer = await bench.connect()
    assert (await peer.call("gateway/status"))["error"]["code"] == "internal"


async def test_a_refusal_reaches_the_client_as_the_handler_said_it(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)

    async def handle(call: Call, params: Any) -> WireModel:
        raise NotFound("no", data={"kind": "thread", "id": params.thread_id})

    bench.handlers["thread/read"] = handle
    peer = await bench.connect()
    error = (await peer.call("thread/read", {"threadId": "t"}))["error"]
    assert error == {
        "code": "notFound",
        "message": "no",
        "retryable": False,
        "data": {"kind": "thread", "id": "t"},
    }


async def test_twenty_invalid_requests_in_a_minute_end_the_session(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    peer = await Bench(nursery).connect()
    for _ in range(19):
        await peer.call("no/such")
    last = await peer.ask("no/such")
    close = await peer.closed()
    assert close.code is CloseCode.PROTOCOL_ERROR
    assert peer.others[-1]["id"] == last, "it was answered before"


async def test_invalid_requests_that_come_slowly_end_nothing(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    peer = await Bench(nursery).connect()
    for _ in range(30):
        await peer.call("no/such")
        await trio.sleep(4)
    assert "result" in await peer.call("thread/list")


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


async def test_a_session_is_renewed_after_a_day(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    bench = Bench(nursery)
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
    assert trio.current_time() - start == pytest.approx(86_400, abs=20)


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
    await peer.channel.aclose()
    await ended.wait()


async def test_a_device_that_was_revoked_during_its_handshake_opens_nothing(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    peer = await bench.connect(make_rights(alive=lambda: False), opened=False)
    error = (await peer.call("session/open", open_params()))["error"]
    assert error["code"] == "forbidden"
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


class Large(WireModel):
    """As large as a page may be."""

    text: str = "x" * 250_000
    more: str = "y" * 250_000


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
