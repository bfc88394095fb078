"""What ran below an app-server and outlived it. Blocking I/O.

PROTOCOL.md section 3, "Ending". An app-server that ends in order ends the commands of its
turns. Killed, it cannot: those in a sandbox die with it, but under full access what a
command had put into the background goes on. All of them carry a mark in their
environment, a new one for each app-server.

What leads a session of its own was meant to stay (`setsid`, a daemon): it is left alone,
and named in the log.
"""

import logging
import os
import signal
from collections.abc import Sequence
from typing import Final

from adapter.limits import LINGER_S, SWEEP_S
from adapter.processes.identity import Held
from adapter.processes.process_table import HERE, ProcessTable, holding

_LOG: Final = logging.getLogger(__name__)
MARK_NAME: Final = "THREADGATE_SERVER"


def end_stragglers(
    mark: str, name: str, *, killed: bool, table: ProcessTable = HERE
) -> None:
    """End what carries the mark of an app-server that is gone (≤ 2.5 s where any does).

    `killed`: it could not end its commands itself; else nothing is ended, for what lives
    on was meant to. `name`: of the app-server, for the log.
    """
    known = map(table.identify, table.marked(_entry(mark)))
    with holding((who for who in known if who is not None), table) as held:
        living = table.wait_gone(held, LINGER_S)
        own = [one for one in living if not killed or _has_leader(one, table)]
        lost = [one for one in living if one not in own]
        _end(lost, table)
    if lost:
        _LOG.warning("%s was killed: %s ended with it", name, _pids(lost))
    if own:
        _LOG.warning(
            "%s has ended: %s outlived it in a session of its own and is left alone",
            name,
            _pids(own),
        )


def mark_environ(mark: str) -> dict[str, str]:
    """Return what an app-server's environment gets, and so all that it starts."""
    return {MARK_NAME: mark}


def _entry(mark: str) -> str:
    return f"{MARK_NAME}={mark}"


def _has_leader(held: Held, table: ProcessTable) -> bool:
    """Whether the leader of its session lives. Its pid is nobody else's until the last
    of the session has gone."""
    try:
        return table.identify(os.getsid(held.identity.pid)) is not None
    except OSError:  # it has just ended, or is not ours to ask about
        return True


def _end(lost: Sequence[Held], table: ProcessTable) -> None:
    living = lost
    for number in (signal.SIGTERM, signal.SIGKILL):
        for one in living:
            _signal(one, number, table)
        living = table.wait_gone(living, SWEEP_S) if living else []


def _signal(held: Held, number: signal.Signals, table: ProcessTable) -> None:
    try:
        table.send(held, number)
    except (ProcessLookupError, PermissionError):
        return


def _pids(processes: Sequence[Held]) -> str:
    """Name them by pid alone: what they run may quote a thread."""
    return ", ".join(f"process {one.identity.pid}" for one in processes)
