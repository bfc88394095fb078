"""Mutations and answers that run on when their client is gone. Trio shell.

PROTOCOL.md section 3 (Request keys): an act that has begun ends with a recorded outcome,
so it must not be cancelled half way because a phone lost its network. Whoever comes back
repeats the call with its key and gets the outcome.
"""

from collections.abc import Awaitable, Callable
from functools import partial

import trio

from agent.changes import Changes
from agent.edge_limits import ACTS_A_DEVICE
from transport.errors import Overloaded


class Acts:
    """Runs acts in the Agent's own nursery, a bounded number for each device."""

    def __init__(self, handler_nursery: trio.Nursery) -> None:
        self._nursery = handler_nursery
        self._scopes: dict[str, set[trio.CancelScope]] = {}
        self._ended = Changes()

    def check_room(self, device_id: str) -> None:
        """Raise `Overloaded` where the device has too many acts under way."""
        if len(self._scopes.get(device_id, ())) >= ACTS_A_DEVICE:
            raise Overloaded(
                f"{ACTS_A_DEVICE} acts of this device are under way; wait for one.",
                data={"limit": ACTS_A_DEVICE},
                retry_after_ms=1_000,
            )

    async def start(self, device_id: str, act: Callable[[], Awaitable[None]]) -> None:
        """Start one; return when it has come to its first wait."""
        await self._nursery.start(partial(self._run, device_id, act))

    async def stop(self, device_id: str) -> None:
        """Cancel the device's acts; return when none is left.

        What was handed to Codex is carried to its recorded end all the same.
        """
        for scope in self._scopes.get(device_id, ()):
            scope.cancel(reason="the device was revoked")
        while self._scopes.get(device_id):
            await self._ended.wait()

    async def _run(
        self,
        device_id: str,
        act: Callable[[], Awaitable[None]],
        *,
        task_status: trio.TaskStatus[None],
    ) -> None:
        task_status.started()
        with trio.CancelScope() as scope:
            running = self._scopes.setdefault(device_id, set())
            running.add(scope)
            try:
                await act()
            finally:
                running.discard(scope)
                if not running:
                    self._scopes.pop(device_id, None)
                self._ended.ring()
