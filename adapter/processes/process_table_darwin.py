"""The process table of macOS, through psutil. Blocking I/O.

Tested on Linux, where psutil tells the same; it has not been run on a Mac. There are no
pidfds there: between the look that says who a pid is and the signal lie some µs. The
clock that start times are told in is the wall clock: where it was set while an Agent
ran, that Agent's records may name nobody any more, and what it left is let live.
"""

import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

import psutil

from adapter.processes.identity import Held, Identity, Row, check_seen

_ARGV_TRIES: Final = 3  # a program that is just being started may not tell them yet
_ARGV_PAUSE_S: Final = 0.001
_LOOK_S: Final = 0.02  # nothing tells of the end of a process that is not our child


def identify(pid: int) -> Identity | None:
    """Return who has this pid now; `None` where nobody lives (a zombie does not).

    `started` is told in µs since the epoch, which is as fine as the kernel keeps it.
    Raises: OSError where nothing is left to look with, as all of this module does.
    """
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            started = round(process.create_time() * 1_000_000)
            argv = _argv(process)
            dead = process.status() == psutil.STATUS_ZOMBIE
    except (psutil.Error, ValueError):
        return None  # gone, or another user's
    except OSError as exc:
        check_seen(exc)
        return None
    return None if dead else Identity(pid=pid, started=f"/{started}", argv=argv)


def _argv(process: psutil.Process) -> tuple[str, ...]:
    for _ in range(_ARGV_TRIES - 1):
        with suppress(psutil.AccessDenied):
            return tuple(process.cmdline())
        time.sleep(_ARGV_PAUSE_S)  # noqa: TID251 - shorter than a look at the table
    return tuple(process.cmdline())


def rows() -> Iterator[Row]:
    """Read the whole table; what ends meanwhile is left out."""
    for pid in psutil.pids():
        try:
            process = psutil.Process(pid)
            with process.oneshot():
                parent = process.ppid()
                dead = process.status() == psutil.STATUS_ZOMBIE
            group = os.getpgid(pid)
        except psutil.Error:
            continue  # it has just ended
        except OSError as exc:
            check_seen(exc)
            continue
        yield Row(pid=pid, parent=parent, group=group, dead=dead)


def marked(entry: str) -> list[int]:
    """Return the living processes of ours whose environment has `NAME=value`."""
    name, _, value = entry.partition("=")
    found: list[int] = []
    for pid in psutil.pids():
        try:
            environ = psutil.Process(pid).environ()
        except psutil.Error:
            continue  # gone, or another user's
        except OSError as exc:
            check_seen(exc)
            continue
        if environ.get(name) == value:
            found.append(pid)
    return found


def hold(identity: Identity) -> Held | None:
    """Return exactly this process, or `None`: it has ended."""
    if identify(identity.pid) != identity:
        return None
    return Held(identity=identity, fd=None)


def send(held: Held, number: signal.Signals) -> None:
    """Signal it. Raises: ProcessLookupError, PermissionError."""
    if identify(held.identity.pid) == held.identity:
        os.kill(held.identity.pid, number)


def wait_gone(left: Sequence[Held], seconds: float) -> list[Held]:
    """Wait until they have ended; return those that still live after `seconds`."""
    deadline = time.monotonic() + seconds
    while (living := _living(left)) and time.monotonic() < deadline:
        time.sleep(_LOOK_S)  # noqa: TID251 - a blocking sweep, before Trio serves
    return living


def _living(left: Sequence[Held]) -> list[Held]:
    return [held for held in left if identify(held.identity.pid) == held.identity]


def release(_held: Held) -> None:
    """Nothing is kept open here."""
