"""An Agent whose codex is killed right behind an answer, and what is made there."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from adapter.codex import CodexRuntime
from adapter.processes.binary import Codex
from agent.clocks import wall_ms
from tests.support.codex import CodexHome, codex_binaries, open_codex_home
from tests.support.foreign import open_foreign
from tests.support.killing_codex import place_killing
from tests.support.real_agent import open_local, open_real_agent, status, wait_lease
from tests.support.real_threads import key
from transport.client import Client
from transport.errors import Conflict, NotFound, OutcomeUnknown
from transport.protocol import thread_acts, threads
from transport.protocol.gateway import LeaseState
from transport.protocol.methods import THREAD_DELETE, THREAD_FORK, THREAD_START
from transport.protocol.turns import TextInput


@asynccontextmanager
async def open_killing(
    version: str,
) -> AsyncGenerator[tuple[CodexHome, Client, str, Path]]:
    """Run an Agent whose codex can be killed right behind an answer."""
    async with open_codex_home() as home:
        codex = codex_binaries()[version]
        async with open_foreign(codex, home.environ) as first:
            thread = await first.start_thread(home.workspace, "theirs")
        folder = home.home.parent / "killing"
        runtime = CodexRuntime(
            codex=place_killing(folder, Codex(path=codex, version=version)),
            home=home.home,
            records=folder / "processes",
            now_ms=wall_ms,
        )
        async with (
            open_real_agent(home, version=version, runtime=runtime, idle_s=1) as house,
            open_local(house) as client,
        ):
            yield home, client, thread, folder


async def wait_reaped(client: Client, thread: str) -> None:
    """Return when no writer of ours has the thread, or any."""
    await wait_lease(client, thread, LeaseState.NONE)
    while (await status(client)).leases:
        pass  # a new thread's, whose id is not known


async def make(home: CodexHome, client: Client, thread: str, method: str) -> str:
    """Make a thread or a fork under its one key; return its id."""
    given: list[Any] = [TextInput(type="text", text="made")]
    if method == "thread/fork":
        fork = thread_acts.ThreadForkParams(
            thread_id=thread, input=given, request_key=key("made"), wait_ms=20_000
        )
        return (await client.call(THREAD_FORK, fork, timeout_s=60)).thread.id
    new = threads.ThreadStartParams(
        cwd=str(home.workspace), input=given, request_key=key("made"), wait_ms=20_000
    )
    return (await client.call(THREAD_START, new, timeout_s=60)).thread.id


async def outcome(home: CodexHome, client: Client, thread: str, method: str) -> str:
    """Make it, and return its id, also where its outcome is unknown."""
    try:
        return await make(home, client, thread, method)
    except OutcomeUnknown as unknown:
        return str(unknown.data["threadId"])


async def delete(client: Client, thread: str) -> None:
    """Delete a thread when nothing runs in it; a ghost may not be there at all.

    Forks of it that nobody knows would keep it for ever.
    """
    params = thread_acts.ThreadDeleteParams(
        thread_id=thread, request_key=key(f"delete{thread[-8:]}"), wait_ms=20_000
    )
    while True:
        try:
            with suppress(NotFound):
                await client.call(THREAD_DELETE, params, timeout_s=60)
        except Conflict as refusal:
            if refusal.data["what"] != "running":  # else it is being answered
                raise
        else:
            return
