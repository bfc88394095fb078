"""The client's calls: what is sent, what is refused here, what an answer becomes."""

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.support.memory_agent import STATUS, FakeAgent
from tests.support.memory_client import INFO, TURN, connected, status
from transport.blobs import send_blob
from transport.client import LinkState
from transport.errors import (
    CodexUnavailable,
    InvalidParams,
    LocalProtocolError,
    RemoteProtocolError,
    TooLarge,
    UnknownRefusal,
)
from transport.protocol.gateway import GatewayStatus, GatewayStatusParams
from transport.protocol.methods import (
    GATEWAY_STATUS,
    SESSION_OPEN,
    TURN_START,
)
from transport.protocol.session import SessionOpenParams, VersionRange


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


async def test_nor_more_than_the_agent_named() -> None:
    agent = FakeAgent()
    agent.limits |= {"inFlight": 2}
    async with connected(agent) as world:
        side = await world.session()
        calls = [status(world) for _ in range(3)]
        first = await side.request("gateway/status")
        await side.request("gateway/status")
        late = world.start(side.request, "gateway/status")
        await wait_all_tasks_blocked()
        assert not late.done.is_set()
        await side.answer(first, STATUS)
        await late.wait()
        side.channel.cut()
        side = await world.session()
        for _ in calls[1:]:
            await side.answer(await side.request("gateway/status"), STATUS)
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


async def test_a_file_is_not_sent_for_ever_to_an_agent_that_never_has_it() -> None:
    async with connected() as world:
        side = await world.session()
        call = world.start(send_blob, world.client, b"some text", name="notes")
        begun = await side.request("blob/begin")
        await side.answer(begun, {"uploadId": "up1"})
        await side.answer(await side.request("blob/chunk"), {"next": 0})
        with pytest.raises(RemoteProtocolError):
            await call.wait()


async def test_the_clients_own_methods_cannot_be_called() -> None:
    params = SessionOpenParams(protocol=VersionRange(min="2.0", max="2.0"), client=INFO)
    async with connected() as world:
        with pytest.raises(LocalProtocolError):
            await world.client.call(SESSION_OPEN, params)
