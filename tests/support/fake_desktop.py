"""Real processes that look like other programs of Codex: copies at the right paths."""

import shutil
import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import trio

from transport.background import open_background

APP: Final = "usr/lib/chatgpt/ChatGPT"
ENGINE: Final = "usr/lib/chatgpt/resources/codex"
CLI: Final = "usr/lib/node_modules/@openai/codex-linux-x64/vendor/t/bin/codex"
SHELL: Final = Path("/bin/bash")  # says "ready" and waits: `sleep` could not tell
WAIT: Final = 'echo ready; read -r line; eval "$line"'


def place(root: Path, where: str, program: Path = SHELL) -> Path:
    """Copy a program to a path that names an app."""
    path = root / where
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        shutil.copy(program, path)
    return path


@asynccontextmanager
async def open_program(
    argv: list[str], environ: Mapping[str, str], *, executable: Path | None = None
) -> AsyncGenerator[trio.Process]:
    """Run a program that says `ready` first; leaving the block ends it at once.

    It reads one line and evaluates it: `exec PATH` changes it under its pid.
    """
    run = partial(
        trio.run_process,
        argv,
        executable=str(executable) if executable else None,
        env=dict(environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        check=False,
        deliver_cancel=_kill,
    )
    async with open_background(run) as process:
        await wait_ready(process)
        yield process


async def _kill(process: trio.Process) -> None:
    process.kill()


async def wait_ready(process: trio.Process) -> None:
    """Return when the program has said its line; it may come in pieces."""
    assert process.stdout is not None
    line = b""
    while not line.endswith(b"\n"):
        chunk = await process.stdout.receive_some(1)
        assert chunk, f"it ended, having said {line!r}"
        line += chunk
    assert line == b"ready\n"


async def say(process: trio.Process, line: str) -> None:
    """Let the program evaluate a line of shell."""
    assert process.stdin is not None
    await process.stdin.send_all(line.encode() + b"\n")


def shell(path: Path, *argv: str) -> list[str]:
    """Return the argv of a copied bash that waits; `argv` are its further arguments."""
    return [str(path), "-c", WAIT, *argv]
