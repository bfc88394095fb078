"""The most memory that this process has had, the Agent in it."""

import gc
from pathlib import Path


def peak_mb() -> float:
    """Return the most memory that this process, the Agent with it, has had so far."""
    line = next(
        one
        for one in Path("/proc/self/status").read_text().splitlines()
        if one.startswith("VmHWM")
    )
    return int(line.split()[1]) / 1024


def forget_peak() -> float:
    """Begin to measure the peak anew; return what is used now."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    return peak_mb()
