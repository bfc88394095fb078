"""Which threads exist for a caller. Trio shell over the reader and `roots`.

PROTOCOL.md section 2 (Ceiling). A thread outside the roots is not there: the answer is
the same as for one that never was.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import Final

import trio

from adapter.errors import (
    AdapterError,
    CodexOverloadedError,
    CodexRefusedError,
    ThreadUnknownError,
)
from adapter.runtime.reader import ThreadQuery
from agent.access.roots import Roots
from agent.access.scopes import Caller
from agent.app_servers.lease_registry import LeaseRegistry
from agent.app_servers.supervisor import Supervisor
from agent.limits import FOLDERS_AGE_S, THREADS_PLACED, THREADS_SCANNED
from agent.mutations.refusals import failed_before, thread_not_found
from agent.offload import Runner, in_thread
from transport.errors import Refusal
from transport.protocol.threads import Thread

_PAGE: Final = 100


class Sight:
    """Looks threads up on behalf of a caller, and learns their folders as it goes."""

    def __init__(
        self,
        *,
        supervisor: Supervisor,
        leases: LeaseRegistry,
        roots: Roots,
        now_ms: Callable[[], int],
        run: Runner = in_thread,
    ) -> None:
        self._supervisor = supervisor
        self._leases = leases
        self._roots = roots
        self._now_ms = now_ms
        self._run = run
        self._cwds: OrderedDict[str, str] = OrderedDict()
        self._scanned_at: float | None = None

    @property
    def roots(self) -> Roots:
        """The folders of every caller."""
        return self._roots

    def learn(self, threads: list[Thread]) -> None:
        """Remember where threads are that the store told of."""
        self._roots.learn(thread.cwd for thread in threads)
        for thread in threads:
            self._cwds[thread.id] = thread.cwd
            self._cwds.move_to_end(thread.id)
        while len(self._cwds) > THREADS_PLACED:
            self._cwds.popitem(last=False)

    async def visible(
        self, caller: Caller, threads: Collection[Thread]
    ) -> list[Thread]:
        """Return those of the store's threads that exist for the caller."""
        self.learn(list(threads))
        return await self._run(
            lambda: [one for one in threads if self._roots.shows(caller, one.cwd)]
        )

    def sees(self, caller: Caller, thread_id: str) -> bool:
        """Whether an event of this (root) thread may be told to the caller.

        No checkpoint: only the links of folders are followed.

        A thread whose folder nobody has told yet is not shown to who has a fence.
        """
        if not is_fenced(caller):
            return True
        lease = self._leases.lease_of(thread_id)
        held = lease.thread if lease else None
        cwd = held.cwd if held else self._cwds.get(thread_id)
        return cwd is not None and self._roots.shows(caller, cwd)

    async def thread(self, caller: Caller, thread_id: str) -> Thread:
        """Return a thread as the store tells it.

        Raises: NotFound where there is none for this caller, CodexUnavailable.
        """
        try:
            thread = await self._supervisor.reader.read_thread(thread_id)
        except ThreadUnknownError as exc:
            # The store shows a new thread some 50 ms after its first turn began.
            lease = self._leases.lease_of(thread_id)
            if lease is None or lease.thread is None or lease.key != thread_id:
                raise thread_not_found(thread_id) from exc
            thread = lease.thread
        except CodexRefusedError as exc:
            # Codex's words about a thread, if only about a damaged one, tell that it is.
            if not isinstance(exc, CodexOverloadedError) and not self.sees(
                caller, thread_id
            ):
                raise thread_not_found(thread_id) from exc
            raise self._refusal(exc, thread_id) from exc
        except AdapterError as exc:
            raise self._refusal(exc, thread_id) from exc
        self.learn([thread])
        if is_fenced(caller) and not await self._run(
            lambda: self._roots.shows(caller, thread.cwd)
        ):
            raise thread_not_found(thread_id)
        return thread

    def _refusal(self, exc: AdapterError, thread_id: str) -> Refusal:
        return failed_before(exc, thread_id=thread_id, at_ms=self._now_ms())

    async def folder(self, caller: Caller, cwd: str) -> str:
        """Return the resolved folder for a new thread of the caller.

        Raises: InvalidParams, Forbidden.
        """
        if caller.follows_threads and not self._roots.contains(caller, cwd):
            await self._scan()
        return await self._run(lambda: self._roots.check_folder(caller, cwd))

    async def _scan(self) -> None:
        """Learn the folders of all threads that exist now, archived ones too."""
        now = trio.current_time()
        if self._scanned_at is not None and now - self._scanned_at < FOLDERS_AGE_S:
            return
        self._scanned_at = now
        for archived in (False, True):
            cursor: str | None = None
            for _ in range(THREADS_SCANNED // _PAGE):
                query = ThreadQuery(archived=archived, cursor=cursor, limit=_PAGE)
                try:
                    page = await self._supervisor.reader.list_threads(query)
                except AdapterError:
                    return  # what is known decides; the caller may try again
                self._roots.learn(thread.cwd for thread in page.threads)
                cursor = page.next_cursor
                if cursor is None:
                    break


def is_fenced(caller: Caller) -> bool:
    """Whether some threads do not exist for this caller."""
    return caller.ceiling is not None and not caller.follows_threads
