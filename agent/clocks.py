"""The clocks that are not Trio's. Blocking I/O."""

import time
from typing import Final

# macOS has no CLOCK_BOOTTIME: its CLOCK_MONOTONIC goes on while the machine sleeps.
_BOOT: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def wall_ms() -> int:
    """Return the wall clock in ms since the epoch: for people, never for deadlines."""
    return time.time_ns() // 1_000_000


def boot_s() -> float:
    """Return seconds of a clock that goes on while the machine sleeps."""
    return time.clock_gettime(_BOOT)
