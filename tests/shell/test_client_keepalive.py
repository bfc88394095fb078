"""The client's keepalive: pings, their answers, and a connection that is dead."""

import trio
from trio.testing import MockClock

from tests.support.memory_agent import FakeAgent
from tests.support.memory_client import connected


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
