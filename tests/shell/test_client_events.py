"""The client's subscription: resume, gap, slow consumers, against an Agent by hand."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support.memory_agent import STATUS, AgentSide, FakeAgent
from tests.support.memory_client import INFO
from transport.client import Client, ClientEvent, DeltaSeen, EventSeen, Resumed
from transport.errors import CloseCode, Forbidden, LocalProtocolError, PeerClosedError
from transport.limits import EVENTS_HELD
from transport.protocol.gateway import GatewayStatusParams
from transport.protocol.methods import GATEWAY_STATUS
from transport.subscription import Threads

Events = AsyncIterator[ClientEvent]


def notice(seq: int) -> dict[str, Any]:
    data = {"level": "info", "code": f"n{seq}", "message": "m"}
    return {"seq": seq, "event": "notice", "at": 7, "data": data}


def opened(ref: int, seq: int, text: str) -> dict[str, Any]:
    item = {"id": f"i{ref}", "turnId": "t1", "status": "inProgress"}
    return {
        "ref": ref,
        "seq": seq,
        "item": {**item, "kind": "agentMessage", "text": text},
    }


class World:
    """A client, the Agent that the test plays, and an answer for each subscribe."""

    def __init__(self, client: Client, agent: FakeAgent) -> None:
        self.client = client
        self.agent = agent
        self.asked: list[dict[str, Any]] = []

    async def session(self) -> AgentSide:
        return await self.agent.sessions.receive()

    @asynccontextmanager
    async def subscribed(
        self,
        side: AgentSide,
        *,
        threads: Threads = "all",
        deltas: bool = True,
        then: Sequence[dict[str, Any]] = (),
        rows: Sequence[dict[str, Any]] = (),
    ) -> AsyncGenerator[Events]:
        async def answer() -> None:
            self.asked.append(await side.subscribed(then=then, opened=rows))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            async with self.client.subscribe(threads, deltas=deltas) as events:
                yield events


@asynccontextmanager
async def connected() -> AsyncGenerator[World]:
    agent = FakeAgent()
    client = Client(agent.dial, INFO)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(agent.serve)
        await nursery.start(client.serve)
        yield World(client, agent)
        nursery.cancel_scope.cancel()


async def seqs(events: Events, count: int) -> list[int]:
    found: list[int] = []
    for _ in range(count):
        event = await anext(events)
        assert not isinstance(event, Resumed), event
        found.append(event.seq)
    return found


async def test_a_subscription_begins_with_where_it_stands() -> None:
    async with connected() as world:
        side = await world.session()
        row = opened(31, 90, "so far")
        async with world.subscribed(
            side, threads=["th1"], deltas=False, rows=[row]
        ) as events:
            first = await anext(events)
            assert isinstance(first, Resumed)
            assert (first.verdict, first.epoch, first.head) == ("new", "e1", 100)
            assert [one.wire()["ref"] for one in first.open] == [31]
    assert world.asked == [{"threads": ["th1"], "deltas": False}]


async def test_events_in_the_same_write_as_the_answer_are_not_lost() -> None:
    async with connected() as world:
        side = await world.session()
        async with world.subscribed(side, then=[notice(101), notice(102)]) as events:
            await anext(events)
            assert await seqs(events, 2) == [101, 102]


async def test_a_lost_connection_goes_on_from_the_cursor(
    autojump_clock: MockClock,
) -> None:
    async with connected() as world:
        side = await world.session()
        async with world.subscribed(side) as events:
            await anext(events)
            await side.tell(notice(101), notice(102))
            await wait_all_tasks_blocked()
            side.channel.cut()
            side = await world.session()
            asked = await side.subscribed(
                verdict="ok", head=104, then=[notice(103), notice(104)]
            )
            assert asked["resume"] == {"epoch": "e1", "seq": 102}
            assert await seqs(events, 2) == [101, 102]
            resumed = await anext(events)
            assert isinstance(resumed, Resumed)
            assert resumed.verdict == "ok"
            assert await seqs(events, 2) == [103, 104]


async def test_a_gap_after_a_loss_is_told_with_the_open_items(
    autojump_clock: MockClock,
) -> None:
    async with connected() as world:
        side = await world.session()
        async with world.subscribed(side, rows=[opened(1, 90, "old")]) as events:
            await anext(events)
            side.channel.cut()
            side = await world.session()
            await side.subscribed(
                verdict="gap",
                head=5_000,
                epoch="e2",
                opened=[opened(9, 4_900, "so far")],
                then=[{"d": [5_001, 1, 0, 0, "no"]}, {"d": [5_002, 9, 0, 0, "more"]}],
            )
            resumed = await anext(events)
            assert isinstance(resumed, Resumed)
            assert (resumed.verdict, resumed.epoch, resumed.head) == (
                "gap",
                "e2",
                5_000,
            )
            delta = await anext(events)
            assert isinstance(delta, DeltaSeen)
            assert (delta.ref, delta.text) == (9, "more")


async def test_a_pong_moves_the_cursor(autojump_clock: MockClock) -> None:
    async with connected() as world:
        side = await world.session()
        async with world.subscribed(side) as events:
            await anext(events)
            ping = await side.channel.receive()
            await side.tell({"pong": ping["ping"], "seq": 140, "now": 1})
            await wait_all_tasks_blocked()
            side.channel.cut()
            side = await world.session()
            asked = await side.subscribed(verdict="ok", head=140)
    assert asked["resume"]["seq"] == 140


async def test_a_slow_consumer_loses_and_doubles_nothing() -> None:
    last = 100 + EVENTS_HELD + 500
    async with connected() as world:
        side = await world.session()
        async with world.subscribed(side) as events, trio.open_nursery() as nursery:
            await anext(events)
            for seq in range(101, last + 1):
                await side.tell(notice(seq))
            await wait_all_tasks_blocked()

            async def go_on() -> None:
                rest = range(100 + EVENTS_HELD + 1, last + 1)
                asked = await side.subscribed(
                    verdict="ok", head=last, then=[notice(seq) for seq in rest]
                )
                assert asked["resume"]["seq"] == 100 + EVENTS_HELD

            nursery.start_soon(go_on)
            assert await seqs(events, EVENTS_HELD) == list(
                range(101, 101 + EVENTS_HELD)
            )
            resumed = await anext(events)
            assert isinstance(resumed, Resumed)
            assert await seqs(events, 500) == list(range(101 + EVENTS_HELD, last + 1))


async def test_a_consumer_may_call_while_events_pile_up() -> None:
    async with connected() as world:
        side = await world.session()
        async with world.subscribed(side) as events, trio.open_nursery() as nursery:
            await anext(events)

            async def flood_then_answer() -> None:
                for seq in range(101, 101 + 3 * EVENTS_HELD):
                    await side.tell(notice(seq))
                await side.answer(await side.request("gateway/status"), STATUS)

            nursery.start_soon(flood_then_answer)
            with trio.fail_after(5):
                await world.client.call(GATEWAY_STATUS, GatewayStatusParams())


async def test_a_full_queue_outlives_a_lost_connection(
    autojump_clock: MockClock,
) -> None:
    async with connected() as world:
        side = await world.session()
        async with world.subscribed(side) as events, trio.open_nursery() as nursery:
            await anext(events)
            for seq in range(101, 102 + EVENTS_HELD):
                await side.tell(notice(seq))
            await wait_all_tasks_blocked()
            side.channel.cut()
            side = await world.session()
            with trio.move_on_after(1) as nothing:  # there is no room for an answer yet
                await side.channel.receive()
            assert nothing.cancelled_caught
            await seqs(events, EVENTS_HELD)
            nursery.start_soon(anext, events)
            asked = await side.subscribed(verdict="ok", head=101 + EVENTS_HELD)
            assert asked["resume"]["seq"] == 100 + EVENTS_HELD


async def test_leaving_a_subscription_ends_it_at_the_agent_and_another_may_follow() -> (
    None
):
    async with connected() as world:
        side = await world.session()
        async with world.subscribed(side) as events:
            await anext(events)
            with pytest.raises(LocalProtocolError):
                async with world.client.subscribe("all"):
                    pass
        asked = await side.subscribed()
        assert asked == {"threads": [], "deltas": False}
        await side.tell(notice(101))
        async with world.subscribed(side, then=[notice(102)]) as events:
            await anext(events)
            assert await seqs(events, 1) == [102]
    assert "resume" not in world.asked[1]


async def test_a_refused_subscription_is_raised() -> None:
    async with connected() as world:
        side = await world.session()
        async with trio.open_nursery() as nursery:

            async def refuse() -> None:
                await side.refuse(await side.request("events/subscribe"), "forbidden")

            nursery.start_soon(refuse)
            with pytest.raises(Forbidden):
                async with world.client.subscribe("all"):
                    pass


async def test_a_subscription_that_is_refused_on_return_ends_by_raising(
    autojump_clock: MockClock,
) -> None:
    async with connected() as world:
        side = await world.session()
        async with world.subscribed(side) as events:
            await anext(events)
            await side.tell(notice(101))
            await wait_all_tasks_blocked()
            side.channel.cut()
            side = await world.session()
            await side.refuse(await side.request("events/subscribe"), "forbidden")
            assert await seqs(events, 1) == [101]
            with pytest.raises(Forbidden):
                await anext(events)


async def test_a_subscription_that_is_refused_for_now_on_return_is_asked_for_again(
    autojump_clock: MockClock,
) -> None:
    async with connected() as world:
        side = await world.session()
        async with world.subscribed(side, then=[notice(101)]) as events:
            await anext(events)
            assert await seqs(events, 1) == [101]
            side.channel.cut()
            side = await world.session()
            start = trio.current_time()
            for wait_ms in (3_000, 5_000):
                request = await side.request("events/subscribe")
                await side.refuse(
                    request, "codexUnavailable", retryable=True, retryAfterMs=wait_ms
                )
            params = await side.subscribed(verdict="ok", then=[notice(102)])
            assert trio.current_time() - start == pytest.approx(8)
            assert params["resume"] == {"epoch": "e1", "seq": 101}
            await anext(events)
            assert await seqs(events, 1) == [102]


async def test_what_is_asked_for_again_is_left_to_the_next_connection_where_there_is_one(
    autojump_clock: MockClock,
) -> None:
    async with connected() as world:
        side = await world.session()
        async with world.subscribed(side) as events:
            await anext(events)
            await side.tell(*(notice(101 + number) for number in range(EVENTS_HELD)))
            await wait_all_tasks_blocked()
            await seqs(events, EVENTS_HELD)

            async def play() -> None:
                request = await side.request("events/subscribe")
                await side.refuse(
                    request, "overloaded", retryable=True, retryAfterMs=9_000
                )
                await wait_all_tasks_blocked()
                side.channel.cut()
                following = await world.session()
                await following.subscribed(verdict="ok", then=[notice(5_000)])
                await trio.sleep(20)
                await following.tell(notice(5_001))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(play)
                assert isinstance(await anext(events), Resumed)
                with trio.fail_after(60):
                    assert await seqs(events, 2) == [5_000, 5_001]


async def test_a_subscription_that_is_left_is_not_asked_for_again(
    autojump_clock: MockClock,
) -> None:
    async with connected() as world:
        side = await world.session()
        async with world.subscribed(side) as events:
            await anext(events)
            side.channel.cut()
            side = await world.session()
            request = await side.request("events/subscribe")
            await side.refuse(request, "overloaded", retryable=True)
            await wait_all_tasks_blocked()
        assert (await side.request("events/subscribe"))["params"]["threads"] == []
        async with world.subscribed(side, then=[notice(102)]) as events:
            await anext(events)
            await trio.sleep(10)
            assert await seqs(events, 1) == [102]
            async with trio.open_nursery() as nursery:
                call = world.client.call
                nursery.start_soon(call, GATEWAY_STATUS, GatewayStatusParams())
                await side.answer(await side.request("gateway/status"), STATUS)


async def test_a_revoked_device_sees_what_came_and_then_why(
    autojump_clock: MockClock,
) -> None:
    async with connected() as world:
        side = await world.session()
        async with world.subscribed(side, then=[notice(101)]) as events:
            await anext(events)
            await side.channel.aclose(CloseCode.REVOKED)
            await wait_all_tasks_blocked()
            assert await seqs(events, 1) == [101]
            with pytest.raises(PeerClosedError):
                await anext(events)
            with pytest.raises(PeerClosedError):
                await anext(events)


async def test_a_subscription_begun_without_a_connection_waits_for_one(
    autojump_clock: MockClock,
) -> None:
    async with connected() as world:
        world.agent.unreachable = 3
        (await world.session()).channel.cut()
        await wait_all_tasks_blocked()
        async with trio.open_nursery() as nursery:

            async def answer() -> None:
                await (await world.session()).subscribed()

            nursery.start_soon(answer)
            async with world.client.subscribe("all") as events:
                first = await anext(events)
    assert isinstance(first, Resumed)
    assert first.verdict == "new"


async def test_an_answer_that_is_none_is_a_loss_and_events_go_on(
    autojump_clock: MockClock,
) -> None:
    async with connected() as world:
        side = await world.session()
        async with world.subscribed(side) as events:
            await anext(events)
            news = [notice(101 + number) for number in range(EVENTS_HELD)]
            await side.tell(*news)
            await wait_all_tasks_blocked()
            assert (await seqs(events, EVENTS_HELD))[-1] == 100 + EVENTS_HELD

            async def answer() -> None:
                await side.answer(await side.request("events/subscribe"), {})
                following = await world.session()
                await following.subscribed(verdict="ok", then=[notice(5_000)])

            async with trio.open_nursery() as nursery:
                nursery.start_soon(answer)
                with trio.fail_after(60):
                    assert isinstance(await anext(events), Resumed)
                    assert await seqs(events, 1) == [5_000]


async def test_a_busy_consumer_lets_others_run() -> None:
    async with connected() as world:
        side = await world.session()
        many = [notice(seq) for seq in range(101, 301)]
        async with world.subscribed(side, then=many) as events:
            await wait_all_tasks_blocked()
            turns = 0

            async def count() -> None:
                nonlocal turns
                while True:
                    turns += 1
                    await trio.lowlevel.checkpoint()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(count)
                seen = [await anext(events) for _ in range(201)]
                nursery.cancel_scope.cancel()
    assert isinstance(seen[-1], EventSeen)
    assert turns >= 4
