"""The login shell that Codex starts whenever it loads a thread. Trio shell.

It writes down the person's environment ("shell snapshot"). Cut short in the middle of
their rc files it may leave locks of other programs behind; killed with its app-server
it would live on as an orphan.
"""

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import trio

from adapter.limits import END_S, SHELL_LOOK_S
from adapter.process_table import Identity, children, identify

SNAPSHOT_MARK: Final = "# Snapshot file"  # a line of Codex's own script, in argv


def snapshot_shells(pid: int) -> list[Identity]:
    """Return the login shells that this app-server started for its shell snapshot.

    Told apart from a model's commands by a line of Codex's own script in their argv.
    """
    known = (identify(child) for child in children(pid))
    return [
        shell
        for shell in known
        if shell is not None and any(SNAPSHOT_MARK in arg for arg in shell.argv)
    ]


async def end_shells(shells: Sequence[Identity]) -> None:
    """End login shells whose app-server is gone; each leads its own group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        left = [shell for shell in shells if identify(shell.pid) == shell]
        for shell in left:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(shell.pid, number)
        with trio.move_on_after(END_S):
            # They are no children of ours: nothing tells when they end.
            while any(identify(shell.pid) == shell for shell in left):  # noqa: ASYNC110
                await trio.sleep(SHELL_LOOK_S / 4)
