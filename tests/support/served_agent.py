"""An Agent in a process of its own, as a person starts it: for killing and stopping it."""

import fcntl
import os
import signal
import subprocess
import sys
import termios
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import trio

from tests.support.agents import client_info
from tests.support.codex import BUNDLED, CodexHome, codex_binaries
from transport.background import open_background
from transport.client import AdminTarget, Client, open_client

SERVE: Final = [sys.executable, "-m", "clients.cli", "serve"]


class ServedAgent:
    """A running `threadgate serve`. `state`: its folder, which outlives it."""

    def __init__(self, process: trio.Process, state: Path) -> None:
        self.process = process
        self.state = state

    @property
    def admin(self) -> AdminTarget:
        """The workstation's own door."""
        return AdminTarget(path=self.state / "run" / "admin.sock")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the Agent alone."""
        self.process.send_signal(number)

    async def wait(self) -> int:
        """Return its exit status once it has ended."""
        return await self.process.wait()

    def app_servers(self) -> list[int]:
        """Return the pids of its children that are app-servers."""
        return app_servers(self.process.pid)


def app_servers(pid: int) -> list[int]:
    """Return the children of a process that are app-servers, oldest first."""
    return [child for child in children(pid) if _is_app_server(child)]


def children(pid: int) -> list[int]:
    """Return the living children of a process, of all of its threads."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, task.read_text().split())
        except OSError:
            continue
    return sorted(found)


def _is_app_server(pid: int) -> bool:
    try:
        return b"app-server" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


@asynccontextmanager
async def open_served_agent(
    home: CodexHome,
    *,
    version: str = BUNDLED,
    codex: Path | None = None,
    environ: Mapping[str, str] | None = None,
    before: Sequence[str] = (),
) -> AsyncGenerator[ServedAgent]:
    """Run an Agent until the block is left; then it is killed, if it still lives.

    `before`: a command that runs the Agent, such as a limit. The state folder lies
    beside the home and stays for the next one.
    """
    argv, its_environ = served_environ(home, version=version, codex=codex)
    run = partial(
        trio.run_process,
        [*before, *argv],
        env={**its_environ, **(environ or {})},
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        check=False,
        deliver_cancel=_kill,
    )
    async with open_background(run) as process:
        await _announced(process)
        yield ServedAgent(process, _state(home))


def served_environ(
    home: CodexHome, *, version: str = BUNDLED, codex: Path | None = None
) -> tuple[list[str], dict[str, str]]:
    """Return the command line and the environment of an Agent on this home."""
    environ = {
        **home.environ,
        "THREADGATE_STATE_DIR": str(_state(home)),
        "THREADGATE_CODEX": str(codex or codex_binaries()[version]),
        "THREADGATE_CONFIG": str(_config(home)),
    }
    return SERVE, environ


def _state(home: CodexHome) -> Path:
    return home.home.parent / "state"


def _config(home: CodexHome) -> Path:
    path = home.home.parent / "threadgate.toml"
    if not path.exists():
        path.write_text(f'roots = ["{home.workspace}"]\nlisten = ["127.0.0.1:0"]\n')
    return path


async def _announced(process: trio.Process) -> None:
    """Return when it has said that it serves (its first line)."""
    assert process.stdout is not None
    said = b""
    while b"\n" not in said:
        chunk = await process.stdout.receive_some()
        assert chunk, f"the Agent ended with {process.returncode}"
        said += chunk


async def _kill(process: trio.Process) -> None:
    process.kill()


@asynccontextmanager
async def open_owner_of(agent: ServedAgent) -> AsyncGenerator[Client]:
    """Connect at its workstation's door: all scopes, no ceiling."""
    async with open_client(agent.admin, client_info("local", "l" * 32)) as client:
        yield client


def is_alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")


async def freeze(pid: int) -> None:
    """Stop a process, and return when it stands still (that takes a moment)."""
    os.kill(pid, signal.SIGSTOP)
    stat = Path(f"/proc/{pid}/stat")
    while stat.read_text().rpartition(")")[2].split()[0] != "T":
        await trio.lowlevel.checkpoint()


TURN_LINE: Final = 300  # bytes: a turn/start with LOST is longer, a question is shorter
LOST: Final = "lost" + " and not found again" * 15


def unread(pid: int) -> int:
    """Return how many bytes lie in a process's input."""
    pipe = os.open(f"/proc/{pid}/fd/0", os.O_RDONLY | os.O_NONBLOCK)
    try:
        count = bytearray(4)
        fcntl.ioctl(pipe, termios.FIONREAD, count)
    finally:
        os.close(pipe)
    return int.from_bytes(count, sys.byteorder)


async def wait_gone(pids: Sequence[int]) -> None:
    """Return when none of them lives; each is waited for by its pidfd."""
    for pid in pids:
        try:
            fd = os.pidfd_open(pid)
        except OSError:
            continue
        try:
            await trio.lowlevel.wait_readable(fd)
        finally:
            os.close(fd)
