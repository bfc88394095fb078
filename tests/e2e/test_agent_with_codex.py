"""The whole chain: a paired device over TCP, an Agent, and the real codex."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trio

from agent.app import Running, run_agent
from clients.cli.scripted_answers import Rule
from tests.support.agents import (
    Device,
    House,
    client_info,
    make_config,
    pair_device,
)
from tests.support.codex import BUNDLED, CodexHome, codex_binaries, open_codex_home
from tests.support.door import FakeWatch
from tests.support.fake_runtime import FakeRuntime
from transport.background import open_background
from transport.client import DeltaSeen, EventSeen, Resumed, open_client
from transport.protocol import threads, turns
from transport.protocol.events import ItemCompleted, TurnCompleted
from transport.protocol.items import AgentMessage
from transport.protocol.methods import THREAD_READ, THREAD_START, TURN_START
from transport.protocol.turns import TextInput, TurnStatus

pytestmark = pytest.mark.codex
ANSWER = "The harbour has two tide tables; the newer one is right."
RULES = (
    Rule("right?", [[{"msg": ANSWER, "delay": 0.01}]]),
    Rule("Sure?", [[{"msg": "Yes."}]]),
)


@asynccontextmanager
async def open_house(home: CodexHome) -> AsyncGenerator[House]:
    binary = codex_binaries()[BUNDLED]
    config = make_config(
        home.home.parent,
        codex=str(binary),
        codex_home=home.home,
        roots=[str(home.workspace)],
    )

    async def run(*, task_status: trio.TaskStatus[Running]) -> None:
        await run_agent(config, harden=False, task_status=task_status)

    async with open_background(run) as running:
        yield House(
            running=running, runtime=FakeRuntime(), watch=FakeWatch(), config=config
        )


async def follow(
    house: House,
    device: Device,
    instance: str,
    texts: list[str],
    *,
    task_status: trio.TaskStatus[None],
) -> None:
    """Follow until a turn ends; its deltas and its message, whole, go to `texts`."""
    info = client_info(instance=instance * 32)
    said = ""
    async with (
        open_client(house.target(device), info) as client,
        client.subscribe("all") as events,
    ):
        async for event in events:
            match event:
                case Resumed():
                    task_status.started()
                case DeltaSeen():
                    said += event.text
                case EventSeen(data=ItemCompleted(item=AgentMessage() as done)):
                    texts += [said, done.text]
                case EventSeen(data=TurnCompleted(turn=turn)):
                    assert turn.status is TurnStatus.COMPLETED
                    return
                case _:
                    pass


async def test_a_device_starts_a_thread_and_two_devices_watch_it_answer() -> None:
    with trio.fail_after(240):
        async with (
            open_codex_home(*RULES) as home,
            open_house(home) as house,
        ):
            writer = await pair_device(house, scopes=["read", "write"])
            reader = await pair_device(house, name="tablet")
            texts: list[str] = []
            async with open_client(house.target(writer), client_info()) as client:
                start = threads.ThreadStartParams(
                    cwd=str(home.workspace),
                    input=[TextInput(type="text", text="Which table is right?")],
                    request_key="s" * 32,
                    wait_ms=20_000,
                )
                async with trio.open_nursery() as nursery:
                    await nursery.start(follow, house, writer, "a", texts)
                    await nursery.start(follow, house, reader, "b", texts)
                    started = await client.call(THREAD_START, start)
                assert texts == [ANSWER] * 4
                thread_id = started.thread.id
                again = turns.TurnStartParams(
                    thread_id=thread_id,
                    input=[TextInput(type="text", text="Sure?")],
                    expected_last_turn_id=started.turn.id,
                    request_key="t" * 32,
                    wait_ms=20_000,
                )
                await client.call(TURN_START, again)
                read = await client.call(
                    THREAD_READ, threads.ThreadReadParams(thread_id=thread_id)
                )
                assert len(read.turns) == 2
