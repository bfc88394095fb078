"""Turns of a real codex, each of which stops at a stage at which a test kills its writer."""

import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import trio

from clients.cli.scripted_model import Rule
from tests.support.agents import House, client_info
from tests.support.codex import CodexHome, open_codex_home
from tests.support.faulty_codex import Ear
from tests.support.real_agent import open_local, open_real_agent
from tests.support.served_agent import app_servers
from transport.background import open_background
from transport.client import Client, open_client
from transport.protocol import threads
from transport.protocol.events import (
    ApprovalRequested,
    ItemCompleted,
    ItemStarted,
    TurnStarted,
)
from transport.protocol.items import AgentMessage, Command
from transport.protocol.methods import THREAD_START
from transport.protocol.turns import TextInput

SLEEP = "sleep 977"  # a command that must not outlive anybody


def command(text: str = SLEEP, **more: object) -> dict[str, object]:
    """Return a call that runs a command."""
    args = {"cmd": text, "yield_time_ms": 30_000, **more}
    return {"call": "exec_command", "args": args}


ASKING = command(sandbox_permissions="require_escalated", justification="why")
RULES = (
    Rule("at once", [[{"hold": "anything"}]]),
    Rule("silent", [[{"hold": "all"}]]),
    Rule("in the middle", [[{"partial": "some words that"}, {"hold": "the rest"}]]),
    Rule("needs a yes", [[ASKING]]),
    Rule("runs long", [[command()]]),
    Rule("nearly done", [[{"msg": "all of it"}, {"hold": "the end"}]]),
    Rule("in the background", [[command(f"{SLEEP} & sleep 0.1; echo up; wait")]]),
    Rule("to stay", [[command(f"setsid {SLEEP} & sleep 0.1; echo up; wait")]]),
)


@asynccontextmanager
async def open_ear(house: House) -> AsyncGenerator[Ear]:
    """Open another session, that only listens."""
    ear = Ear()
    info = client_info("ear", "e" * 32)
    async with (
        open_client(house.admin, info) as client,
        open_background(partial(ear.listen, client)),
    ):
        yield ear


@asynccontextmanager
async def open_stage(
    version: str,
) -> AsyncGenerator[tuple[CodexHome, Client, Ear, int]]:
    """Run an Agent on a real codex: its owner, another session, and the reader's pid."""
    async with (
        open_codex_home(*RULES) as home,
        open_real_agent(home, version=version) as house,
        open_local(house) as client,
        open_ear(house) as ear,
    ):
        (reader,) = app_servers(os.getpid())
        yield home, client, ear, reader


async def new_thread(client: Client, home: CodexHome, text: str = "hello") -> str:
    """Start a thread with this message; return its id."""
    params = threads.ThreadStartParams(
        cwd=str(home.workspace),
        input=[TextInput(type="text", text=text)],
        request_key="n" * 32,
        wait_ms=20_000,  # a foreign codex may just say its version
    )
    started = await client.call(THREAD_START, params, timeout_s=60)
    return started.thread.id


async def wait_stored(home: CodexHome, text: str) -> None:
    """Return when Codex has written a message of that text to its thread's file."""
    files, line = home.home / "sessions", f'"text":"{text}"'
    while not any(line in file.read_text() for file in files.rglob("*.jsonl")):  # noqa: ASYNC110 - nothing tells of a file
        await trio.sleep(0.05)


def writers(reader: int) -> list[int]:
    """Return our app-servers but the reader."""
    return [pid for pid in app_servers(os.getpid()) if pid != reader]


def spoke(ear: Ear) -> bool:
    """Whether the model has begun to say something."""
    return "some" in ear.text


def _asked(ear: Ear) -> bool:
    return bool(ear.data(ApprovalRequested))


def _works(ear: Ear) -> bool:
    return any(isinstance(one.item, Command) for one in ear.data(ItemStarted))


def _began(ear: Ear) -> bool:
    return len(ear.data(TurnStarted)) > 1


def _said(ear: Ear) -> bool:
    done = [one.item for one in ear.data(ItemCompleted)]
    return any(isinstance(item, AgentMessage) and "all" in item.text for item in done)


STAGES: Final[dict[str, tuple[Callable[[Ear], bool], signal.Signals]]] = {
    "at once": (_began, signal.SIGKILL),
    "silent": (_began, signal.SIGKILL),
    "in the middle": (spoke, signal.SIGTERM),
    "needs a yes": (_asked, signal.SIGKILL),
    "runs long": (_works, signal.SIGABRT),
    "nearly done": (_said, signal.SIGKILL),
}
"""What a message makes happen: how one sees that it has, and the signal that comes then."""
