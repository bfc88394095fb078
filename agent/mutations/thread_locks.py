"""One mutation at a time on one thread. Trio shell. PROTOCOL.md section 3."""

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio


class ThreadLocks:
    """A lock for each thread that anybody wants right now; first come, first served."""

    def __init__(self) -> None:
        self._locks: dict[str, trio.Lock] = {}
        self._wanted: Counter[str] = Counter()

    def is_taken(self, thread_id: str) -> bool:
        """Whether somebody has the thread's lock, or waits for it."""
        return thread_id in self._locks

    @asynccontextmanager
    async def holding(self, thread_id: str) -> AsyncGenerator[None]:
        """Hold the thread's lock for the length of the block."""
        lock = self._locks.setdefault(thread_id, trio.Lock())
        self._wanted[thread_id] += 1
        try:
            async with lock:
                yield
        finally:
            self._wanted[thread_id] -= 1
            if not self._wanted[thread_id]:
                del self._wanted[thread_id]
                del self._locks[thread_id]
