"""The clocks that are not Trio's. Blocking I/O."""

import time
from functools import cache
from pathlib import Path
from typing import Final

from agent.records.ages import Instant

# macOS has no CLOCK_BOOTTIME: its CLOCK_MONOTONIC goes on while the machine sleeps.
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_BOOT: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def wall_ms() -> int:
    """Return the wall clock in ms since the epoch: for people, never for deadlines."""
    return time.time_ns() // 1_000_000


def boot_s() -> float:
    """Return seconds of a clock that goes on while the machine sleeps."""
    return time.clock_gettime(_BOOT)


def up_ms() -> int:
    """Return the same in ms: what deadlines are counted on."""
    return round(boot_s() * 1_000)


def instant() -> Instant:
    """Return what all clocks say now."""
    return Instant(wall=wall_ms(), boot=_boot(), up=up_ms())


@cache
def _boot() -> str:
    """Return what names the machine's start.

    Asked once: while we run it stays the same, and where no descriptor is left it could
    not be told. Another one would make everything on record as old as the machine is up.
    """
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:  # macOS
        return ""
