"""Requests of a session: their order, how many may be in flight, which are refused and how."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from agent.sessions.router import Call
from tests.support.edge import (
    Bench,
    Nothing,
    make_rights,
    open_params,
)
from transport.errors import CloseCode, Conflict, NotFound
from transport.protocol.base import NoParams, WireModel


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
    go_on = bench.hold("gateway/status")
    peer = await bench.connect()
    for number in range(100, 117):
        await peer.send({"id": number, "method": "gateway/status"})
    answer = await peer.receive()
    assert answer["id"] == 116
    assert answer["error"]["code"] == "overloaded"
    assert answer["error"]["retryable"] is True
    assert answer["error"]["data"] == {"limit": 16}
    go_on.set()
    ids = {(await peer.receive())["id"] for _ in range(16)}
    assert ids == set(range(100, 116))


async def test_an_id_that_is_in_flight_is_refused_and_its_first_use_is_answered(
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    bench = Bench(nursery)
    go_on = bench.hold("gateway/status")
    peer = await bench.connect()
    await peer.send(*[{"id": 7, "method": "gateway/status"}] * 2)
    assert (await peer.receive())["error"]["data"]["field"] == "id"
    go_on.set()
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


@pytest.mark.parametrize("odd", [2**70, "x" * 1_100_000], ids=["number", "size"])
async def test_a_refusal_that_quotes_what_fits_no_frame_is_told_without_it(
    odd: object, nursery: trio.Nursery
) -> None:
    bench = Bench(nursery)

    async def refuse(_call: Call, _params: Any) -> WireModel:
        raise Conflict("Not like that.", data={"what": odd})

    bench.handlers["turn/interrupt"] = refuse
    peer = await bench.connect(make_rights(scopes=frozenset({"read", "write"})))
    params = {"threadId": "t", "turnId": "u", "requestKey": "k" * 16}
    error = (await peer.call("turn/interrupt", params))["error"]
    assert error == {
        "code": "conflict",
        "message": "Not like that.",
        "retryable": False,
    }


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
