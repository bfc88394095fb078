"""How much of the reader one device may have at once. Trio shell.

The reader takes 64 requests at a time and refuses more. A device with many sessions, or a
few together, could fill it, and then nobody else reads or sends. So more than a device's
share waits its turn, and then for its turn among all devices: nobody has more than a share
in that line, so who comes is soon at its head. The owner never waits for a device.

A device that asks and does not take the answers would have us keep them: for one that has
`UNSENT_A_DEVICE` of them nothing is read, in none of its sessions, until it took some.
"""

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio

from agent.access.scopes import LOCAL
from agent.changes import Changes
from agent.edge_limits import READS_A_DEVICE, READS_AT_ONCE, UNSENT_A_DEVICE


class Reads:
    """One waiting line for each device that reads now, in order of arrival."""

    def __init__(self) -> None:
        self._lines: dict[str, trio.CapacityLimiter] = {}
        self._all = trio.CapacityLimiter(READS_AT_ONCE)
        self._unsent: Counter[str] = Counter()
        self._taken = Changes()

    def note_unsent(self, device_id: str, more: int) -> None:
        """So many bytes of answers more (or fewer) wait for the device to take them."""
        self._unsent[device_id] += more
        if not self._unsent[device_id]:
            del self._unsent[device_id]
        if more < 0:
            self._taken.ring()

    def unsent(self, device_id: str) -> int:
        """Return how many bytes of answers wait for the device to take them."""
        return self._unsent[device_id]

    @asynccontextmanager
    async def turn(self, device_id: str) -> AsyncGenerator[None]:
        """Wait for a place, without a checkpoint where there is one, and have it."""
        limiter = trio.CapacityLimiter(READS_A_DEVICE)
        limiter = self._lines.setdefault(device_id, limiter)
        try:
            async with _place(limiter):
                while self._unsent[device_id] > UNSENT_A_DEVICE:
                    await self._taken.wait()
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
