"""Reading a runtime's store: threads, turns, what the runtime offers. Sans-IO (protocol).

One reader for all threads, which never loads one (PROTOCOL.md section 3).
"""

from dataclasses import dataclass
from typing import Protocol

from adapter.runtime.acts import Guard
from adapter.runtime.program import RuntimeInfo
from adapter.runtime.store import StoreActs, StoreContents
from transport.protocol.capabilities import Capability, ModelInfo
from transport.protocol.goals import Goal
from transport.protocol.threads import Thread
from transport.protocol.turns import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadQuery:
    """What `thread/list` asks for. `sort`: updatedAt or createdAt, newest first."""

    archived: bool = False
    cwd: str | None = None
    query: str | None = None
    sort: str = "updatedAt"
    parent_id: str | None = None
    cursor: str | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadPage:
    """A page of threads; no `next_cursor` is the end."""

    threads: tuple[Thread, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPage:
    """A page of turns; no `next_cursor` is the end."""

    turns: tuple[Turn, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingWork:
    """What a resume would start by itself: others' queued messages, an active goal."""

    queue: tuple[str, ...] = ()
    goal: str | None = None

    def __bool__(self) -> bool:
        return bool(self.queue) or self.goal is not None


class Reader(Protocol):
    """Reads the runtime's store. Loads no thread, takes no lock, runs nothing.

    Every method raises `AdapterError`; `ThreadUnknownError` where the thread is not
    there. A read that fails in a way known to pass is tried again before.
    """

    info: RuntimeInfo

    @property
    def contents(self) -> StoreContents:
        """What threads hold: items, texts, and looking for words."""
        ...

    @property
    def acts(self) -> StoreActs:
        """The acts that need no loaded thread. They are the reader's only writes."""
        ...

    async def list_threads(self, query: ThreadQuery) -> ThreadPage:
        """Return one page of threads of all providers and interactive sources."""
        ...

    async def read_thread(self, thread_id: str) -> Thread:
        """Return one thread without its turns."""
        ...

    async def list_turns(
        self, thread_id: str, *, cursor: str | None, limit: int, order: str, items: str
    ) -> TurnPage:
        """Return one page of turns. `order` desc/asc; `items` none/summary/full."""
        ...

    async def pending_work(self, thread_id: str) -> PendingWork:
        """Return what a resume would start by itself."""
        ...

    async def goal(self, thread_id: str) -> Goal | None:
        """Return the thread's goal."""
        ...

    async def pause_goal(self, thread_id: str, *, guard: Guard | None = None) -> None:
        """Pause the thread's active goal; nothing where there is none."""
        ...

    async def clear_goal(self, thread_id: str, *, guard: Guard) -> None:
        """Take the thread's goal away; nothing where there is none."""
        ...

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """Return the models that the runtime offers, the hidden ones left out."""
        ...

    async def capabilities(self) -> tuple[Capability, ...]:
        """Return what this runtime offers, as it says itself when it is asked."""
        ...

    async def decided_alone(self) -> tuple[str, ...]:
        """Return what in the owner's configuration decides approvals by itself."""
        ...

    async def sandbox_fault(self) -> str | None:
        """Run `true` in a sandbox; return why that failed, `None` where it did not."""
        ...
