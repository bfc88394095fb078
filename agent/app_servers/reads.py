"""How much of the reader one device may have at once. Trio shell.

The reader takes 64 requests at a time and refuses more. A device with many sessions could
fill it alone, and then nobody else reads or sends. So more than its share waits its turn.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio

from agent.edge_limits import READS_A_DEVICE


class Reads:
    """One waiting line for each device that reads now, in order of arrival."""

    def __init__(self) -> None:
        self._lines: dict[str, trio.CapacityLimiter] = {}

    @asynccontextmanager
    async def turn(self, device_id: str) -> AsyncGenerator[None]:
        """Wait for a place, without a checkpoint where there is one, and have it."""
        limiter = trio.CapacityLimiter(READS_A_DEVICE)
        limiter = self._lines.setdefault(device_id, limiter)
        try:
            limiter.acquire_nowait()
        except trio.WouldBlock:
            await limiter.acquire()
        try:
            yield
        finally:
            limiter.release()
            if not limiter.borrowed_tokens:
                self._lines.pop(device_id, None)
