"""The machine's processes and its file locks, on this platform. Blocking I/O.

One module a platform, all with the functions of `ProcessTable`.
"""

import sys
from pathlib import Path
from typing import Final, Protocol

from agent.gate.engines import Process
from agent.gate.lock_path import Owners

if sys.platform == "darwin":
    from agent.gate import proctable_darwin as _platform
else:
    from agent.gate import proctable_linux as _platform


class ProcessTable(Protocol):
    """What every platform's module offers. Nothing in it blocks for long.

    Raises: OSError, ProcessTableError where nothing can be told of any process.
    """

    def fork_counter(self) -> bytes:
        """Return a value that changes whenever the set of pids does."""
        ...

    def uptime_s(self) -> float:
        """Return the clock that `Process.started` is told in, now."""
        ...

    def boot_ms(self) -> int:
        """Return when that clock began, in ms since the epoch."""
        ...

    def pids(self) -> list[int]:
        """Return all pids."""
        ...

    def started(self, pid: int) -> float | None:
        """Return when a living process began; `None` where it is gone or a zombie."""
        ...

    def read_exe(self, pid: int) -> str | None:
        """Return the program of a process; `None` where it is gone or another user's."""
        ...

    def read_process(self, pid: int, exe: str) -> Process | None:
        """Return all that is needed to judge a process; `None` where it is gone."""
        ...

    def running_file(self, pid: int) -> str | None:
        """Return a path to the very file that a process runs, where there is one."""
        ...

    def ancestors(self, process: Process) -> list[Process]:
        """Return a process's parents, nearest first, as far as they can be read."""
        ...

    def lock_owners(self) -> Owners:
        """Return who holds which lock file."""
        ...

    def thread_holder(self, home: Path, thread_id: str, owners: Owners) -> int | None:
        """Return the pid that has Codex's writer lock of a thread."""
        ...

    def held_locks(self, home: Path, pid: int) -> int:
        """Return how many threads' lock files of this CODEX_HOME a process has open."""
        ...


HERE: Final[ProcessTable] = _platform
