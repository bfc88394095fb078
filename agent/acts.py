"""Mutations and answers that run on when their client is gone. Trio shell.

PROTOCOL.md section 4 (Request keys): an act that has begun ends with a recorded outcome,
so it must not be cancelled half way because a phone lost its network. Whoever comes back
repeats the call with its key and gets the outcome.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial

import trio

from agent.edge_limits import ACTS_A_DEVICE
from transport.errors import Overloaded


class Acts:
    """Runs acts in the Agent's own nursery, a bounded number for each device."""

    def __init__(self, handler_nursery: trio.Nursery) -> None:
        self._nursery = handler_nursery
        self._running: Counter[str] = Counter()

    def check_room(self, device_id: str) -> None:
        """Raise `Overloaded` where the device has too many acts under way."""
        if self._running[device_id] >= ACTS_A_DEVICE:
            raise Overloaded(
                f"{ACTS_A_DEVICE} acts of this device are under way; wait for one.",
                data={"limit": ACTS_A_DEVICE},
                retry_after_ms=1_000,
            )

    async def start(self, device_id: str, act: Callable[[], Awaitable[None]]) -> None:
        """Start one; return when it has come to its first wait."""
        await self._nursery.start(partial(self._run, device_id, act))

    async def _run(
        self,
        device_id: str,
        act: Callable[[], Awaitable[None]],
        *,
        task_status: trio.TaskStatus[None],
    ) -> None:
        self._running[device_id] += 1
        task_status.started()
        try:
            await act()
        finally:
            self._running[device_id] -= 1
            if not self._running[device_id]:
                del self._running[device_id]
