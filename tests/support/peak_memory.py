"""The most memory that this process, the Agent in it, has in use within a block."""

import gc
import tracemalloc
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

MB: Final = 1024 * 1024


@contextmanager
def measured() -> Generator[Callable[[], float]]:
    """Measure in the block; what is yielded tells the peak so far, in MB more than before.

    It is what Python has in use: what the allocator holds differs from run to run. All is
    slower meanwhile: no promise about time is tested in such a block.
    """
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        yield lambda: (tracemalloc.get_traced_memory()[1] - before) / MB
    finally:
        tracemalloc.stop()
