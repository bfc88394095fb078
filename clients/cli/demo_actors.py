"""Who acts in the demo: each runs the real command line. Trio shell.

Trio shell. An actor is a machine of its own as far as threadgate can tell: own state
folder, own keys, own processes.
"""

import io
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Final

import trio

from clients.cli.demo_programs import open_program
from clients.cli.exits import ExitCode, FailedError
from clients.cli.screen import Screen
from clients.cli.style import Style, bold
from transport.background import open_background

_COMMAND: Final = (sys.executable, "-u", "-m", "clients.cli")


@dataclass(frozen=True, slots=True)
class Said:
    """A line of a running command and when it came, in `trio.current_time()`."""

    at: float
    text: str


@dataclass(slots=True)
class Running:
    """A command that still runs. `lines`: what it has said so far."""

    actor: "Actor"
    command: str
    process: trio.Process
    lines: list[Said] = field(default_factory=list[Said])
    _news: trio.Event = field(default_factory=trio.Event)
    _over: bool = False

    async def read(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Show and keep all that the command says."""
        task_status.started()
        assert self.process.stdout is not None
        rest = b""
        async for chunk in self.process.stdout:
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._take(line.decode(errors="replace"))
        self._over = True
        self._news.set()

    async def wait_line(self, pattern: str) -> re.Match[str]:
        """Return the first match in a line, as soon as there is one."""
        seen = 0
        while True:
            for said in self.lines[seen:]:
                if match := re.search(pattern, said.text):
                    return match
            seen = len(self.lines)
            if self._over:
                last = self.lines[-1].text if self.lines else "nothing"
                raise FailedError(
                    f"“{self.command}” ended without saying /{pattern}/; it said: {last}"
                )
            self._news = trio.Event()
            await self._news.wait()

    async def end(self, *, expect: int = ExitCode.OK) -> list[Said]:
        """Wait for its end; return all that it said."""
        code = await self.process.wait()
        while not self._over:
            self._news = trio.Event()
            await self._news.wait()
        self.actor.check(self.command, code, expect)
        return self.lines

    def _take(self, text: str) -> None:
        self.lines.append(Said(trio.current_time(), text))
        self.actor.show(text)
        self._news.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """`name` is shown before all that it says. `environ`: of its processes."""

    name: str
    style: Style
    screen: Screen
    environ: Mapping[str, str]

    def show(self, text: str) -> None:
        """Print a line of this actor."""
        self.screen.say(f"  {self.name:<5} | ", text)

    def type(self, command: str) -> None:
        """Print a command as it is typed."""
        self.screen.say(f"  {self.name:<5} $ ", bold(command))

    async def run(
        self,
        *args: str,
        expect: int = ExitCode.OK,
        stdin: bytes = b"",
        quiet: bool = False,
    ) -> str:
        """Run a command to its end and show it; return what it printed.

        Raises: FailedError where its exit code is not `expect`.
        """
        if not quiet:
            self.type(_shown(args))
        done = await trio.run_process(
            [*_COMMAND, *args],
            env=dict(self.environ),
            stdin=stdin,
            capture_stdout=True,
            stderr=subprocess.STDOUT,
            check=False,
            start_new_session=True,
        )
        text = done.stdout.decode(errors="replace")
        if not quiet:
            for line in text.splitlines():
                self.show(line)
            if expect is not ExitCode.OK:
                self.show(f"(exit code {done.returncode})")
        self.check(_shown(args), done.returncode, expect, text if quiet else "")
        return text

    @asynccontextmanager
    async def start(self, *args: str, stdin: bytes = b"") -> AsyncGenerator[Running]:
        """Start a command beside the block, and show what it says as it says it.

        It is interrupted where it has not ended when the block is left.
        """
        self.type(_shown(args))
        program = open_program(
            [*_COMMAND, *args],
            self.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        async with program as process:
            assert process.stdin is not None
            with suppress(trio.BrokenResourceError):  # its end will say why
                async with process.stdin:
                    await process.stdin.send_all(stdin)
            running = Running(self, _shown(args), process)
            async with open_background(running.read):
                yield running

    def paper(self) -> Screen:
        """Return a screen whose lines are shown as this actor's."""
        return replace(self.screen, out=_Lines(self.show), width=None, colour=False)

    def check(self, command: str, code: int, expect: int, text: str = "") -> None:
        """Raise FailedError where a command did not end as told."""
        if code != expect:
            what = f": {text.strip()[-300:]}" if text else ""
            raise FailedError(
                f"“{command}” of the {self.name} ended with {code} instead of {expect}{what}"
            )


class _Lines(io.StringIO):
    """Passes on what is written, line by line."""

    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__()
        self._show = show
        self._rest = ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._show(line)
        return len(text)


def _shown(args: Sequence[str]) -> str:
    return " ".join(["threadgate", *map(_quoted, args)])


def _quoted(arg: str) -> str:
    return arg if re.fullmatch(r"[\w./:=,@-]+", arg) else f'"{arg}"'
