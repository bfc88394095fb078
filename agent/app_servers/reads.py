"""How much of the reader one device may have at once. Trio shell.

The reader takes 64 requests at a time and refuses more. A device with many sessions, or a
few together, could fill it, and then nobody else reads or sends. So more than a device's
share waits its turn, and then for its turn among all devices: nobody has more than a share
in that line, so who comes is soon at its head. The owner never waits for a device.

A device that asks and does not take the answers would have us keep them: for one that has
`UNSENT_A_DEVICE` of them nothing is read, in none of its sessions, until it took some.
Where all devices together have `UNSENT_ALL`, whoever still holds some waits, and who has
taken all of its own reads on, one answer at a time: so those that hold most wait longest.
"""

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import trio

from agent.access.scopes import LOCAL
from agent.changes import Changes
from agent.edge_limits import (
    READS_A_DEVICE,
    READS_AT_ONCE,
    UNSENT_A_DEVICE,
    UNSENT_ALL,
)


class Reads:
    """One waiting line for each device that reads now, in order of arrival."""

    def __init__(self) -> None:
        self._lines: dict[str, trio.CapacityLimiter] = {}
        self._all = trio.CapacityLimiter(READS_AT_ONCE)
        self._unsent: Counter[str] = Counter()
        self._unsent_remote = 0
        self._reading: Counter[str] = Counter()
        self._changed = Changes()

    def note_unsent(self, device_id: str, more: int) -> None:
        """So many bytes of answers more (or fewer) wait for the device to take them."""
        self._unsent[device_id] += more
        if not self._unsent[device_id]:
            del self._unsent[device_id]
        if device_id != LOCAL:
            self._unsent_remote += more
        if more < 0:
            self._changed.ring()

    def unsent(self, device_id: str) -> int:
        """Return how many bytes of answers wait for the device to take them."""
        return self._unsent[device_id]

    @asynccontextmanager
    async def turn(self, device_id: str) -> AsyncGenerator[None]:
        """Wait for a place, without a checkpoint where there is one, and have it."""
        limiter = trio.CapacityLimiter(READS_A_DEVICE)
        limiter = self._lines.setdefault(device_id, limiter)
        try:
            async with _place(limiter), self._taken_up(device_id):
                yield
        finally:
            stats = limiter.statistics()
            if not stats.borrowed_tokens and not stats.tasks_waiting:
                self._lines.pop(device_id, None)

    @asynccontextmanager
    async def _taken_up(self, device_id: str) -> AsyncGenerator[None]:
        """Wait until the device takes its answers, and for a place among all devices."""
        async with AsyncExitStack() as places:
            while True:
                while not self._may_read(device_id):
                    await self._changed.wait()
                if device_id == LOCAL:
                    break
                await places.enter_async_context(_place(self._all))
                if self._may_read(device_id):  # others' answers have come meanwhile
                    break
                await places.aclose()
            self._reading[device_id] += 1
            try:
                yield
            finally:
                self._reading[device_id] -= 1
                if not self._reading[device_id]:
                    del self._reading[device_id]
                self._changed.ring()

    def _may_read(self, device_id: str) -> bool:
        held = self._unsent[device_id]
        if held > UNSENT_A_DEVICE:
            return False
        if device_id == LOCAL or self._unsent_remote <= UNSENT_ALL:
            return True
        return not held and not self._reading[device_id]


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
