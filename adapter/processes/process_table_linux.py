"""The process table as /proc tells it. Blocking I/O.

A process is held by a pidfd: a signal through it cannot hit a successor.
"""

import os
import select
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from adapter.limits import EXEC_S
from adapter.processes.identity import Held, Identity, Row, check_seen

_PROC: Final = Path("/proc")


def _stat(pid: int) -> list[str]:
    """Return the fields behind the name: state, parent, … (proc(5) from field 3 on)."""
    text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    return text[text.rindex(")") + 2 :].split()


def _argv(pid: int) -> tuple[str, ...]:
    """Return its command line. While it becomes another program it has none."""
    path, until = _PROC / str(pid) / "cmdline", time.monotonic() + EXEC_S
    while not (raw := path.read_bytes()) and time.monotonic() < until:
        if _stat(pid)[0] in "ZX":
            break
        os.sched_yield()
    return tuple(os.fsdecode(part) for part in raw.split(b"\0")[:-1])


def identify(pid: int) -> Identity | None:
    """Return who has this pid now; `None` where nobody lives (a zombie does not).

    `started` is the boot's id and the clock ticks since that boot. Raises: OSError where
    nothing is left to look with, as all of this module does.
    """
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        fields = _stat(pid)
        argv = _argv(pid)
    except ValueError:
        return None
    except OSError as exc:
        check_seen(exc)
        return None
    if fields[0] in "ZX":
        return None
    return Identity(pid=pid, started=f"{boot}/{fields[19]}", argv=argv)


def rows() -> Iterator[Row]:
    """Read the whole table; what ends meanwhile is left out."""
    for name in os.listdir(_PROC):
        if name.isdigit():
            try:
                state, parent, group = _stat(int(name))[:3]
            except ValueError:
                continue
            except OSError as exc:
                check_seen(exc)
                continue  # it has just ended
            yield Row(
                pid=int(name),
                parent=int(parent),
                group=int(group),
                dead=state in "ZX",
            )


def marked(entry: str) -> list[int]:
    """Return the living processes of ours whose environment has `NAME=value`."""
    wanted, found = entry.encode(), list[int]()
    for name in os.listdir(_PROC):
        if name.isdigit():
            try:
                environ = (_PROC / name / "environ").read_bytes()
            except OSError as exc:
                check_seen(exc)
                continue  # gone, or another user's
            if wanted in environ.split(b"\0"):
                found.append(int(name))
    return found


def hold(identity: Identity) -> Held | None:
    """Open a pidfd of exactly this process, or `None`: it has ended."""
    try:
        fd = os.pidfd_open(identity.pid)
    except OSError as exc:
        check_seen(exc)
        return None
    with ExitStack() as undo:
        undo.callback(os.close, fd)
        if identify(identity.pid) != identity:
            return None
        undo.pop_all()
    return Held(identity=identity, fd=fd)


def send(held: Held, number: signal.Signals) -> None:
    """Signal it. Raises: ProcessLookupError, PermissionError."""
    assert held.fd is not None
    signal.pidfd_send_signal(held.fd, number)


def wait_gone(left: Sequence[Held], seconds: float) -> list[Held]:
    """Wait until they have ended; return those that still live after `seconds`."""
    poll = select.poll()
    living = {held.fd: held for held in left if held.fd is not None}
    for fd in living:
        poll.register(fd, select.POLLIN)
    deadline = time.monotonic() + seconds
    while living:
        more = max(0.0, deadline - time.monotonic())
        for fd, _ in poll.poll(more * 1000):
            poll.unregister(fd)
            living.pop(fd, None)
        if not more:
            break
    return list(living.values())


def release(held: Held) -> None:
    """Let go of it; to be called once."""
    if held.fd is not None:
        os.close(held.fd)
