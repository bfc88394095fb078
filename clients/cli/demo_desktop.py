"""The demo's Codex desktop: a window, and the codex that works behind it. Trio shell.

Trio shell. The window is a copy of `sleep` where the desktop would lie: it only has to
be there. Its codex is a real app-server on the same CODEX_HOME that knows nothing of
threadgate: what it does, the Agent finds out by itself.
"""

import json
import shutil
import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, Final, cast

import trio

from clients.cli.demo_programs import open_program
from clients.cli.exits import FailedError

Json = dict[str, Any]

_PLACE: Final = Path("opt/codex-desktop/codex-desktop")
_INFO: Final = {
    "clientInfo": {"name": "codex-desktop", "version": "1"},
    "capabilities": {"experimentalApi": True},
}


@asynccontextmanager
async def open_window(folder: Path, environ: Mapping[str, str]) -> AsyncGenerator[int]:
    """Open a program that looks like Codex desktop; yield its process id."""
    place = install_window(folder)
    # Where `sleep` is one of many programs in one file, it goes by its first argument.
    async with open_program(["sleep", "600"], environ, executable=place) as process:
        yield process.pid


def install_window(folder: Path) -> Path:
    """Have the window's program lie in `folder`; return its path."""
    place = folder / _PLACE
    if place.exists():
        return place
    sleep = shutil.which("sleep")
    if sleep is None:
        raise FailedError("there is no `sleep` here to play the desktop with")
    place.parent.mkdir(parents=True)
    shutil.copy(Path(sleep).resolve(), place)
    return place


class DesktopCodex:
    """One app-server of the desktop, spoken to plainly: one request after the other."""

    def __init__(self, process: trio.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin = process.stdin
        self.messages = _lines(process.stdout)
        self._number = 0

    async def request(self, method: str, params: Json) -> Json:
        """Return the result of a request; FailedError where it is refused."""
        self._number += 1
        await self.say({"id": self._number, "method": method, "params": params})
        async for message in self.messages:
            if message.get("id") == self._number and "method" not in message:
                break
        else:
            raise FailedError(f"the desktop's codex left at {method}")
        if "error" in message:
            raise FailedError(
                f"the desktop's codex refused {method}: {message['error']}"
            )
        return cast("Json", message["result"])

    async def say(self, message: Json) -> None:
        """Write one message. Raises: FailedError where nobody is there any more."""
        try:
            await self._stdin.send_all(json.dumps(message).encode() + b"\n")
        except trio.BrokenResourceError:
            raise FailedError("the codex that should play the desktop's left") from None

    async def start_thread(self, cwd: Path, text: str) -> str:
        """Make a thread with one turn; return its id."""
        started = await self.request("thread/start", {"cwd": str(cwd)})
        thread_id = str(started["thread"]["id"])
        await self.turn(thread_id, text)
        return thread_id

    async def add_turn(self, thread_id: str, text: str) -> None:
        """Go on with a thread that is there."""
        await self.request("thread/resume", {"threadId": thread_id})
        await self.turn(thread_id, text)

    async def turn(self, thread_id: str, text: str) -> None:
        """Run one turn of a loaded thread to its end."""
        given = [{"type": "text", "text": text}]
        await self.request("turn/start", {"threadId": thread_id, "input": given})
        async for message in self.messages:
            if message.get("method") == "turn/completed":
                return
        raise FailedError("the desktop's codex left in the middle of a turn")


async def _lines(stream: trio.abc.ReceiveStream) -> AsyncGenerator[Json]:
    buffer = bytearray()
    async for chunk in stream:
        buffer += chunk
        *lines, rest = bytes(buffer).split(b"\n")
        buffer[:] = rest
        for line in lines:
            try:
                yield cast("Json", json.loads(line))
            except ValueError:
                raise FailedError(f"this is no codex: it says {line[:80]!r}") from None


@asynccontextmanager
async def open_desktop_codex(
    codex: Path, environ: Mapping[str, str]
) -> AsyncGenerator[DesktopCodex]:
    """Run the desktop's codex for the length of the block; it ends at end of input."""
    argv = [str(codex), "app-server"]
    pipe = subprocess.PIPE
    async with open_program(argv, environ, stdin=pipe, stdout=pipe) as process:
        desktop = DesktopCodex(process)
        async with aclosing(desktop.messages):
            await desktop.request("initialize", _INFO)
            await desktop.say({"method": "initialized"})
            yield desktop
        assert process.stdin is not None
        await process.stdin.aclose()
        with trio.move_on_after(5):
            await process.wait()
