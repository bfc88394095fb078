"""Records of the processes that we started, and the end of what outlived us. Blocking I/O.

PROTOCOL.md section 3. A record is {pid, start time, argv}: a pid alone may be anybody's
by now, so a leftover is ended only when all three match. On Linux it is ended by pidfd,
which cannot hit a successor either.
"""

import json
import os
import signal
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, cast

from adapter.limits import SWEEP_S
from adapter.processes.identity import Held, Identity, check_seen
from adapter.processes.process_table import HERE, ProcessTable, holding
from adapter.processes.stragglers import end_stragglers

SUFFIX: Final = ".json"
MODE: Final = 0o600
_MOST: Final = 2**31 - 1  # a pid_t


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """A leftover that was ended. `killed`: it did not listen to SIGTERM."""

    identity: Identity
    killed: bool


def write_record(records: Path, identity: Identity, *, mark: str = "") -> Path:
    """Note a process that we started; return the record, to be removed at its reaping.

    `mark`: what all that it starts has in its environment.
    """
    records.mkdir(mode=0o700, parents=True, exist_ok=True)
    ticks = identity.started.rpartition("/")[2]
    path = records / f"{identity.pid}-{ticks}{SUFFIX}"
    try:
        with open(path, "w", opener=_private, encoding="utf-8") as file:
            json.dump({**asdict(identity), "mark": mark}, file)
    except OSError:
        path.unlink(missing_ok=True)  # half a record names nobody
        raise
    return path


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, MODE)


def read_record(path: Path) -> Identity | None:
    """Return whom a record names; `None` where it is torn or not ours."""
    known = _fields(path)
    pid, started, argv = (known.get(name) for name in ("pid", "started", "argv"))
    if not isinstance(pid, int) or not 1 < pid <= _MOST or not isinstance(argv, list):
        return None
    parts = cast("list[object]", argv)
    return Identity(pid=pid, started=str(started), argv=tuple(map(str, parts)))


def _fields(path: Path) -> dict[str, Any]:
    try:
        fields: object = json.loads(path.read_bytes())
    except ValueError:
        return {}
    except OSError as exc:
        check_seen(exc)
        return {}
    return cast("dict[str, Any]", fields) if isinstance(fields, dict) else {}


def sweep(records: Path, *, table: ProcessTable = HERE) -> list[Swept]:
    """End what an earlier Agent left alive and forget its records (blocks).

    SIGTERM to each process group, SIGKILL after a second; then, for each record, what the
    commands of that one had in the background. Call it before anything of ours is
    started, and with the Agent's own lock on its state folder held. Raises: OSError where
    nothing is left to look with; the records stay.
    """
    paths = sorted(records.glob(f"*{SUFFIX}")) if records.is_dir() else []
    noted = [identity for path in paths if (identity := read_record(path))]
    with holding(noted, table) as left:
        swept = _end(left, table)
    for path in paths:
        mark = _fields(path).get("mark")
        if isinstance(mark, str) and mark:
            end_stragglers(mark, "an earlier codex", killed=True, table=table)
        with suppress(OSError):  # what is no file is none of ours
            path.unlink()
    return swept


def _end(left: list[Held], table: ProcessTable) -> list[Swept]:
    for held in left:
        _signal(held, signal.SIGTERM, table)
    stubborn = table.wait_gone(left, SWEEP_S)
    for held in stubborn:
        _signal(held, signal.SIGKILL, table)
    table.wait_gone(stubborn, SWEEP_S)
    return [Swept(identity=held.identity, killed=held in stubborn) for held in left]


def _signal(held: Held, number: signal.Signals, table: ProcessTable) -> None:
    """Signal the leader itself; its group only while that leader is known to live."""
    pid = held.identity.pid
    with suppress(ProcessLookupError, PermissionError):
        if table.identify(pid) == held.identity and os.getpgid(pid) == pid:
            os.killpg(pid, number)
    with suppress(ProcessLookupError, PermissionError):
        table.send(held, number)
