"""What becomes of a call when its connection is lost or its answer does not come."""

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support.memory_agent import STATUS, AgentSide
from tests.support.memory_client import TURN, connected, status
from transport.errors import (
    Forbidden,
    OutcomeUnknown,
    Timeout,
    UnreachableError,
)
from transport.limits import CALL_S, MUTATION_S
from transport.protocol.admin import PairAwaitParams
from transport.protocol.approvals import ApprovalAnswerParams
from transport.protocol.methods import (
    APPROVAL_ANSWER,
    PAIR_AWAIT,
    TURN_START,
)

STARTED = {
    "turn": {"id": "t1", "threadId": "th1", "status": "inProgress", "startedAt": 1},
    "delivery": "started",
}


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


async def test_nor_did_one_whose_patience_ended_in_that_wait(
    autojump_clock: MockClock,
) -> None:
    async with connected() as world:
        side = await world.session()
        for _ in range(16):
            status(world)
            await side.request("gateway/status")
        call = world.start(world.client.call, TURN_START, TURN, timeout_s=7)
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
