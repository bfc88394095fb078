"""What a thread shall be like: its title, archived or not, gone. Sans-IO.

PROTOCOL.md section 4. Each wish knows how it is sent, and how one sees that it is so.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Generic, TypeVar

from adapter.errors import AdapterError, ThreadUnknownError
from adapter.runtime.acts import Guard
from adapter.runtime.store import StoreActs
from transport.errors import InvalidParams, NotResumable
from transport.protocol.base import ThreadMutationParams, WireModel
from transport.protocol.methods import (
    THREAD_ARCHIVE,
    THREAD_DELETE,
    THREAD_RENAME,
    THREAD_UNARCHIVE,
    Method,
)
from transport.protocol.thread_acts import (
    ThreadArchiveParams,
    ThreadDeleteParams,
    ThreadDeleteResult,
    ThreadRenameParams,
    ThreadUnarchiveParams,
)
from transport.protocol.threads import Thread, ThreadResult

P = TypeVar("P", bound=ThreadMutationParams)
R = TypeVar("R", bound=WireModel)


class Wish(ABC, Generic[P, R]):
    """One kind of act. `ends_lease`: our own idle writer of the thread must go first."""

    ends_lease: ClassVar[bool] = True
    leaves_nothing: ClassVar[bool] = False
    method: Method[P, R]

    def check(self, params: P) -> None:
        """Raise `InvalidParams` for what cannot be meant."""
        del params

    def check_thread(self, thread: Thread) -> None:
        """Raise what stands against it in the thread as it is now."""
        del thread

    @abstractmethod
    async def send(self, acts: StoreActs, params: P, guard: Guard) -> None:
        """Send it."""

    @abstractmethod
    def is_so(self, thread: Thread, params: P) -> bool:
        """Whether the thread is like that."""

    def shows_in(self, error: AdapterError) -> bool:
        """Whether this failure to read the thread means that it has happened."""
        del error
        return False

    @abstractmethod
    def applied(self, thread: Thread, params: P) -> Thread:
        """Return the thread as it is after the act."""

    @abstractmethod
    def result(self, thread: Thread | None) -> R:
        """Return the answer; `None` where nothing is left."""


class _OfThread(Wish[P, ThreadResult]):
    """A wish after which the thread is still there."""

    def result(self, thread: Thread | None) -> ThreadResult:
        assert thread is not None
        return ThreadResult(thread=thread)


class Rename(_OfThread[ThreadRenameParams]):
    """Another title; whoever has the thread loaded is not disturbed."""

    ends_lease = False
    method = THREAD_RENAME

    def check(self, params: ThreadRenameParams) -> None:
        if not _line(params.name):
            reason = "a title needs a character that shows"
            raise InvalidParams(
                f"name: {reason}.", data={"field": "name", "reason": reason}
            )

    def check_thread(self, thread: Thread) -> None:
        if thread.archived:
            raise NotResumable(
                "Codex names no archived thread. Unarchive it "
                f"(`threadgate unarchive {thread.id}`), then name it.",
                data={"threadId": thread.id},
            )

    async def send(
        self, acts: StoreActs, params: ThreadRenameParams, guard: Guard
    ) -> None:
        await acts.rename(params.thread_id, _line(params.name), guard=guard)

    def is_so(self, thread: Thread, params: ThreadRenameParams) -> bool:
        return thread.title == _line(params.name)

    def applied(self, thread: Thread, params: ThreadRenameParams) -> Thread:
        return thread.model_copy(update={"title": _line(params.name)})


class Archive(_OfThread[ThreadArchiveParams]):
    """Out of the list."""

    method = THREAD_ARCHIVE

    async def send(
        self, acts: StoreActs, params: ThreadArchiveParams, guard: Guard
    ) -> None:
        await acts.archive(params.thread_id, guard=guard)

    def is_so(self, thread: Thread, params: ThreadArchiveParams) -> bool:
        del params
        return thread.archived

    def applied(self, thread: Thread, params: ThreadArchiveParams) -> Thread:
        del params
        return thread.model_copy(update={"archived": True})


class Unarchive(_OfThread[ThreadUnarchiveParams]):
    """Back into the list."""

    method = THREAD_UNARCHIVE

    async def send(
        self, acts: StoreActs, params: ThreadUnarchiveParams, guard: Guard
    ) -> None:
        await acts.unarchive(params.thread_id, guard=guard)

    def is_so(self, thread: Thread, params: ThreadUnarchiveParams) -> bool:
        del params
        return not thread.archived

    def applied(self, thread: Thread, params: ThreadUnarchiveParams) -> Thread:
        del params
        return thread.model_copy(update={"archived": False})


class Delete(Wish[ThreadDeleteParams, ThreadDeleteResult]):
    """Gone for good."""

    leaves_nothing = True
    method = THREAD_DELETE

    async def send(
        self, acts: StoreActs, params: ThreadDeleteParams, guard: Guard
    ) -> None:
        await acts.delete(params.thread_id, guard=guard)

    def is_so(self, thread: Thread, params: ThreadDeleteParams) -> bool:
        del thread, params
        return False  # it can be read, so it is there

    def shows_in(self, error: AdapterError) -> bool:
        return isinstance(error, ThreadUnknownError)

    def applied(self, thread: Thread, params: ThreadDeleteParams) -> Thread:
        del params
        return thread

    def result(self, thread: Thread | None) -> ThreadDeleteResult:
        del thread
        return ThreadDeleteResult()


def _line(name: str) -> str:
    return " ".join(name.split())
