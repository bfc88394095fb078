"""Linux's processes and file locks, read from /proc. Blocking I/O.

Nothing here blocks for long (2 ms among 100 processes, 22 ms among 1,000; `BETWEEN_S` at
most for an exec that is held up), so that a look can stand right before an act, with no
checkpoint between. Only this pid namespace is seen, and of other users' processes only
what /proc lets us read.
"""

import os
import re
import time
from pathlib import Path
from typing import Final

from adapter.errors import STARVED
from agent.errors import ProcessTableError
from agent.gate.engines import Process
from agent.gate.lock_path import FOLDER, Owners, lock_path
from agent.limits import ANCESTORS, BETWEEN_S

_PROC: Final = Path("/proc")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_GONE: Final = " (deleted)"  # an updated program runs on from its deleted file
_ENV_END: Final = 48  # where the environment ends: of stat's fields behind the name


def _read(path: Path) -> bytes:
    # One read of a fixed size: /proc answers whole or not at all, and no buffering
    # layer of Python's costs more than the read itself.
    descriptor = _open(path)
    try:
        parts: list[bytes] = []
        while part := os.read(descriptor, 65_536):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    """Open for reading. Raises: OSError; ProcessTableError: that says nothing of `path`."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as exc:
        if exc.errno in STARVED:
            raise ProcessTableError(str(exc)) from exc
        raise


def fork_counter() -> bytes:
    """Return a value that changes whenever any process was made."""
    return _read(_PROC / "loadavg").rsplit(None, 1)[-1]


def uptime_s() -> float:
    """Return the clock that `Process.started` is told in."""
    return float(_read(_PROC / "uptime").split()[0])


def boot_ms() -> int:
    """Return when this clock began, in ms since the epoch."""
    for line in _read(_PROC / "stat").splitlines():
        if line.startswith(b"btime "):
            return int(line.split()[1]) * 1_000
    return 0


def pids() -> list[int]:
    """Return all pids."""
    return [int(name) for name in os.listdir(_PROC) if name.isdigit()]


def _stat(pid: int) -> tuple[str, str, int, float]:
    """Return name, state, parent and start (s since boot)."""
    text = _read(_PROC / str(pid) / "stat").decode(errors="replace")
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    return name, fields[0], int(fields[1]), int(fields[19]) / _TICKS


def started(pid: int) -> float | None:
    """Return when a living process began; `None` where it is gone or a zombie."""
    try:
        _, state, _, at = _stat(pid)
    except (OSError, ValueError, IndexError):
        return None
    return None if state in "ZX" else at


def _argv(pid: int) -> tuple[str, ...]:
    raw = _read(_PROC / str(pid) / "cmdline")
    return tuple(raw.decode(errors="replace").split("\0")[:-1])


def _home(pid: int) -> str | None:
    """Return the CODEX_HOME of a process, links followed; `None` where not readable."""
    try:
        raw = _read(_PROC / str(pid) / "environ")
    except OSError:
        return None
    variables = dict(pair.split(b"=", 1) for pair in raw.split(b"\0") if b"=" in pair)
    home = variables.get(b"CODEX_HOME")
    if not home:
        user = variables.get(b"HOME")
        if not user:
            return None
        home = user + b"/.codex"
    if not os.path.isabs(home):
        return None  # it leads from where the process was when it began
    return os.path.realpath(os.fsdecode(home))


def _is_laid_out(pid: int) -> bool:
    """Whether its environment is in place: an empty one stays empty then."""
    fields = _read(_PROC / str(pid) / "stat").rpartition(b")")[2].split()
    return len(fields) > _ENV_END and fields[_ENV_END] != b"0"


def _home_in_a_moment(pid: int) -> str | None:
    """Return the CODEX_HOME of a process that has no environment now, once it has one.

    Where it becomes another program, or ends, it has none for a moment; whoever looks just
    then must not take another CODEX_HOME's codex for one of ours. One that was started
    with an empty environment is not waited for: every look would be held up by it.
    """
    until = time.monotonic() + BETWEEN_S
    while read_exe(pid) is not None and time.monotonic() < until:
        try:
            laid_out = _is_laid_out(pid)
            if _read(_PROC / str(pid) / "environ"):
                return _home(pid)
            if laid_out:
                return None
        except PermissionError:
            return None
        except OSError:  # EIO: its memory is being laid out
            pass
        os.sched_yield()
    return None


def _hidden_exe(pid: int) -> str | None:
    """Return what a process of our own user calls itself, where its file is hidden.

    A process may hide itself (PR_SET_DUMPABLE). Another user's cannot be ours.
    """
    status = _read(_PROC / str(pid) / "status")
    found = re.search(rb"^Uid:\s+(\d+)", status, re.MULTILINE)
    if found is None or int(found.group(1)) != os.getuid():
        return None
    argv = _argv(pid)
    return argv[0] if argv and argv[0].startswith("/") else _stat(pid)[0]


def read_exe(pid: int) -> str | None:
    """Return the program of a process; `None` where it is gone or another user's."""
    try:
        return os.readlink(_PROC / str(pid) / "exe").removesuffix(_GONE)
    except PermissionError:
        pass
    except OSError:
        return None  # gone, or a thread of the kernel
    try:
        return _hidden_exe(pid)
    except (OSError, ValueError, IndexError):
        return None


