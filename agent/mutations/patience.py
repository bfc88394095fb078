"""A mutation that is refused for now is tried again while its client waits. Trio shell.

PROTOCOL.md section 4 (`waitMs`).
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from agent.gate.gatekeeper import GateKeeper
from agent.gate.writers import Watch
from agent.limits import LOCK_POLL_S
from transport.errors import CodexUnavailable, Refusal, ThreadOwnedElsewhere

R = TypeVar("R")


class Patience:
    """Waits for the gate, or for a lock of somebody else."""

    def __init__(self, *, keeper: GateKeeper, watch: Watch) -> None:
        self._keeper = keeper
        self._watch = watch

    async def attempting(
        self, wait_ms: int, thread_id: str | None, attempt: Callable[[], Awaitable[R]]
    ) -> R:
        """Try again while the client has patience. No lock is held in between."""
        deadline = trio.current_time() + wait_ms / 1_000
        while True:
            try:
                return await attempt()
            except (CodexUnavailable, ThreadOwnedElsewhere) as refusal:
                if not refusal.retryable or trio.current_time() >= deadline:
                    raise
                with trio.move_on_at(deadline) as patience:
                    await self._wait_for_change(refusal, thread_id)  # noqa: ASYNC120
                if patience.cancelled_caught:
                    raise

    async def _wait_for_change(self, refusal: Refusal, thread_id: str | None) -> None:
        # At least one pause: what refused may not be what we can see from here.
        await trio.sleep(LOCK_POLL_S)
        if isinstance(refusal, CodexUnavailable):
            await self._keeper.wait_open()
            return
        assert thread_id is not None
        while self._watch.holders([thread_id]):  # noqa: ASYNC110 - nothing tells of a foreign lock's end
            await trio.sleep(LOCK_POLL_S)
