"""Threads as long as wanted on a home of a real codex, and an Agent that reads them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

from agent.clocks import wall_ms
from clients.cli.scripted_answers import Rule
from tests.support.agents import House
from tests.support.codex import CodexHome, codex_binaries, open_codex_home
from tests.support.door import FakeWatch
from tests.support.foreign import open_foreign
from tests.support.real_agent import open_local, open_real_agent
from tests.support.rollouts import Recording, take_in
from transport.client import Client

VERSIONS: Final = [v for v in ("0.163.0", "0.171.0") if v in codex_binaries()]
MB: Final = 1024 * 1024
RUN: Final = {"cmd": "seq 1 20", "yield_time_ms": 30_000, "max_output_tokens": 20}
RULES: Final = (
    Rule(
        "Count.",
        [[{"call": "exec_command", "args": RUN}], [{"msg": "Counted in the harbour."}]],
    ),
)


@asynccontextmanager
async def recorded(version: str) -> AsyncGenerator[tuple[CodexHome, Recording]]:
    """Open a home in which a real codex has recorded a thread of three turns."""
    async with open_codex_home(*RULES) as home:
        async with open_foreign(codex_binaries()[version], home.environ) as codex:
            thread_id = await codex.start_thread(home.workspace, "Hello.")
            await codex.turn(thread_id, "Count.")
            await codex.turn(thread_id, "Hello again.")
        yield home, Recording.of(home.home, thread_id)


@asynccontextmanager
async def house(home: CodexHome, version: str) -> AsyncGenerator[tuple[House, Client]]:
    """Run an Agent on that home, and connect at the workstation's own door."""
    async with (
        open_real_agent(home, version=version, watch=FakeWatch()) as built,
        open_local(built) as client,
    ):
        yield built, client


async def clone(
    home: CodexHome, version: str, recording: Recording, **wanted: Any
) -> str:
    """Write a clone that began so long ago that it ends now, and have it taken in."""
    count = wanted.get("turns") or len(recording.turns)
    began = wall_ms() - count * 60_000
    thread_id = recording.write(home.home, at_ms=began, **wanted)
    async with open_foreign(codex_binaries()[version], home.environ) as codex:
        await take_in(codex, thread_id)
    return thread_id


def enlarged(size: int) -> Any:
    """Make every answer and every command's output of a clone that long."""

    def change(payload: dict[str, Any]) -> None:
        item = payload.get("item", {})
        if item.get("type") == "AgentMessage":
            item["content"] = [{"type": "Text", "text": "lorem ip" * (size // 8)}]
        if item.get("type") == "CommandExecution":
            item["aggregated_output"] = "0123456\n" * (size // 8)

    return change
