"""The way of every mutation, around what is its own. Trio shell.

PROTOCOL.md section 3, "The way", and section 4. Scope → one outcome for the key → its
thread exists for the caller → one at a time on it → `run`; all but the first two again
while the client waits.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from agent.access.scopes import Caller, check_access
from agent.mutations.patience import Patience
from agent.mutations.thread_locks import ThreadLocks
from agent.mutations.way import Way
from agent.records.flight import Flight, Settled
from agent.records.key_row import KeyRow
from agent.records.request_keys import RequestKeys
from transport.protocol.base import MutationParams, WireModel, thread_of
from transport.protocol.methods import Method
from transport.protocol.threads import Thread

P = TypeVar("P", bound=MutationParams)
R = TypeVar("R", bound=WireModel)


def _anything(_caller: Caller, _params: MutationParams) -> None:
    """Scope is all that can be told from caller and params."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation(Generic[P, R]):
    """What is a mutation's own. Each step raises `Refusal`.

    `check`: what caller and params tell. `look`: what its thread, as it is stored, tells
    before a writer is started. `run`: from the look at the gate to the recorded end.
    `settled`: what shows of it later, where nobody knows whether it happened.

    `waits`: it is tried again while its client has patience. `locks`: it is alone on its
    thread. `ends_work`: the gate may be closed. `only_ends`: it also happens where nothing
    can be recorded of it. `leaves_nothing`: its thread is gone then.
    """

    method: Method[P, R]
    check: Callable[[Caller, P], None] = _anything
    look: Callable[[Caller, P, Thread], Awaitable[None]] | None = None
    run: Callable[[Caller, P, Flight], Awaitable[R]]
    settled: Callable[[Caller, P, KeyRow], Awaitable[Settled[R]]] | None = None
    waits: bool = True
    locks: bool = True
    ends_work: bool = False
    only_ends: bool = False
    leaves_nothing: bool = False


class Passage:
    """Takes mutations along it. `locks`: of all threads."""

    def __init__(self, way: Way, locks: ThreadLocks, keys: RequestKeys) -> None:
        self._way = way
        self._locks = locks
        self._keys = keys
        self._patience = Patience(keeper=way.keeper, watch=way.watch)

    async def go(self, caller: Caller, params: P, mutation: Mutation[P, R]) -> R:
        """Go it, once for its key; return the one outcome. Raises: Refusal."""
        check_access(caller, mutation.method)
        mutation.check(caller, params)
        settled = mutation.settled
        # Before the ledger nothing may refuse what was done already: all looks are acts.
        return await self._keys.once(
            caller,
            mutation.method,
            params,
            act=partial(self._patiently, caller, params, mutation),
            ending=mutation.only_ends,
            settle=None if settled is None else partial(settled, caller, params),
            shown=None if mutation.leaves_nothing else self._way.shown(caller),
        )

    async def _patiently(
        self, caller: Caller, params: P, mutation: Mutation[P, R], flight: Flight
    ) -> R:
        attempt = partial(self._attempt, caller, params, mutation, flight)
        if not mutation.waits:
            return await attempt()
        thread_id = thread_of(params)
        return await self._patience.attempting(params.wait_ms, thread_id, attempt)

    async def _attempt(
        self, caller: Caller, params: P, mutation: Mutation[P, R], flight: Flight
    ) -> R:
        thread_id = thread_of(params)
        if thread_id is not None:
            thread = await self._way.sight.thread(caller, thread_id)
            if mutation.look is not None:
                await mutation.look(caller, params, thread)
        if thread_id is None or not mutation.locks:
            return await mutation.run(caller, params, flight)
        if not mutation.ends_work and self._locks.is_taken(thread_id):
            # Who has the lock may wait for an outcome for long: a closed gate is told now.
            self._way.guard(caller, thread_id)()
        async with self._locks.holding(thread_id):
            return await mutation.run(caller, params, flight)
