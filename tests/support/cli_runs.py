"""Commands under test: called in this process, or as a person would start them."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from io import StringIO
from pathlib import Path

import trio

from clients.cli.screen import Screen
from tests.support.cli_samples import NOON

_COMMAND: tuple[str, ...] = (sys.executable, "-m", "clients.cli")


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command left."""

    code: int
    out: str
    err: str


class Paper(StringIO):
    """Keeps what is printed, and wakes whoever waits for more of it."""

    def __init__(self) -> None:
        super().__init__()
        self._written = trio.Event()

    def write(self, text: str) -> int:
        """Take in text."""
        written = super().write(text)
        self._written.set()
        return written

    async def wait_for(self, text: str) -> None:
        """Return once `text` was printed."""
        while text not in self.getvalue():
            self._written = trio.Event()
            await self._written.wait()

    async def wait_lines(self, count: int) -> list[str]:
        """Return the lines, once there are so many."""
        while len(lines := self.getvalue().splitlines()) < count:
            self._written = trio.Event()
            await self._written.wait()
        return lines


def paper(*, as_json: bool = False) -> Screen:
    """Return a screen that keeps what is printed; its clock stands at noon."""
    return Screen(
        out=Paper(),
        err=Paper(),
        colour=False,
        width=None,
        zone=UTC,
        now_ms=lambda: NOON,
        as_json=as_json,
    )


def printed(screen: Screen) -> str:
    """Return what was printed on stdout of a `paper` screen."""
    return paper_of(screen).getvalue()


def noted(screen: Screen) -> str:
    """Return what was printed on stderr of a `paper` screen."""
    assert isinstance(screen.err, Paper)
    return screen.err.getvalue()


def paper_of(screen: Screen) -> Paper:
    """Return the paper that stdout is."""
    assert isinstance(screen.out, Paper)
    return screen.out


def cli_environ(state: Path) -> dict[str, str]:
    """Return an environment whose state, settings and locale are the test's own."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("THREADGATE_")}
    environ |= {
        "THREADGATE_STATE_DIR": str(state),
        "XDG_CONFIG_HOME": str(state / "config"),
        "TZ": "UTC",
    }
    return environ


def command_line(*args: str) -> list[str]:
    """Return the argv of a command, run by this Python."""
    return [sys.executable, "-m", "clients.cli", *args]


async def run_cli(*args: str, environ: Mapping[str, str], stdin: bytes = b"") -> Ran:
    """Run a command to its end, without a terminal; warm where the test has it so."""
    done: subprocess.CompletedProcess[bytes] = await trio.run_process(
        [*_COMMAND, *args],
        env=environ,
        stdin=stdin,
        capture_stdout=True,
        capture_stderr=True,
        check=False,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())
