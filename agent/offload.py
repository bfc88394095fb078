"""Work that waits for a disk, done beside the event loop. Trio shell.

An fsync may take 100 ms; Codex's output must not wait for it. A piece of work that has
begun is never abandoned: a cancellation is told only before or after it.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

import trio

T = TypeVar("T")


class Runner(Protocol):
    """Runs plain blocking work and returns its result."""

    async def __call__(self, work: Callable[[], T], /) -> T: ...


async def in_thread(work: Callable[[], T], /) -> T:
    """Run `work` in a worker thread."""
    return await trio.to_thread.run_sync(work)
