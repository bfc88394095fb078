"""The client's connection: the first one, losses, how soon it comes back, when it stays away."""

from itertools import pairwise
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support.memory_agent import FakeAgent
from tests.support.memory_client import connected, status
from transport.errors import (
    CloseCode,
    Forbidden,
    PeerClosedError,
    TruncatedError,
    UnreachableError,
    UnsupportedProtocol,
)
from transport.limits import STEADY_S


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


async def test_so_can_one_that_opens_no_session_for_now(
    autojump_clock: MockClock,
) -> None:
    full = {"code": "overloaded", "message": "full", "retryable": True}
    async with connected() as world:
        world.agent.refusal = {**full, "retryAfterMs": 9_000}
        (await world.session()).channel.cut()
        await trio.sleep(5)
        assert len(world.agent.dialled) == 2
        world.agent.refusal = None
        await world.session()
    assert world.agent.dialled[2] - world.agent.dialled[1] == pytest.approx(9)


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
