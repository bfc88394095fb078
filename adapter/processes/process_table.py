"""Who a process is and what came from it, on this platform. Blocking I/O."""

import signal
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final, Protocol

from adapter.processes.identity import Held, Identity, Row

if sys.platform == "darwin":
    from adapter.processes import process_table_darwin as _platform
else:
    from adapter.processes import process_table_linux as _platform


class ProcessTable(Protocol):
    """What every platform's module offers.

    Each look raises OSError where no descriptor or no memory is left for it: that is not
    "gone".
    """

    def identify(self, pid: int) -> Identity | None:
        """Return who has this pid now; `None` where nobody lives."""
        ...

    def rows(self) -> Iterable[Row]:
        """Read the whole table."""
        ...

    def marked(self, entry: str) -> list[int]:
        """Return the living processes of ours whose environment has `NAME=value`."""
        ...

    def hold(self, identity: Identity) -> Held | None:
        """Return exactly this process, to be released; `None`: it has ended."""
        ...

    def send(self, held: Held, number: signal.Signals) -> None:
        """Signal it. Raises: ProcessLookupError, PermissionError."""
        ...

    def wait_gone(self, left: Sequence[Held], seconds: float) -> list[Held]:
        """Wait until they have ended; return those that still live."""
        ...

    def release(self, _held: Held, /) -> None:
        """Let go of it; to be called once."""
        ...


HERE: Final[ProcessTable] = _platform


def identify(pid: int) -> Identity | None:
    """Return who has this pid now; `None` where nobody lives (a zombie does not)."""
    return HERE.identify(pid)


def children(pid: int, *, table: ProcessTable = HERE) -> list[int]:
    """Return the pids whose parent is `pid`, one look at the whole table."""
    return [row.pid for row in table.rows() if row.parent == pid]


def group(leader: int, *, table: ProcessTable = HERE) -> list[int]:
    """Return the living pids of a process group; its leader may be gone."""
    return [row.pid for row in table.rows() if row.group == leader and not row.dead]


@contextmanager
def holding(
    processes: Iterable[Identity], table: ProcessTable = HERE
) -> Generator[list[Held]]:
    """Hold those of them that live, for the length of the block. Raises: OSError."""
    with ExitStack() as stack:
        held: list[Held] = []
        for identity in processes:
            if (one := table.hold(identity)) is not None:
                stack.callback(table.release, one)
                held.append(one)
        yield held
