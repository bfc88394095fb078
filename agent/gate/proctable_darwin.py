"""The processes of macOS and what they have open, through psutil. Blocking I/O.

Tested on Linux, where psutil tells the same, and with written-down process tables of
Macs; it has not been run on a Mac. What differs there:

- No fork counter: the set of pids stands for it.
- Start times are told by the wall clock, so `boot_ms` is 0.
- No table of file locks. Codex closes a lock file when it gives the lock up, so who has
  one open counts as its holder. `lsof` would take a process and a fraction of a second;
  psutil asks the kernel for the open files of those few programs alone whose path names
  Codex. Who is not found is not named: Codex's own lock stands all the same.
- The environment of a hardened program is hidden: its CODEX_HOME counts as ours.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from agent.clocks import wall_ms
from agent.gate.engines import Process
from agent.gate.lock_path import FOLDER, Owners, lock_path
from agent.limits import ANCESTORS

_HOLDERS: Final = ("codex", "chatgpt")  # in the path of what can hold a thread
_SUFFIX: Final = ".lock"
# As it first was: psutil tells another start where the clock was set since.
KNOWN: Final[dict[int, psutil.Process]] = {}


def fork_counter() -> bytes:
    """Return a value that changes whenever the set of pids does."""
    return b",".join(b"%d" % pid for pid in sorted(psutil.pids()))


def uptime_s() -> float:
    """Return the clock that `Process.started` is told in: the wall clock."""
    return wall_ms() / 1_000


def boot_ms() -> int:
    """Return when that clock began: with the epoch."""
    return 0


def pids() -> list[int]:
    """Return all pids."""
    alive = psutil.pids()
    for gone in KNOWN.keys() - set(alive):
        del KNOWN[gone]
    return alive


def started(pid: int) -> float | None:
    """Return when a living process began; `None` where it is gone or a zombie."""
    try:
        process = KNOWN.get(pid)
        if process is None or not process.is_running():
            process = KNOWN[pid] = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return process.create_time()
    except (psutil.Error, OSError):
        KNOWN.pop(pid, None)
        return None


def _environ(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except (psutil.Error, OSError, ValueError):
        return {}


def _home(process: psutil.Process) -> str | None:
    """Return the CODEX_HOME of a process, links followed; `None` where not readable."""
    environ = _environ(process)
    home = environ.get("CODEX_HOME")
    if not home:
        user = environ.get("HOME")
        if not user:
            return None
        home = f"{user}/.codex"
    if not os.path.isabs(home):
        return None  # it leads from where the process was when it began
    return os.path.realpath(home)


def _argv(process: psutil.Process) -> tuple[str, ...]:
    try:
        return tuple(process.cmdline())
    except psutil.AccessDenied:
        return ()  # what was started to do we do not know what counts as a writer


def _program(process: psutil.Process) -> str:
    """Return its executable, or what it calls itself where the file is gone."""
    with suppress(psutil.AccessDenied):
        if exe := process.exe():
            return exe
    argv = _argv(process)
    return argv[0] if argv and argv[0].startswith("/") else process.name()


def read_exe(pid: int) -> str | None:
    """Return the program of a process; `None` where it is gone or another user's."""
    try:
        process = psutil.Process(pid)  # a new one: psutil would remember the program
        with process.oneshot():
            if process.uids().real != os.getuid():
                return None
            return _program(process)
    except (psutil.Error, OSError, ValueError):
        return None


def read_process(pid: int, exe: str) -> Process | None:
    """Return all that is needed to judge a process; `None` where it is gone."""
    at = started(pid)
    if at is None:
        return None
    try:
        process = psutil.Process(pid)
        parent, argv, home = process.ppid(), _argv(process), _home(process)
    except (psutil.Error, OSError, ValueError):
        return None
    if home is None and read_exe(pid) is None:
        return None  # it ended meanwhile
    return Process(pid=pid, parent=parent, started=at, exe=exe, argv=argv, home=home)


def running_file(pid: int) -> str | None:
    """Return the file that a process runs; `None` where it was changed since it began.

    An update in its place would answer for what does not run.
    """
    at, exe = started(pid), read_exe(pid)
    if at is None or exe is None:
        return None
    try:
        changed = os.stat(exe).st_ctime
    except OSError:
        return None
    return exe if changed < at else None


def ancestors(process: Process) -> list[Process]:
    """Return a process's parents, nearest first, as far as they can be read."""
    line: list[Process] = []
    pid = process.parent
    while pid > 1 and len(line) < ANCESTORS:
        at = started(pid)
        try:
            parent = psutil.Process(pid).ppid()
        except (psutil.Error, OSError):
            break
        if at is None:
            break
        exe = read_exe(pid) or ""
        line.append(
            Process(pid=pid, parent=parent, started=at, exe=exe, argv=(), home=None)
        )
        pid = parent
    return line


def _open_locks(pid: int) -> list[str]:
    try:
        files = psutil.Process(pid).open_files()
    except (psutil.Error, OSError):
        return []
    return [
        file.path
        for file in files
        if file.path.endswith(_SUFFIX) and f"/{FOLDER}/" in file.path
    ]


def lock_owners() -> Owners:
    """Return which of Codex's programs has which thread's lock file open."""
    owners: Owners = {}
    for pid in psutil.pids():
        exe = (read_exe(pid) or "").lower()
        if any(word in exe for word in _HOLDERS):
            for path in _open_locks(pid):
                if (key := _key(path)) is not None:
                    owners.setdefault(key, pid)
    return owners


def _key(path: str | Path | None) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path) if path is not None else None
    except OSError:
        return None
    return found and (os.major(found.st_dev), os.minor(found.st_dev), found.st_ino)


def thread_holder(home: Path, thread_id: str, owners: Owners) -> int | None:
    """Return the pid that has the lock file of a thread open.

    The file is neither opened nor locked: that would keep its rightful owner out.
    """
    key = _key(lock_path(home, thread_id))
    return owners.get(key) if key is not None else None


def held_locks(home: Path, pid: int) -> int:
    """Return how many threads' lock files of this CODEX_HOME a process has open."""
    folder = _key(home / FOLDER)
    return sum(_key(os.path.dirname(path)) == folder for path in _open_locks(pid))
