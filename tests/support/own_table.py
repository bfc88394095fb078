"""A process table that shows nothing of what the suite's other workers run meanwhile."""

import os
from types import SimpleNamespace
from typing import cast

import psutil

from agent.gate.proctable import ProcessTable


def without_other_workers(table: ProcessTable) -> ProcessTable:
    """Return the table without the processes that pytest's other workers have started."""

    def pids() -> list[int]:
        theirs = _of_other_workers()
        return [pid for pid in table.pids() if pid not in theirs]

    names = [name for name in dir(ProcessTable) if not name.startswith("_")]
    functions = {name: getattr(table, name) for name in names}
    return cast("ProcessTable", SimpleNamespace(**{**functions, "pids": pids}))


def _of_other_workers() -> set[int]:
    me = psutil.Process()
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return set()
    parent = me.parent()
    workers = parent.children() if parent is not None else []
    found: set[int] = set()
    for worker in workers:
        if worker != me:
            found |= {one.pid for one in worker.children(recursive=True)}
    return found
