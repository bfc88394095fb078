"""Promises about time, on a machine that may have other things to do, and about memory."""

import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

_SLACK: Final = (
    2.0  # load is an average of the last minute: it tells late of what is new
)


def in_time(seconds: float) -> float:
    """Return what `seconds` on a machine at rest may take on this one as it is now.

    Only for what is promised in seconds. A deadline against hanging is no such promise:
    it is long enough for every machine.
    """
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    return seconds * max(1.0, _SLACK * busy)


async def quickest(act: Callable[[], Awaitable[object]], *, times: int = 5) -> float:
    """Return how long the quickest of so many calls took, in seconds.

    The others may have met something else that this machine had to do.
    """
    took: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        await act()
        took.append(time.perf_counter() - began)
    return min(took)


def resident() -> int:
    """Return this process's resident bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
