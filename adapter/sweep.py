"""Records of the processes that we started, and the end of what outlived us. Blocking I/O.

PROTOCOL.md section 3. A record is {pid, start time, argv}: a pid alone may be anybody's
by now, so a leftover is ended only when all three match. Ended by pidfd, which cannot
hit a successor either.
"""

import json
import os
import select
import signal
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, cast

from adapter.limits import SWEEP_S
from adapter.process_table import Identity, identify

SUFFIX: Final = ".json"
MODE: Final = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """A leftover that was ended. `killed`: it did not listen to SIGTERM."""

    identity: Identity
    killed: bool


def write_record(records: Path, identity: Identity) -> Path:
    """Note a process that we started; return the record, to be removed at its reaping."""
    records.mkdir(mode=0o700, parents=True, exist_ok=True)
    ticks = identity.started.rpartition("/")[2]
    path = records / f"{identity.pid}-{ticks}{SUFFIX}"
    try:
        with open(path, "w", opener=_private, encoding="utf-8") as file:
            json.dump(asdict(identity), file)
    except OSError:
        path.unlink(missing_ok=True)  # half a record names nobody
        raise
    return path


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, MODE)


def read_record(path: Path) -> Identity | None:
    """Return whom a record names; `None` where it is torn or not ours."""
    try:
        fields: object = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(fields, dict):
        return None
    known = cast("dict[str, Any]", fields)
    pid, started, argv = (known.get(name) for name in ("pid", "started", "argv"))
    if not isinstance(pid, int) or pid < 2 or not isinstance(argv, list):
        return None
    parts = cast("list[object]", argv)
    return Identity(pid=pid, started=str(started), argv=tuple(map(str, parts)))


def sweep(records: Path) -> list[Swept]:
    """End what an earlier Agent left alive and forget its records (≤ 2 s, blocks).

    SIGTERM to each process group, SIGKILL after a second. Call it before anything of
    ours is started, and with the Agent's own lock on its state folder held.
    """
    paths = sorted(records.glob(f"*{SUFFIX}")) if records.is_dir() else []
    left = [held for path in paths if (held := _hold(read_record(path))) is not None]
    try:
        swept = _end(left)
    finally:
        for _, fd in left:
            os.close(fd)
    for path in paths:
        path.unlink(missing_ok=True)
    return swept


def _hold(identity: Identity | None) -> tuple[Identity, int] | None:
    """Open a pidfd of exactly this process, or `None`: it has ended."""
    if identity is None:
        return None
    try:
        fd = os.pidfd_open(identity.pid)
    except OSError:
        return None
    if identify(identity.pid) == identity:
        return identity, fd
    os.close(fd)
    return None


def _end(left: list[tuple[Identity, int]]) -> list[Swept]:
    for identity, fd in left:
        _signal(identity, fd, signal.SIGTERM)
    stubborn = _wait_gone([fd for _, fd in left])
    for identity, fd in left:
        if fd in stubborn:
            _signal(identity, fd, signal.SIGKILL)
    _wait_gone(list(stubborn))
    return [Swept(identity=one, killed=fd in stubborn) for one, fd in left]


def _signal(identity: Identity, fd: int, number: signal.Signals) -> None:
    """Signal the leader by pidfd; its group only while that leader is known to live."""
    with suppress(ProcessLookupError, PermissionError):
        if (
            identify(identity.pid) == identity
            and os.getpgid(identity.pid) == identity.pid
        ):
            os.killpg(identity.pid, number)
    with suppress(ProcessLookupError, PermissionError):
        signal.pidfd_send_signal(fd, number)


def _wait_gone(fds: list[int]) -> set[int]:
    """Wait up to SWEEP_S; return the pidfds of those that still live."""
    poll, living = select.poll(), set(fds)
    for fd in fds:
        poll.register(fd, select.POLLIN)
    deadline = time.monotonic() + SWEEP_S
    while living and (left := deadline - time.monotonic()) > 0:
        for fd, _ in poll.poll(left * 1000):
            poll.unregister(fd)
            living.discard(fd)
    return living
