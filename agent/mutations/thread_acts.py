"""Rename, archive, unarchive, delete: acts on a thread that need not be loaded. Trio shell.

PROTOCOL.md sections 3 and 4. They go through the reader. A rename leaves a lease of ours
as it is; before the others our own idle one is ended, and its process is gone when the
act is sent. What is wanted is compared with the thread as it is read back: so an act that
nobody answered can be known to have happened.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

import trio

from adapter.errors import AdapterError, NoAnswerError
from adapter.runtime.acts import Guard
from agent.access.scopes import Caller, check_alive
from agent.app_servers.lease import Lease
from agent.limits import LEASE_IDLE_S
from agent.mutations.carry import Sent
from agent.mutations.newest_turn import check_idle
from agent.mutations.refusals import is_lock, owned_elsewhere, running
from agent.mutations.thread_wishes import Wish
from agent.mutations.way import Way
from agent.records.flight import Flight, Settled
from agent.records.key_row import KeyRow
from transport.errors import Refusal
from transport.protocol.base import ThreadMutationParams, WireModel
from transport.protocol.threads import Thread

P = TypeVar("P", bound=ThreadMutationParams)
R = TypeVar("R", bound=WireModel)


class ThreadActs:
    """All of them, by what is wished. `judged`: threads as they stand."""

    def __init__(self, way: Way, *, judged: Callable[[Thread], Thread]) -> None:
        self._way = way
        self._judged = judged

    def act(self, wish: Wish[P, R]) -> "ThreadAct[P, R]":
        """Return the act that carries the wish out."""
        return ThreadAct(self._way, wish, self._judged)


class ThreadAct(Generic[P, R]):
    """One kind of act, under the lock of its thread."""

    def __init__(
        self, way: Way, wish: Wish[P, R], judged: Callable[[Thread], Thread]
    ) -> None:
        self._way = way
        self._wish = wish
        self._judged = judged

    def check(self, _caller: Caller, params: P) -> None:
        """Raise `InvalidParams` for what cannot be meant."""
        self._wish.check(params)

    async def run(self, caller: Caller, params: P, flight: Flight) -> R:
        """Look, end our own writer where it is in the way, act, read back."""
        wish, thread_id = self._wish, params.thread_id
        check_alive(caller)
        self._way.keeper.check(thread_id)
        before = await self._way.sight.thread(caller, thread_id)
        if wish.is_so(before, params):
            return wish.result(self._judged(before))
        wish.check_thread(before)
        lease = self._way.leases.lease_of(thread_id)
        if wish.ends_lease and lease is not None:
            await self._let_go(lease, thread_id)

        async def steps(sent: Sent) -> R:
            await self._way.ledger.hand(flight)
            guard = self._way.guard(caller, thread_id)
            await self._send(params, sent.behind(guard))
            result = await self._outcome(caller, params, before)
            await self._way.ledger.done(flight, result)
            return result

        return await self._way.carrier.carry(flight, None, steps)

    async def settled(self, caller: Caller, params: P, _row: KeyRow) -> Settled[R]:
        """Return the result where an act of unknown outcome has happened after all."""
        if not await self._has_happened(params):
            return Settled()
        if self._wish.leaves_nothing:
            return Settled(result=self._wish.result(None))
        thread = await self._way.sight.thread(caller, params.thread_id)
        return Settled(result=self._wish.result(self._judged(thread)))

    async def _send(self, params: P, guard: Guard) -> None:
        acts = self._way.supervisor.reader.acts
        try:
            await self._wish.send(acts, params, guard)
        except NoAnswerError:
            if not await self._has_happened(params):  # noqa: ASYNC120 - the read-back decides
                raise
        except AdapterError as exc:
            if not is_lock(exc):
                raise
            thread_id = params.thread_id
            raise owned_elsewhere(thread_id, self._way.holder(thread_id)) from exc

    async def _has_happened(self, params: P) -> bool:
        try:
            thread = await self._way.supervisor.reader.read_thread(params.thread_id)
        except AdapterError as exc:
            return self._wish.shows_in(exc)
        except Refusal:
            return False
        return self._wish.is_so(thread, params)

    async def _outcome(self, caller: Caller, params: P, before: Thread) -> R:
        """Read back. What was done stays done where that fails."""
        if self._wish.leaves_nothing:
            return self._wish.result(None)
        wished = self._wish.applied(before, params)
        lease = self._way.leases.lease_of(params.thread_id)
        if lease is not None and lease.key == params.thread_id:
            lease.renamed = wished.title
        try:
            thread = await self._way.sight.thread(caller, params.thread_id)
        except Refusal:
            thread = wished
        thread = self._judged(thread)
        if not thread.archived:  # else the reader says that it is gone from the lists
            self._way.tell(thread)
        return self._wish.result(thread)

    async def _let_go(self, lease: Lease, thread_id: str) -> None:
        """End our own idle writer of the thread. Raises: Conflict (running)."""
        check_idle(lease)
        if lease.key != thread_id:
            raise running(
                None,
                "This is a sub-agent's thread, and its parent is being worked in "
                f"({lease.key}). Nothing was done; try again later.",
            )
        writer = lease.started_writer
        with trio.move_on_after(LEASE_IDLE_S):
            await writer.wait_idle()
        await self._way.pool.settle(lease)
        check_idle(lease)
        if writer.busy:
            raise running(
                None,
                "Something still runs in this thread (a command in the background, a "
                "goal, or a question that waits); nothing was done. Stop it, or wait.",
            )
        await self._way.pool.end(lease)
