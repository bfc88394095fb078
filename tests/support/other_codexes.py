"""What else may be at work on a person's CODEX_HOME, as real programs where possible."""

import fcntl
import os
import pty
import shutil
import struct
import subprocess
import termios
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import trio

from adapter.calls.refusals import LOCKED
from tests.support.codex import CodexHome
from tests.support.fake_desktop import APP, open_program, place, shell
from tests.support.foreign import ForeignCodex, ForeignRefusedError
from transport.background import open_background

GIVEN_BACK_S: Final = 20.0  # takes one; an idle writer would keep it for 30 s


def open_desktop(
    home: CodexHome, folder: Path
) -> AbstractAsyncContextManager[trio.Process]:
    """Open a program where the desktop's lies, on this home."""
    return open_program(shell(place(folder, APP)), home.environ)


async def resume_when_free(other: ForeignCodex, thread_id: str) -> None:
    """Load a thread as soon as nobody holds it; GIVEN_BACK_S at most."""
    with trio.fail_after(GIVEN_BACK_S):
        while True:
            try:
                await other.resume(thread_id)
            except ForeignRefusedError as refusal:
                if LOCKED not in str(refusal):
                    raise
            else:
                return


def installed(codex: Path, folder: Path, place_of: str) -> Path:
    """Put a codex to where some program brings its own."""
    path = folder / place_of
    path.parent.mkdir(parents=True)
    try:
        path.hardlink_to(codex)
    except OSError:  # another file system
        shutil.copy(codex, path)
    return path


@asynccontextmanager
async def open_codex(
    codex: Path, home: CodexHome, *args: str
) -> AsyncGenerator[trio.Process]:
    """Run a codex command beside the block (`exec`, `app-server --listen`)."""
    run = partial(
        trio.run_process,
        [str(codex), *args],
        env=home.environ,
        cwd=home.workspace,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
        start_new_session=True,
    )
    async with open_background(run) as process:
        yield process


class Screen:
    """A terminal in which codex's own interface runs; `shown`: all of it so far."""

    def __init__(self, main: int, process: trio.Process) -> None:
        self._main = trio.lowlevel.FdStream(main)
        self.process = process
        self.shown = b""
        self._answered: Counter[bytes] = Counter()

    async def serve(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Be the terminal: read, and answer what an interface asks one."""
        task_status.started()
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            async for chunk in self._main:
                self.shown += chunk
                await self._answer()

    async def _answer(self) -> None:
        for asked, answer in _TERMINAL.items():
            while self.shown.count(asked) > self._answered[asked]:
                self._answered[asked] += 1
                await self._main.send_all(answer)

    async def leave(self) -> None:
        """Quit as a person does, and return when it is gone."""
        with trio.move_on_after(10):
            while self.process.returncode is None:
                with suppress(trio.BrokenResourceError):
                    await self._main.send_all(b"\x03")
                with trio.move_on_after(0.3):
                    await self.process.wait()

    async def aclose(self) -> None:
        """Close our side."""
        await self._main.aclose()


_TERMINAL: Final = {
    b"\x1b[6n": b"\x1b[1;1R",
    b"\x1b[c": b"\x1b[?62;c",
}


@asynccontextmanager
async def open_interface(
    codex: Path, home: CodexHome, *args: str
) -> AsyncGenerator[Screen]:
    """Run codex's own interface in a terminal, without its background server."""
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    process = await trio.lowlevel.open_process(
        [str(codex), "--disable", "daemon_auto_start", "-m", "scripted", *args],
        env={**home.environ, "TERM": "xterm-256color"},
        cwd=home.workspace,
        stdin=other,
        stdout=other,
        stderr=other,
        start_new_session=True,
    )
    os.close(other)
    screen = Screen(main, process)
    try:
        async with open_background(screen.serve):
            yield screen
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
            await screen.aclose()


def trusting(home: CodexHome) -> None:
    """Let codex's interface work in the workspace without asking, and look for nothing."""
    config = home.home / "config.toml"
    trusted = f'\n[projects."{home.workspace}"]\ntrust_level = "trusted"\n'
    config.write_text(
        f"check_for_update_on_startup = false\n{config.read_text()}{trusted}"
    )
