"""A command of ours at a terminal, and somebody who types."""

import codecs
import os
import pty
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from tests.support.cli_runs import cli_environ, command_line


class Terminal:
    """A pseudo-terminal with a command in it. `shown`: all that was read of it so far."""

    def __init__(self, main: int, process: trio.Process) -> None:
        self._main = trio.lowlevel.FdStream(main)
        # What is read ends anywhere, in the middle of a character, too.
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.process = process
        self.shown = ""

    async def wait_for(self, text: str) -> str:
        """Return all that was shown, once `text` was; more may come right behind it."""
        await self.wait_count(text, 1)
        return self.shown

    async def wait_count(self, text: str, count: int) -> None:
        """Return once `text` was shown so often."""
        while (seen := self.shown.count(text)) < count:
            more = await self._read()
            assert more, f"{text!r} came {seen} times, not {count}: {self.shown!r}"

    async def type(self, text: str) -> None:
        """Type text."""
        await self._main.send_all(text.encode())

    async def end(self) -> int:
        """Read what is still shown; return the exit code at the end of the command."""
        while await self._read():
            pass
        code = await self.process.wait()
        await self._main.aclose()
        return code

    async def _read(self) -> bool:
        """Take in more; whether there was any before the other side closed."""
        try:
            more = await self._main.receive_some()
        except trio.BrokenResourceError:
            more = b""
        self.shown += self._decoder.decode(more)
        return bool(more)


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
