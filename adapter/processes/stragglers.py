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
from dataclasses import dataclass
from typing import Final

from adapter.limits import SWEEP_S
from adapter.processes.identity import Held, Identity
from adapter.processes.process_table import HERE, ProcessTable

_LOG: Final = logging.getLogger(__name__)
MARK_NAME: Final = "THREADGATE_SERVER"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stragglers:
    """`ended`: what was ended; `left`: what has a session of its own."""

    ended: Sequence[Identity]
    left: Sequence[Identity]


def end_stragglers(
    mark: str, name: str, *, killed: bool, table: ProcessTable = HERE
) -> Stragglers:
    """End what carries the mark of an app-server that is gone (≤ 2 s where any does).

    `killed`: it could not end its commands itself; else nothing is ended, for what lives
    on was meant to. `name`: of the app-server, for the log.
    """
    found = [one for pid in table.marked(_entry(mark)) if (one := table.identify(pid))]
    own = [one for one in found if not killed or _has_leader(one.pid, table)]
    lost = [one for one in found if one not in own]
    _end(lost, table)
    if lost:
        _LOG.warning("%s was killed: %s ended with it", name, _pids(lost))
    if own:
        _LOG.warning(
            "%s has ended: %s outlived it in a session of its own and is left alone",
            name,
            _pids(own),
        )
    return Stragglers(ended=lost, left=own)


def mark_environ(mark: str) -> dict[str, str]:
    """Return what an app-server's environment gets, and so all that it starts."""
    return {MARK_NAME: mark}


def _entry(mark: str) -> str:
    return f"{MARK_NAME}={mark}"


def _has_leader(pid: int, table: ProcessTable) -> bool:
    """Whether the leader of its session lives. Its pid is nobody else's until the last
    of the session has gone."""
    try:
        return table.identify(os.getsid(pid)) is not None
    except OSError:  # it has just ended, or is not ours to ask about
        return True


def _end(lost: Sequence[Identity], table: ProcessTable) -> None:
    held = [one for identity in lost if (one := table.hold(identity)) is not None]
    try:
        for number in (signal.SIGTERM, signal.SIGKILL):
            living = table.wait_gone(held, 0.0)
            for one in living:
                _signal(one, number, table)
            if living:
                table.wait_gone(living, SWEEP_S)
    finally:
        for one in held:
            table.release(one)


def _signal(held: Held, number: signal.Signals, table: ProcessTable) -> None:
    try:
        table.send(held, number)
    except (ProcessLookupError, PermissionError):
        return


def _pids(processes: Sequence[Identity]) -> str:
    """Name them by pid alone: what they run may quote a thread."""
    return ", ".join(f"process {one.pid}" for one in processes)