def read_process(pid: int, exe: str) -> Process | None:
    """Return all that is needed to judge a process; `None` where it is gone."""
    home = _home(pid) or _home_in_a_moment(pid)
    if home is None and read_exe(pid) is None:
        return None  # it ended meanwhile
    try:
        _, state, parent, at = _stat(pid)
        argv = _argv(pid)
    except (OSError, ValueError, IndexError):
        return None
    if state in "ZX":
        return None
    if home is None and not argv:
        return None  # still between two: it has not run one instruction of this one
    return Process(pid=pid, parent=parent, started=at, exe=exe, argv=argv, home=home)


def running_file(pid: int) -> str | None:
    """Return a path to the very file that a process runs, deleted or not."""
    return str(_PROC / str(pid) / "exe")


def ancestors(process: Process) -> list[Process]:
    """Return a process's parents, nearest first, as far as they can be read."""
    line: list[Process] = []
    pid = process.parent
    while pid > 1 and len(line) < ANCESTORS:
        try:
            _, _, parent, at = _stat(pid)
        except (OSError, ValueError, IndexError):
            break
        exe = read_exe(pid) or ""
        line.append(
            Process(pid=pid, parent=parent, started=at, exe=exe, argv=(), home=None)
        )
        pid = parent
    return line


def lock_owners() -> Owners:
    """Return who holds which file exclusively: (major, minor, inode) → pid."""
    owners: Owners = {}
    for line in _read(_PROC / "locks").decode(errors="replace").splitlines():
        fields = line.split()
        if len(fields) < 6 or fields[1] != "FLOCK" or fields[3] != "WRITE":
            continue  # `->` in the second field marks one that only waits
        major, minor, inode = fields[5].split(":")
        owners[int(major, 16), int(minor, 16), int(inode)] = int(fields[4])
    return owners


def thread_holder(home: Path, thread_id: str, owners: Owners) -> int | None:
    """Return the pid that has Codex's writer lock of a thread.

    The lock file is neither opened nor locked: taking it to find out would keep its
    rightful owner out for that moment.
    """
    path = lock_path(home, thread_id)
    try:
        found = path.stat() if path else None
    except OSError:
        return None
    if found is None:
        return None
    device = os.major(found.st_dev), os.minor(found.st_dev)
    pid = owners.get((*device, found.st_ino))
    if pid is not None:
        return pid
    # Some file systems (btrfs, overlays) tell two numbers for one device: there the
    # inode counts, if that process has the very file open.
    for (_, _, inode), owner in owners.items():
        if inode == found.st_ino and _has_open(owner, str(path)):
            return owner
    return None


def held_locks(home: Path, pid: int) -> int:
    """Return how many threads' lock files of this CODEX_HOME a process has open."""
    folder = f"{os.path.realpath(home)}/{FOLDER}/"
    try:
        names = os.listdir(_PROC / str(pid) / "fd")
    except OSError:
        return 0
    held = 0
    for name in names:
        try:
            held += os.readlink(_PROC / str(pid) / "fd" / name).startswith(folder)
        except OSError:
            continue
    return held


def _has_open(pid: int, path: str) -> bool:
    try:
        names = os.listdir(_PROC / str(pid) / "fd")
    except OSError:
        return False
    wanted = os.path.realpath(path)
    for name in names:
        try:
            if os.readlink(_PROC / str(pid) / "fd" / name) == wanted:
                return True
        except OSError:
            continue
    return False
