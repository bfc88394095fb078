"""A client whose Agent the test plays (`memory_agent`), and its calls in other tasks."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import trio

from tests.support.memory_agent import AgentSide, FakeAgent
from transport.client import Client, LinkState
from transport.protocol.gateway import GatewayStatusParams
from transport.protocol.methods import (
    GATEWAY_STATUS,
)
from transport.protocol.session import ClientInfo
from transport.protocol.turns import TurnStartParams

INFO = ClientInfo(name="test", version="1.0", platform="linux", instance="f" * 32)
TURN = TurnStartParams.model_validate(
    {
        "threadId": "th1",
        "input": [{"type": "text", "text": "go on"}],
        "requestKey": "k" * 16,
    }
)


@dataclass
class World:
    """A client and the Agent that the test plays."""

    client: Client
    agent: FakeAgent
    links: list[LinkState]
    nursery: trio.Nursery

    async def session(self) -> AgentSide:
        """Return the next session that the client has opened."""
        return await self.agent.sessions.receive()

    def start(self, call: Any, *args: Any, **named: Any) -> "Outcome":
        """Begin a call in a task of its own."""
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
        """Make the call, and keep what it came to."""
        try:
            self.result = await call(*args, **named)
        except Exception as exc:  # noqa: BLE001 - the test looks at it
            self.error = exc
        self.done.set()

    async def wait(self) -> Any:
        """Return the result, or raise the error, when it is there."""
        await self.done.wait()
        if self.error is not None:
            raise self.error
        return self.result


@asynccontextmanager
async def connected(agent: FakeAgent | None = None) -> AsyncGenerator[World]:
    """Run a client and its Agent for the length of the block."""
    agent = agent or FakeAgent()
    links: list[LinkState] = []
    client = Client(agent.dial, INFO, links.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(agent.serve)
        await nursery.start(client.serve)
        yield World(client, agent, links, nursery)
        nursery.cancel_scope.cancel()


def status(world: World, **named: Any) -> Outcome:
    """Begin a gateway/status."""
    call = world.client.call
    return world.start(call, GATEWAY_STATUS, GatewayStatusParams(), **named)
