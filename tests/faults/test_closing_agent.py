"""An Agent that is told to stop, at a bad moment: it stops soon, and leaves nothing."""

import signal
from pathlib import Path

import pytest
import trio

from clients.cli.scripted_model import Rule
from tests.support.codex import CodexHome, open_codex_home
from tests.support.leftovers import marked_processes
from tests.support.real_agent import lock_files
from tests.support.served_agent import ServedAgent, open_owner_of, open_served_agent
from transport.protocol import threads
from transport.protocol.methods import THREAD_START
from transport.protocol.turns import TextInput

pytestmark = pytest.mark.codex
HELD = Rule("never ends", [[{"hold": "the answer"}]])
SLOW_S = 60  # what the person's login shell takes


def slow_login(home: CodexHome) -> Path:
    """Make a HOME whose login shell says that it runs, and takes long."""
    folder = home.home.parent / "person"
    folder.mkdir()
    (folder / ".bash_profile").write_text(f"touch ~/runs; sleep {SLOW_S}\n")
    return folder


async def start_thread(agent: ServedAgent, home: CodexHome) -> None:
    async with open_owner_of(agent) as client:
        params = threads.ThreadStartParams(
            cwd=str(home.workspace),
            input=[TextInput(type="text", text="this never ends")],
            request_key="n" * 32,
            wait_ms=20_000,
        )
        await client.call(THREAD_START, params, timeout_s=60)


async def test_a_signal_ends_it_soon_though_a_login_shell_still_runs(
    run_mark: str,
) -> None:
    with trio.fail_after(240):
        async with open_codex_home(HELD) as home:
            person = slow_login(home)
            environ = {"HOME": str(person), "SHELL": "/bin/bash"}
            async with open_served_agent(home, environ=environ) as agent:
                await start_thread(agent, home)
                while not (person / "runs").exists():
                    await trio.lowlevel.checkpoint()
                agent.signal(signal.SIGTERM)
                with trio.fail_after(SLOW_S / 2):
                    assert await agent.wait() == 0
                left = marked_processes(run_mark)
                assert not [line for line in left.values() if "sleep" in line], left
                assert not lock_files(home.home)
