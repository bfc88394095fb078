"""A whole Agent on the real codex, for the length of a block."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from adapter.runtime.runtime import Runtime
from agent.app import Running, run_agent
from agent.gate.writers import Watch
from tests.support.agents import House, client_info, make_config
from tests.support.codex import BUNDLED, CodexHome, codex_binaries
from tests.support.door import FakeWatch
from tests.support.fake_runtime import FakeRuntime
from transport.background import open_background
from transport.client import Client, EventSeen, Resumed, open_client
from transport.protocol import threads, turns
from transport.protocol.events import TurnCompleted
from transport.protocol.gateway import (
    GatePosition,
    GatewayStatus,
    GatewayStatusParams,
    LeaseState,
)
from transport.protocol.methods import GATEWAY_STATUS, THREAD_LIST, TURN_START
from transport.protocol.turns import TextInput, Turn


@asynccontextmanager
async def open_real_agent(
    home: CodexHome,
    *,
    version: str = BUNDLED,
    watch: Watch | None = None,
    runtime: Runtime | None = None,
    **settings: Any,
) -> AsyncGenerator[House]:
    """Run an Agent whose codex is the real one, on this CODEX_HOME.

    `runtime`: another one than that version's own file.
    """
    config = make_config(
        home.home.parent,
        codex=str(codex_binaries()[version]),
        codex_home=home.home,
        roots=[str(home.workspace)],
        **settings,
    )

    async def run(*, task_status: trio.TaskStatus[Running]) -> None:
        await run_agent(
            config,
            runtime=runtime,
            watch=watch,
            harden=False,
            task_status=task_status,
        )

    async with open_background(run) as running:
        yield House(
            running=running, runtime=FakeRuntime(), watch=FakeWatch(), config=config
        )


@asynccontextmanager
async def open_local(house: House) -> AsyncGenerator[Client]:
    """Connect at the workstation's own door: all scopes, no ceiling."""
    async with open_client(house.admin, client_info("local", "l" * 32)) as client:
        yield client


def send_params(
    thread_id: str, text: str, *, key: str, wait_ms: int = 20_000, **more: Any
) -> turns.TurnStartParams:
    """Return a `turn/start`; `key` is filled up to a request key's length.

    It may wait a moment for the gate: a foreign engine that has just started counts as
    one without locks until it has said its version. No wait where a refusal is tested.
    """
    return turns.TurnStartParams(
        thread_id=thread_id,
        input=[TextInput(type="text", text=text)],
        request_key=key.ljust(32, "-"),
        wait_ms=wait_ms,
        **more,
    )


async def send_to_end(
    client: Client, thread_id: str, text: str, *, key: str, wait_ms: int = 20_000
) -> Turn:
    """Start a turn and return it when it has ended; it may wait as in `send_params`."""
    async with client.subscribe("all", deltas=False) as events:
        async for event in events:
            if isinstance(event, Resumed):
                break
        params = send_params(thread_id, text, key=key, wait_ms=wait_ms)
        started = await client.call(TURN_START, params, timeout_s=60)
        async for event in events:
            match event:
                case EventSeen(data=TurnCompleted(turn=turn)):
                    if turn.id == started.sent.id:
                        return turn
                case _:
                    pass
    raise AssertionError("the subscription ended before the turn")


async def status(client: Client) -> GatewayStatus:
    """Return `gateway/status`."""
    return await client.call(GATEWAY_STATUS, GatewayStatusParams())


async def wait_gate(client: Client, position: GatePosition) -> None:
    """Return when the gate stands so."""
    while (await status(client)).gate.state is not position:
        pass  # each status is a round trip


async def wait_lease(client: Client, thread_id: str, state: LeaseState) -> None:
    """Return when the thread's lease is in that state; `none` is not listed."""
    while True:
        leases = {row.thread_id: row.state for row in (await status(client)).leases}
        if leases.get(thread_id, LeaseState.NONE) is state:
            return


async def thread_ids(client: Client) -> list[str]:
    """Return the ids of the first page of threads."""
    page = await client.call(THREAD_LIST, threads.ThreadListParams())
    return [thread.id for thread in page.threads]


def lock_files(home: Path) -> list[str]:
    """Return the threads whose Codex lock some process holds now."""
    folder = home / "thread-writer-locks"
    inodes = {path.stat().st_ino: path.stem for path in folder.glob("*.lock")}
    held: list[str] = []
    for line in Path("/proc/locks").read_text().splitlines():
        fields = line.split()
        if "->" not in fields and fields[1] == "FLOCK":
            thread = inodes.get(int(fields[5].rpartition(":")[2]))
            if thread is not None:
                held.append(thread)
    return held
