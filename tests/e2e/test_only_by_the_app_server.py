"""Codex's files are Codex's: ours opens none of them, and starts codex in one way only."""

import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from clients.cli.scripted_model import Rule
from tests.support.agents import client_info
from tests.support.codex import CodexHome, codex_binaries, open_codex_home
from tests.support.foreign import open_foreign
from tests.support.real_agent import send_to_end
from transport.background import open_background
from transport.client import AdminTarget, open_client
from transport.protocol import threads
from transport.protocol.methods import THREAD_LIST, THREAD_READ

pytestmark = pytest.mark.codex
ROOT = Path(__file__).parents[2]
LOOKING_FOR_LIBRARIES = ["/sbin/ldconfig", "-p"]  # what `import trio` does on Linux
WRITES_A_FILE = Rule(
    "make a file", [[{"call": "exec_command", "args": {"cmd": "echo x > made"}}]]
)


@asynccontextmanager
async def open_audited(
    home: CodexHome, codex: Path, log: Path
) -> AsyncGenerator[AdminTarget]:
    """Run `threadgate serve` under the audit hook; leaving stops it and awaits it."""
    state = home.home.parent / "state"
    words = [sys.executable, "-m", "tests.support.audited_agent", str(log)]
    words += [str(home.home), "--", "serve", "--codex", str(codex)]
    run = partial(
        trio.run_process,
        words,
        cwd=ROOT,
        env={**home.environ, "THREADGATE_STATE_DIR": str(state)},
        stdout=subprocess.PIPE,
        check=False,
    )
    async with open_background(run) as process:
        assert process.stdout is not None
        said = b""
        while b"ready" not in said:
            said += await process.stdout.receive_some() or pytest.fail("it ended")
        yield AdminTarget(path=state / "run" / "admin.sock")
        process.terminate()
        await process.wait()


def notes(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


@pytest.mark.parametrize("version", ["0.163.0", "0.171.0"])
async def test_the_agent_opens_nothing_below_codex_home_and_opens_codex_to_nobody(
    version: str,
) -> None:
    codex = codex_binaries().get(version)
    if codex is None:
        pytest.skip(f"codex {version} is not here")
    with trio.fail_after(240):
        async with open_codex_home(WRITES_A_FILE) as home:
            log = home.home.parent / "audit.jsonl"
            async with open_foreign(codex, home.environ) as foreign:
                thread = await foreign.start_thread(home.workspace, "before")
            async with (
                open_audited(home, codex, log) as target,
                open_client(target, client_info()) as client,
                open_foreign(codex, home.environ) as foreign,
            ):
                await client.call(THREAD_LIST, threads.ThreadListParams())
                await send_to_end(client, thread, "make a file", key="audited")
                await client.call(
                    THREAD_READ, threads.ThreadReadParams(thread_id=thread)
                )
            seen = notes(log)
    started = [note["argv"] for note in seen if "argv" in note]
    started = [argv for argv in started if argv != LOOKING_FOR_LIBRARIES]
    assert [note for note in seen if "event" in note] == []
    assert len(started) >= 2, "a reader and a writer at least"
    for argv in started:
        assert argv[1:] in (["app-server", "--stdio"], ["--version"]), argv


async def test_the_audit_hook_would_have_seen_it(tmp_path: Path) -> None:
    """The check above can fail: a file below the home is noted."""
    secret = tmp_path / "home" / "sessions" / "x.jsonl"
    secret.parent.mkdir(parents=True)
    secret.write_text("{}")
    code = (
        "import sys; from tests.support.audited_agent import install;"
        f"install({str(tmp_path / 'log')!r}, {str(tmp_path / 'home')!r});"
        f"open({str(secret)!r})"
    )
    await trio.run_process([sys.executable, "-c", code], cwd=ROOT)
    assert [note["event"] for note in notes(tmp_path / "log")] == ["open"]
