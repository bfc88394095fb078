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
from adapter.processes.identity import Identity
from adapter.processes.process_table import children, group, identify

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


def still_living(shells: Sequence[Identity]) -> list[Identity]:
    """Return those of an earlier look that live now."""
    return [shell for shell in shells if identify(shell.pid) == shell]


async def end_shells(shells: Sequence[Identity]) -> None:
    """End login shells, seen alive a moment ago, whose app-server is gone.

    Each leads its own group. A codex that ends kills the shell alone: what the person's
    rc files were running then is what is left of the group.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        left = [shell.pid for shell in shells if _group_lives(shell)]
        for leader in left:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(leader, number)
        with trio.move_on_after(END_S):
            # They are no children of ours: nothing tells when they end.
            while any(group(leader) for leader in left):  # noqa: ASYNC110
                await trio.sleep(SHELL_LOOK_S / 4)


def _group_lives(shell: Identity) -> bool:
    """Whether something of its group runs. A pid is not given away as long as a group
    of that number exists: a living leader is the shell, or else a successor."""
    leader = identify(shell.pid)
    return leader == shell or (leader is None and bool(group(shell.pid)))
