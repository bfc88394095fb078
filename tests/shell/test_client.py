"""The client: calls, losses and coming back, against an Agent played by hand."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support.memory_agent import STATUS, AgentSide, FakeAgent
from transport.client import Client, LinkState
from transport.errors import (
    CloseCode,
    CodexUnavailable,
    Forbidden,
    InvalidParams,
    LocalProtocolError,
    OutcomeUnknown,
    PeerClosedError,
    RemoteProtocolError,
    Timeout,
    TooLarge,
    TruncatedError,
    UnknownRefusal,
    UnreachableError,
    UnsupportedProtocol,
)
from transport.limits import CALL_S, MUTATION_S, STEADY_S
from transport.protocol.admin import PairAwaitParams
from transport.protocol.approvals import ApprovalAnswerParams
from transport.protocol.gateway import GatewayStatus, GatewayStatusParams
from transport.protocol.methods import (
    APPROVAL_ANSWER,
    GATEWAY_STATUS,
    PAIR_AWAIT,
    SESSION_OPEN,
    TURN_START,
)
from transport.protocol.session import ClientInfo, SessionOpenParams, VersionRange
from transport.protocol.turns import TurnStartParams

INFO = ClientInfo(name="test", version="1.0", platform="linux", instance="f" * 32)
TURN = TurnStartParams.model_validate(
    {
        "threadId": "th1",
        "input": [{"type": "text", "text": "go on"}],
        "requestKey": "k" * 16,
    }
)
STARTED = {
    "turn": {"id": "t1", "threadId": "th1", "status": "inProgress", "startedAt": 1},
    "delivery": "started",
}


@dataclass
class World:
    """A client and the Agent that the test plays."""

    client: Client
    agent: FakeAgent
    links: list[LinkState]
    nursery: trio.Nursery

    async def session(self) -> AgentSide:
        return await self.agent.sessions.receive()

    def start(self, call: Any, *args: Any, **named: Any) -> "Outcome":
        outcome = Outcome()
        self.nursery.start_soon(outcome.run, call, args, named)
        return outcome


class Outcome:
    """What a call in another task came to."""

    def __init__(self) -> None:
        self.done = trio.Event()
        self.result: Any = None
        self.error: Exception | None = None

    async def run(self, call: Any, args: Any, named: Any) -> None:
        try:
            self.result = await call(*args, **named)
        except Exception as exc:  # noqa: BLE001 - the test looks at it
            self.error = exc
        self.done.set()

    async def wait(self) -> Any:
        await self.done.wait()
        if self.error is not None:
            raise self.error
        return self.result


@asynccontextmanager
async def connected(agent: FakeAgent | None = None) -> AsyncGenerator[World]:
    agent = agent or FakeAgent()
    links: list[LinkState] = []
    client = Client(agent.dial, INFO, links.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(agent.serve)
        await nursery.start(client.serve)
        yield World(client, agent, links, nursery)
        nursery.cancel_scope.cancel()


def status(world: World, **named: Any) -> Outcome:
    call = world.client.call
    return world.start(call, GATEWAY_STATUS, GatewayStatusParams(), **named)


async def test_a_session_is_opened_with_who_we_are() -> None:
    async with connected() as world:
        side = await world.session()
    assert side.opening["client"] == INFO.wire()
    assert side.opening["protocol"] == {"min": "2.0", "max": "2.0"}
    assert world.client.opened.device.name == "phone"
    assert world.links == [LinkState(up=True)]


async def test_a_call_returns_its_typed_result() -> None:
    async with connected() as world:
        side, call = await world.session(), status(world)
        request = await side.request("gateway/status")
        assert request["params"] == {}
        await side.answer(request, {**STATUS, "keyOfANewerAgent": 1})
        assert await call.wait() == GatewayStatus.model_validate(STATUS)


async def test_a_refusal_is_raised_as_its_class() -> None:
    async with connected() as world:
        side, call = await world.session(), status(world)
        data = {"gate": {"state": "readOnly"}}
        await side.refuse(
            await side.request("gateway/status"),
            "codexUnavailable",
            retryable=True,
            retryAfterMs=5_000,
            data=data,
        )
        with pytest.raises(CodexUnavailable, match="it is codexUnavailable") as caught:
            await call.wait()
    assert (caught.value.retryable, caught.value.retry_after_ms) == (True, 5_000)
    assert caught.value.data == data


async def test_a_code_of_a_newer_agent_goes_by_retryable() -> None:
    async with connected() as world:
        side, call = await world.session(), status(world)
        request = await side.request("gateway/status")
        await side.refuse(request, "moonPhase", retryable=True)
        with pytest.raises(UnknownRefusal) as caught:
            await call.wait()
    assert caught.value.retryable
    assert caught.value.wire_code == "moonPhase"


async def test_answers_may_overtake_each_other() -> None:
    async with connected() as world:
        side = await world.session()
        first = status(world)
        await wait_all_tasks_blocked()
        second = status(world)
        one = await side.request("gateway/status")
        two = await side.request("gateway/status")
        await side.answer(two, {**STATUS, "sessions": 2})
        assert (await second.wait()).sessions == 2
        await side.answer(one, {**STATUS, "sessions": 1})
        assert (await first.wait()).sessions == 1


async def test_requests_that_come_together_leave_in_one_write() -> None:
    async with connected() as world:
        await world.session()
        for _ in range(5):
            status(world)
        await wait_all_tasks_blocked()
        link = world.client._session.link  # pyright: ignore[reportPrivateUsage]
        assert link is not None
        channel: Any = link._channel  # pyright: ignore[reportPrivateUsage]
        assert channel.writes == [1, 5]


async def test_a_cancelled_call_leaves_the_session_alone() -> None:
    async with connected() as world:
        side = await world.session()
        with trio.CancelScope() as scope:
            world.nursery.start_soon(_cancel_when_blocked, scope)
            await world.client.call(GATEWAY_STATUS, GatewayStatusParams())
        assert scope.cancelled_caught
        call = status(world)
        late = await side.request("gateway/status")
        await side.answer(late, STATUS)
        await side.answer(await side.request("gateway/status"), STATUS)
        await call.wait()
    assert len(world.agent.dialled) == 1


async def _cancel_when_blocked(scope: trio.CancelScope) -> None:
    await wait_all_tasks_blocked()
    scope.cancel()


async def test_no_more_than_sixteen_requests_are_in_flight() -> None:
    async with connected() as world:
        side = await world.session()
        calls = [status(world) for _ in range(17)]
        requests = [await side.request("gateway/status") for _ in range(16)]
        await wait_all_tasks_blocked()
        late = world.start(side.request, "gateway/status")
        await wait_all_tasks_blocked()
        assert not late.done.is_set()
        await side.answer(requests[0], STATUS)
        for request in [await late.wait(), *requests[1:]]:
            await side.answer(request, STATUS)
        for call in calls:
            await call.wait()


async def test_a_request_above_the_frame_limit_is_not_sent() -> None:
    parts = [{"type": "text", "text": "x" * 150_000}] * 2
    large = TURN.model_copy(update={"input": parts})
    async with connected() as world:
        side = await world.session()
        for _ in range(17):  # and it holds no place in flight
            with pytest.warns(UserWarning, match="serializ"), pytest.raises(TooLarge):
                await world.client.call(TURN_START, large)
        call = status(world)
        await side.answer(await side.request("gateway/status"), STATUS)
        await call.wait()


def _nested(depth: int) -> dict[str, Any]:
    return {"of": _nested(depth - 1)} if depth else {}


NONE: list[object] = []
ODD: dict[str, dict[str, Any]] = {
    "deep": _nested(40),
    "endless": {"most": float("inf")},
    "long": {"most": 10**30},
    "many": {"of": [NONE] * 30_000},
}


@pytest.mark.parametrize("schema", ODD.values(), ids=ODD)
async def test_what_an_agent_would_end_the_session_for_is_not_sent(
    schema: dict[str, Any],
) -> None:
    odd = TURN.model_copy(update={"output_schema": schema})
    async with connected() as world:
        side = await world.session()
        for _ in range(17):  # and it holds no place in flight
            with pytest.raises(InvalidParams):
                await world.client.call(TURN_START, odd)
        call = status(world)
        await side.answer(await side.request("gateway/status"), STATUS)
        await call.wait()


async def test_an_answer_that_is_not_as_specified_fails_that_call_alone() -> None:
    async with connected() as world:
        side, call = await world.session(), status(world)
        await side.answer(await side.request("gateway/status"), {"agent": 5})
        with pytest.raises(RemoteProtocolError):
            await call.wait()
        again = status(world)
        await side.answer(await side.request("gateway/status"), STATUS)
        await again.wait()


async def test_the_clients_own_methods_cannot_be_called() -> None:
    params = SessionOpenParams(protocol=VersionRange(min="2.0", max="2.0"), client=INFO)
    async with connected() as world:
        with pytest.raises(LocalProtocolError):
            await world.client.call(SESSION_OPEN, params)


# The first connection


async def test_a_first_connection_that_fails_is_raised_and_not_repeated() -> None:
    agent = FakeAgent()
    agent.unreachable = 1
    with pytest.RaisesGroup(UnreachableError):
        async with connected(agent):
            pass
    assert len(agent.dialled) == 1


async def test_an_agent_that_does_not_open_is_raised() -> None:
    agent = FakeAgent()
    agent.refusal = {"code": "unsupportedProtocol", "message": "m", "retryable": False}
    with pytest.RaisesGroup(UnsupportedProtocol):
        async with connected(agent):
            pass


# Losses


async def test_a_cut_connection_comes_back_after_half_a_second_or_so(
    autojump_clock: MockClock,
) -> None:
    async with connected() as world:
        (await world.session()).channel.cut()
        await world.session()
        await wait_all_tasks_blocked()
    first, second = world.agent.dialled
    assert 0.25 <= second - first <= 0.75
    assert [link.up for link in world.links] == [True, False, True]
    assert world.links[1].retry_in_s == pytest.approx(second - first)
    assert world.links[1].why == "cut"


async def test_the_wait_grows_while_nobody_answers(autojump_clock: MockClock) -> None:
    async with connected() as world:
        world.agent.unreachable = 8
        (await world.session()).channel.cut()
        await world.session()
    waits = [b - a for a, b in pairwise(world.agent.dialled)]
    for wait, middle in zip(waits, [0.5, 1, 2, 4, 8, 16, 30, 30, 30], strict=True):
        assert middle / 2 <= wait <= middle * 1.5


async def test_a_session_that_lived_long_comes_back_quickly(
    autojump_clock: MockClock,
) -> None:
    async with connected() as world:
        world.agent.unreachable = 5
        (await world.session()).channel.cut()
        side = await world.session()
        ends = trio.current_time() + STEADY_S + 1
        while trio.current_time() < ends:
            frame = await side.channel.receive()
            await side.tell({"pong": frame["ping"], "now": 1})
        cut_at = trio.current_time()
        side.channel.cut()
        await world.session()
    assert world.agent.dialled[-1] - cut_at <= 0.75


async def test_a_renewal_is_at_once(autojump_clock: MockClock) -> None:
    async with connected() as world:
        await (await world.session()).channel.aclose(CloseCode.RENEW)
        await world.session()
    assert world.agent.dialled[0] == world.agent.dialled[1]


async def test_an_agent_that_goes_away_can_say_for_how_long(
    autojump_clock: MockClock,
) -> None:
    closing = {"code": "goingAway", "message": "restarting", "retryAfterMs": 9_000}
    async with connected() as world:
        side = await world.session()
        await side.tell({"event": "session/closing", "data": closing})
        await side.channel.aclose(CloseCode.GOING_AWAY)
        await world.session()
    assert world.agent.dialled[1] - world.agent.dialled[0] == pytest.approx(9)


@pytest.mark.parametrize("code", [CloseCode.REVOKED, CloseCode.REPLACED])
async def test_a_revoked_or_replaced_client_stays_away_and_says_so(
    code: CloseCode, autojump_clock: MockClock
) -> None:
    async with connected() as world:
        side, waiting = await world.session(), status(world)
        await side.request("gateway/status")
        await side.channel.aclose(code)
        for call in (waiting, status(world)):
            with pytest.raises(PeerClosedError) as caught:
                await call.wait()
            assert caught.value.code is code
        await trio.sleep(600)
    assert len(world.agent.dialled) == 1
    assert not world.links[-1].up
    assert world.links[-1].retry_in_s is None


async def test_a_refused_reopening_ends_the_client(autojump_clock: MockClock) -> None:
    async with connected() as world:
        world.agent.refusal = {"code": "forbidden", "message": "no", "retryable": False}
        (await world.session()).channel.cut()
        with pytest.raises(UnreachableError) as caught:
            await status(world).wait()
    assert isinstance(caught.value.__cause__, Forbidden)


async def test_a_read_is_asked_again_after_a_loss(autojump_clock: MockClock) -> None:
    async with connected() as world:
        side, call = await world.session(), status(world)
        await side.request("gateway/status")
        side.channel.cut()
        side = await world.session()
        await side.answer(await side.request("gateway/status"), STATUS)
        await call.wait()


async def test_a_mutation_is_repeated_with_its_own_request_key(
    autojump_clock: MockClock,
) -> None:
    async with connected() as world:
        side = await world.session()
        call = world.start(world.client.call, TURN_START, TURN)
        first = await side.request("turn/start")
        side.channel.cut()
        side = await world.session()
        again = await side.request("turn/start")
        await side.answer(again, STARTED)
        assert (await call.wait()).delivery == "started"
    assert again["params"] == first["params"]
    assert again["params"]["requestKey"] == "k" * 16


async def test_a_mutation_that_was_sent_ends_as_outcome_unknown_not_as_timeout(
    autojump_clock: MockClock,
) -> None:
    async with connected() as world:
        side = await world.session()
        call = world.start(world.client.call, TURN_START, TURN)
        await side.request("turn/start")
        world.agent.unreachable = 1_000
        side.channel.cut()
        with pytest.raises(OutcomeUnknown) as caught:
            await call.wait()
        assert trio.current_time() == MUTATION_S
    expected = {"method": "turn/start", "requestKey": "k" * 16, "threadId": "th1"}
    assert caught.value.data == expected
    assert not caught.value.retryable


async def test_a_mutation_that_never_left_ends_as_timeout(
    autojump_clock: MockClock,
) -> None:
    async with connected() as world:
        world.agent.unreachable = 1_000
        (await world.session()).channel.cut()
        await wait_all_tasks_blocked()
        call = world.start(world.client.call, TURN_START, TURN, timeout_s=7)
        with pytest.raises(Timeout):
            await call.wait()


async def test_a_mutation_that_waited_for_its_turn_never_left_either(
    autojump_clock: MockClock,
) -> None:
    async with connected() as world:
        side = await world.session()
        for _ in range(16):
            status(world)
            await side.request("gateway/status")
        call = world.start(world.client.call, TURN_START, TURN)
        await wait_all_tasks_blocked()
        world.agent.unreachable = 1_000
        side.channel.cut()
        with pytest.raises(Timeout):
            await call.wait()


async def test_an_answer_to_an_approval_is_given_again(
    autojump_clock: MockClock,
) -> None:
    params = ApprovalAnswerParams(approval_id="apr_1", digest="d", choice="accept")
    async with connected() as world:
        side = await world.session()
        call = world.start(world.client.call, APPROVAL_ANSWER, params)
        await side.request("approval/answer")
        side.channel.cut()
        side = await world.session()
        await side.refuse(await side.request("approval/answer"), "forbidden")
        with pytest.raises(Forbidden):
            await call.wait()


async def test_a_pairing_call_is_not_carried_to_another_connection(
    autojump_clock: MockClock,
) -> None:
    async with connected() as world:
        side = await world.session()
        call = world.start(world.client.call, PAIR_AWAIT, PairAwaitParams())
        await side.request("pair/await")
        side.channel.cut()
        with pytest.raises(UnreachableError):
            await call.wait()


async def test_a_read_without_an_answer_times_out(autojump_clock: MockClock) -> None:
    async with connected() as world:
        side, call = await world.session(), status(world)
        world.nursery.start_soon(_answer_pings, side)
        with pytest.raises(Timeout):
            await call.wait()
        assert trio.current_time() == CALL_S
    assert len(world.agent.dialled) == 1


async def _answer_pings(side: AgentSide) -> None:
    while True:
        frame = await side.channel.receive()
        if "ping" in frame:
            await side.tell({"pong": frame["ping"], "now": 1})


async def test_the_agents_patience_for_the_gate_is_added_to_ours(
    autojump_clock: MockClock,
) -> None:
    turn = TURN.model_copy(update={"wait_ms": 60_000})
    async with connected() as world:
        side = await world.session()
        call = world.start(world.client.call, TURN_START, turn)
        world.nursery.start_soon(_answer_pings, side)
        with pytest.raises(OutcomeUnknown):
            await call.wait()
        assert trio.current_time() == MUTATION_S + 60


@pytest.mark.parametrize(
    "frame",
    [
        {"id": 99, "result": {}},
        {"id": [1], "result": {}},
        {"id": 2},
        {"id": 2, "result": {}, "error": {"code": "internal"}},
        {"id": 2, "result": 5},
        {"event": "session/closing", "data": {}},
    ],
)
async def test_an_agent_that_breaks_the_protocol_is_left(
    frame: dict[str, Any], autojump_clock: MockClock
) -> None:
    async with connected() as world:
        side = await world.session()
        status(world)
        await side.request("gateway/status")
        await side.tell(frame)
        await world.session()
    assert not world.links[1].up


# Keepalive


async def test_a_silent_client_pings_and_is_kept(autojump_clock: MockClock) -> None:
    async with connected() as world:
        side = await world.session()
        for number in range(1, 6):
            assert await side.channel.receive() == {"ping": number}
            assert trio.current_time() == 15 * number
            await side.tell({"pong": number, "now": 1})
    assert len(world.agent.dialled) == 1


async def test_a_ping_is_answered(autojump_clock: MockClock) -> None:
    async with connected() as world:
        side = await world.session()
        await side.tell({"ping": 77})
        assert await side.channel.receive() == {"pong": 77}


async def test_a_dead_connection_is_left_after_dead_ms(
    autojump_clock: MockClock,
) -> None:
    async with connected() as world:
        await world.session()
        await world.session()
    assert 45.25 <= world.agent.dialled[1] <= 45.75
    assert "dead" in world.links[1].why


async def test_the_agents_limits_set_the_pace(autojump_clock: MockClock) -> None:
    agent = FakeAgent()
    agent.limits |= {"pingMs": 2_000, "deadMs": 5_000}
    async with connected(agent) as world:
        side = await world.session()
        assert "ping" in await side.channel.receive()
        assert trio.current_time() == 2
        await world.session()
    assert 5.25 <= agent.dialled[1] <= 5.75


# The end


async def test_leaving_says_close() -> None:
    async with connected() as world:
        side = await world.session()
    with pytest.raises(PeerClosedError) as caught:
        await side.channel.receive()
    assert caught.value.code is CloseCode.DONE


async def test_changed_rights_are_known_at_once() -> None:
    ceiling = {"sandbox": "read-only", "approvalPolicy": ["untrusted"], "roots": []}
    changed = {"epoch": "e2", "scopes": ["read", "write"], "ceiling": ceiling}
    async with connected() as world:
        side = await world.session()
        await side.tell({"event": "session/changed", "data": changed})
        await wait_all_tasks_blocked()
        opened = world.client.opened
    assert opened.epoch == "e2"
    assert opened.device.scopes == ["read", "write"]
    assert opened.device.ceiling is not None
    assert opened.device.ceiling.sandbox == "read-only"


def test_a_truncation_is_no_proper_end() -> None:
    assert not isinstance(TruncatedError(""), PeerClosedError)
