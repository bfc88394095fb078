"""An Agent beside a thread that another program has made, on a real codex."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from clients.cli.scripted_model import Rule
from tests.support.codex import CodexHome, codex_binaries, open_codex_home
from tests.support.foreign import open_foreign
from tests.support.real_agent import open_local, open_real_agent
from transport.client import Client
from transport.protocol import threads
from transport.protocol.methods import THREAD_READ
from transport.protocol.turns import Turn


async def texts_of(home: CodexHome) -> list[str]:
    """Return what people said, in each request of the model its last."""
    return [one.user_texts[-1] for one in home.model.requests]


async def newest(client: Client, thread: str) -> Turn:
    """Return the thread's newest turn."""
    read = threads.ThreadReadParams(thread_id=thread, turns=1)
    return (await client.call(THREAD_READ, read)).turns[0]


@asynccontextmanager
async def open_house(
    version: str, *rules: Rule, **settings: Any
) -> AsyncGenerator[tuple[CodexHome, Client, str]]:
    """Run an Agent beside a thread with one turn that nobody has loaded."""
    async with open_codex_home(*rules) as home:
        codex = codex_binaries()[version]
        async with open_foreign(codex, home.environ) as first:
            thread = await first.start_thread(home.workspace, "theirs")
        async with (
            open_real_agent(home, version=version, **settings) as house,
            open_local(house) as client,
        ):
            yield home, client, thread
