"""Programs that the demo starts: all of them end with it. Trio shell."""

import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import trio

from transport.background import open_background

GRACE_S: Final = 8.0  # an Agent ends its app-servers one after the other


@asynccontextmanager
async def open_program(
    argv: Sequence[str],
    environ: Mapping[str, str],
    *,
    executable: Path | None = None,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
    stderr: int = subprocess.DEVNULL,
) -> AsyncGenerator[trio.Process]:
    """Run a program beside the block, in a group of its own (Ctrl-C is ours to hear).

    Leaving the block interrupts it, waits `GRACE_S`, then kills its group.
    """
    run = partial(
        trio.run_process,
        list(argv),
        executable=executable,
        env=dict(environ),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        check=False,
        start_new_session=True,
        deliver_cancel=_end,
    )
    async with open_background(run) as process:
        yield process


async def _end(process: trio.Process) -> None:
    """`run_process` shields this, and cancels it once the program is gone."""
    try:
        process.send_signal(signal.SIGINT)
        await trio.sleep(GRACE_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
