"""All descriptors of an Agent are used by connections that say nothing."""

import os
import signal
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from typing import TypeVar

import pytest
import trio

from agent.edge_limits import OWNER_SPARES
from tests.support.agents import client_info
from tests.support.codex import CodexHome, open_codex_home
from tests.support.real_agent import (
    send_params,
    send_to_end,
    status,
    wait_gate,
    wait_lease,
)
from tests.support.served_agent import (
    ServedAgent,
    children,
    open_owner_of,
    open_served_agent,
)
from transport.background import open_background
from transport.client import Client, open_client
from transport.errors import CodexUnavailable, Refusal
from transport.protocol import threads
from transport.protocol.base import WireModel
from transport.protocol.gateway import (
    GatePosition,
    GateReason,
    LeaseState,
    RuntimePhase,
)
from transport.protocol.methods import THREAD_LIST, THREAD_START, TURN_START
from transport.protocol.turns import TextInput

R = TypeVar("R", bound=WireModel)
pytestmark = pytest.mark.codex
LIMIT = 64  # open files: the Agent at rest has fewer than 50
STRANGERS = 60  # each is hung up on after 2 s, and comes back
DOORS = """
[doors]
half_open = 1024
handshakes_per_second_total = 10000
"""
IDLE = "idle_s = 1\n"
LIMITED = ("sh", "-c", f'ulimit -n {LIMIT}; exec "$@"', "sh")
TRIES = 4  # no next one, the next one after its death, after two that failed
SOON_S = 20  # for the owner at the door; a busy machine included


def open_files(agent: ServedAgent) -> int:
    return len(os.listdir(f"/proc/{agent.process.pid}/fd"))


@asynccontextmanager
async def strangers(agent: ServedAgent) -> AsyncGenerator[None]:
    """Keep so many connections at the devices' door that no descriptor is left."""
    path = agent.state / "run" / "agent.sock"

    async def one() -> None:
        while True:
            try:
                async with await trio.open_unix_socket(str(path)) as stream:
                    await stream.receive_some(1)
            except (OSError, trio.BrokenResourceError):
                await trio.lowlevel.checkpoint()  # the queue of who knocks is full, too

    async def crowd(*, task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(STRANGERS):
                nursery.start_soon(one)
            task_status.started()

    async with open_background(crowd):
        yield


@asynccontextmanager
async def open_home() -> AsyncGenerator[CodexHome]:
    """A home whose Agent lets in as many strangers as come."""
    async with open_codex_home() as home:
        config = home.home.parent / "threadgate.toml"
        config.write_text(f'roots = ["{home.workspace}"]\n{IDLE}{DOORS}')
        yield home


async def said(call: Awaitable[R]) -> R | Refusal:
    """Return an answer or a refusal."""
    try:
        return await call
    except Refusal as refusal:
        return refusal


async def new_thread(client: Client, home: CodexHome) -> str:
    params = threads.ThreadStartParams(
        cwd=str(home.workspace),
        input=[TextInput(type="text", text="hello")],
        request_key="n" * 32,
        wait_ms=20_000,
    )
    return (await client.call(THREAD_START, params, timeout_s=60)).thread.id


async def test_an_agent_without_descriptors_closes_the_gate_and_is_well_afterwards() -> (
    None
):
    with trio.fail_after(240):
        async with (
            open_home() as home,
            open_served_agent(home, before=LIMITED) as agent,
            open_owner_of(agent) as owner,
        ):
            thread = await new_thread(owner, home)
            await wait_lease(owner, thread, LeaseState.NONE)
            rest = open_files(agent)
            assert rest < LIMIT - 10
            async with strangers(agent):
                while open_files(agent) < LIMIT:
                    await trio.lowlevel.checkpoint()
                await wait_gate(owner, GatePosition.READ_ONLY)
                gate = (await status(owner)).gate
                assert gate.reason is GateReason.WRITER_WITHOUT_LOCK
                assert gate.writer is None
                # What was open goes on; what would write says why not.
                page = await owner.call(THREAD_LIST, threads.ThreadListParams())
                assert [one.id for one in page.threads] == [thread]
                params = send_params(thread, "once", key="once", wait_ms=0)
                refused = await said(owner.call(TURN_START, params))
                assert isinstance(refused, CodexUnavailable)
                assert refused.retryable
                # The reader dies, and cannot be started: that is said, too.
                for reader in agent.app_servers():
                    os.kill(reader, signal.SIGKILL)
                for _ in range(OWNER_SPARES):
                    with trio.fail_after(SOON_S):
                        info = client_info("another", os.urandom(16).hex())
                        async with open_client(agent.admin, info) as another:
                            assert (await status(another)).sessions
                    read = await said(
                        owner.call(THREAD_LIST, threads.ThreadListParams())
                    )
                    assert not isinstance(read, Refusal) or read.retryable
                tries = set[int | None]()
                while len(tries) < TRIES:  # unless it found enough of them
                    runtime = (await status(owner)).runtime
                    if runtime.state is RuntimePhase.READY and tries:
                        break
                    tries.add(runtime.next_try_at)
                assert agent.process.returncode is None
            while (await status(owner)).runtime.state is not RuntimePhase.READY:
                pass
            await wait_gate(owner, GatePosition.OPEN)
            await send_to_end(owner, thread, "once", key="once")
            asked = [one.user_texts[-1] for one in home.model.requests]
            assert asked == ["hello", "once"]
            await wait_lease(owner, thread, LeaseState.NONE)
            assert open_files(agent) <= rest
            assert children(agent.process.pid) == agent.app_servers()
            assert len(agent.app_servers()) == 1
