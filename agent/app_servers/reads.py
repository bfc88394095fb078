"""How much of the reader one device may have at once. Trio shell.

The reader takes 64 requests at a time and refuses more. A device with many sessions, or a
few together, could fill it, and then nobody else reads or sends. So more than a device's
share waits its turn, and then for its turn among all devices: nobody has more than a share
in that line, so who comes is soon at its head. The owner never waits for a device.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio

from agent.access.scopes import LOCAL
from agent.edge_limits import READS_A_DEVICE, READS_AT_ONCE


class Reads:
    """One waiting line for each device that reads now, in order of arrival."""

    def __init__(self) -> None:
        self._lines: dict[str, trio.CapacityLimiter] = {}
        self._all = trio.CapacityLimiter(READS_AT_ONCE)

    @asynccontextmanager
    async def turn(self, device_id: str) -> AsyncGenerator[None]:
        """Wait for a place, without a checkpoint where there is one, and have it."""
        limiter = trio.CapacityLimiter(READS_A_DEVICE)
        limiter = self._lines.setdefault(device_id, limiter)
        try:
            async with _place(limiter):
                if device_id == LOCAL:
                    yield
                else:
                    async with _place(self._all):
                        yield
        finally:
            stats = limiter.statistics()
            if not stats.borrowed_tokens and not stats.tasks_waiting:
                self._lines.pop(device_id, None)


@asynccontextmanager
async def _place(limiter: trio.CapacityLimiter) -> AsyncGenerator[None]:
    """Hold a place for this block; several of one task are several."""
    place = object()
    try:
        limiter.acquire_on_behalf_of_nowait(place)
    except trio.WouldBlock:
        await limiter.acquire_on_behalf_of(place)
    try:
        yield
    finally:
        limiter.release_on_behalf_of(place)
