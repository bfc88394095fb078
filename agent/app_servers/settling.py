"""What may begin by itself in a thread of ours once a turn has ended. Trio shell.

PROTOCOL.md section 3 (Lease). Codex has a queue of its own, and goals, that any program
may fill: when a turn ends, the next begins within some 10 ms. A process that ends in that
moment has taken the message, and nobody answers it; a message of ours that comes in that
moment goes into a turn that is not ours. So both wait until it is known what follows.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import trio

from adapter.errors import AdapterError
from adapter.runtime.reader import PendingWork
from agent.app_servers.lease import Lease
from agent.limits import NEXT_TURN_S, QUEUE_LOOK_S, QUEUE_TAKE_S
from transport.errors import Refusal

Pending = Callable[[str], Awaitable[PendingWork]]
"""What others left in a thread that may begin by itself. Raises: AdapterError, Refusal."""


class Settling:
    """Waits until it is known whether anything follows. `pending`: asks the store."""

    def __init__(self, pending: Pending) -> None:
        self._pending = pending

    async def settle(self, lease: Lease) -> None:
        """Return when a turn runs in the lease's thread, or none will begin by itself.

        At once where none has ended lately, or the writer is to end whatever it does; else
        after NEXT_TURN_S, QUEUE_TAKE_S at most.
        """
        while (ended := lease.ended_at) is not None and lease.runs_nothing:
            if lease.to_end.is_set():
                return  # whatever follows
            if trio.current_time() < ended + NEXT_TURN_S:
                with trio.move_on_at(ended + NEXT_TURN_S):
                    await lease.changes.wait()
            elif await self._follows(lease, ended):
                await trio.sleep(QUEUE_LOOK_S)
            elif lease.ended_at == ended:
                lease.ended_at = None

    async def look_for_goal(self, lease: Lease) -> None:
        """Note whether somebody gave the thread a goal behind its writer's back."""
        if lease.ended_at in (None, lease.looked_at):
            return
        lease.looked_at = lease.ended_at
        until = trio.current_time() + QUEUE_TAKE_S
        work = await self._asked(lease, until=until)
        lease.has_goal = lease.has_goal or (work is not None and work.goal is not None)

    async def _follows(self, lease: Lease, ended: float) -> bool:
        if trio.current_time() >= ended + QUEUE_TAKE_S:
            return False  # after an interrupt, say: it waits for the next turn
        work = await self._asked(lease, until=ended + QUEUE_TAKE_S)
        return work is None or bool(work)

    async def _asked(self, lease: Lease, *, until: float) -> PendingWork | None:
        """Ask the store; `None`: nobody can tell, or not by then."""
        if lease.thread_id is None:
            return PendingWork()
        work: PendingWork | None = None
        with trio.move_on_at(until), suppress(AdapterError, Refusal):
            work = await self._pending(lease.thread_id)
        return work
