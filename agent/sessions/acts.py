"""Acts that run on when who asked for them is gone. Trio shell.

PROTOCOL.md section 3 (Request keys): an act that has begun ends with a recorded outcome,
so it must not be cancelled half way because a phone lost its network. Whoever comes back
repeats the call with its key and gets the outcome. What the owner begins (`carry`) is
done too, though a terminal was closed on it.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Generic, TypeVar

import trio

from agent.changes import Changes
from agent.edge_limits import ACTS_A_DEVICE
from transport.errors import Internal, Overloaded

T = TypeVar("T")


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
        scope = trio.CancelScope()
        self._scopes.setdefault(device_id, set()).add(scope)
        await self._nursery.start(partial(self._run, device_id, scope, act))

    def cut(self, device_id: str) -> Callable[[], Awaitable[None]]:
        """Cancel the device's acts, at once. No checkpoint.

        Returns what waits until none of these is left. What was handed to Codex is
        carried to its recorded end all the same.
        """
        cut = set(self._scopes.get(device_id, ()))
        for scope in cut:
            scope.cancel(reason="the device was put out")

        async def ended() -> None:
            while cut & self._scopes.get(device_id, set()):
                await self._ended.wait()

        return ended

    def carry(self, work: Callable[[], Awaitable[T]]) -> "Carried[T]":
        """Begin an act of the owner's, which is carried to its end. No checkpoint.

        No bound counts for it: the one who shuts devices out is never turned away.
        """
        carried = Carried(work)
        self._nursery.start_soon(carried.run)
        return carried

    async def _run(
        self,
        device_id: str,
        scope: trio.CancelScope,
        act: Callable[[], Awaitable[None]],
        *,
        task_status: trio.TaskStatus[None],
    ) -> None:
        task_status.started()
        with scope:
            try:
                await act()
            finally:
                self._forget(device_id, scope)

    def _forget(self, device_id: str, scope: trio.CancelScope) -> None:
        running = self._scopes[device_id]
        running.discard(scope)
        if not running:
            del self._scopes[device_id]
        self._ended.ring()


class Carried(Generic[T]):
    """An act that ends by itself, whoever still waits for it."""

    def __init__(self, work: Callable[[], Awaitable[T]]) -> None:
        self._work = work
        self._ended = trio.Event()
        self._results: list[T] = []
        self._failure: Exception | None = None

    async def run(self) -> None:
        """Do it; once."""
        try:
            self._results.append(await self._work())
        except Exception as exc:  # noqa: BLE001 - told to who waits
            self._failure = exc
        finally:
            self._ended.set()

    async def wait(self) -> T:
        """Return its result. Raises: what it raised."""
        await self._ended.wait()
        if self._failure is not None:
            raise self._failure
        if not self._results:
            raise Internal("The Agent was closed before this was done.")
        return self._results[0]
