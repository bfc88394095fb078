"""A command of ours at a terminal, and somebody who types."""

import os
import pty
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from tests.support.cli_runs import cli_environ, command_line


class Terminal:
    """A pseudo-terminal with a command in it."""

    def __init__(self, main: int, process: trio.Process) -> None:
        self._main = trio.lowlevel.FdStream(main)
        self.process = process
        self.shown = ""

    async def wait_for(self, text: str) -> str:
        """Return all that was shown, once `text` was."""
        while text not in self.shown:
            try:
                more = await self._main.receive_some()
            except trio.BrokenResourceError:  # the other side has closed
                more = b""
            assert more, f"{text!r} never came: {self.shown!r}"
            self.shown += more.decode()
        return self.shown

    async def wait_count(self, text: str, count: int) -> None:
        """Return once `text` was shown so often."""
        while self.shown.count(text) < count:
            more = await self._main.receive_some()
            assert more, f"{text!r} came too seldom: {self.shown!r}"
            self.shown += more.decode()

    async def type(self, text: str) -> None:
        """Type text."""
        await self._main.send_all(text.encode())

    async def end(self) -> int:
        """Return the exit code at the end of the command."""
        code = await self.process.wait()
        await self._main.aclose()
        return code


@asynccontextmanager
async def open_terminal(
    state: Path, *args: str, **environ: str
) -> AsyncGenerator[Terminal]:
    main, other = pty.openpty()
    process = await trio.lowlevel.open_process(
        command_line(*args),
        env={**cli_environ(state), "TERM": "xterm", **environ},
        stdin=other,
        stdout=other,
        stderr=other,
    )
    os.close(other)
    try:
        yield Terminal(main, process)
    finally:
        process.kill()
        await process.wait()
