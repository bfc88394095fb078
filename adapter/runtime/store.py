"""What a runtime's store holds, and acts on it. Sans-IO (protocols).

`Reader.contents` reads, `Reader.acts` changes threads that nobody has loaded. Both go
through the reader, so they load nothing and run nothing (PROTOCOL.md section 3).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from adapter.runtime.acts import Guard
from transport.protocol.contents import ItemHit
from transport.protocol.items import Item
from transport.protocol.threads import Thread


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldText:
    """What is there of one text of an item.

    `total`: its true bytes of UTF-8, `None` where nobody kept that. `gap_at`: the offset
    in `data` where bytes are missing.
    """

    data: bytes
    total: int | None
    gap_at: int | None = None


TextName = tuple[str, str]
"""Which text of an item: the field (output, text, diff), and the path of a diff."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPage:
    """A page of items; no `next_cursor` is the end."""

    items: tuple[Item, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundThreads:
    """A page of threads in which words occur. `snippets`: by the thread's id."""

    threads: tuple[Thread, ...]
    next_cursor: str | None
    snippets: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundItems:
    """A page of places in one thread; no `next_cursor` is the end."""

    hits: tuple[ItemHit, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFiles:
    """Paths below a folder, the best first, as the runtime found them: links may lead
    anywhere. `truncated`: there may be more."""

    paths: tuple[str, ...]
    truncated: bool


class StoreContents(Protocol):
    """Reads what the store holds of threads. Every method raises `AdapterError`."""

    async def list_items(
        self,
        thread_id: str,
        *,
        turn_id: str | None,
        cursor: str | None,
        limit: int,
        order: str,
    ) -> ItemPage:
        """Return one page of items, cut to size. `order` asc/desc."""
        ...

    async def item_texts(
        self, thread_id: str, item_id: str, *, turn_id: str | None
    ) -> Mapping[TextName, HeldText] | None:
        """Return all texts of an item as far as the store has them; `None`: no item."""
        ...

    async def search(
        self, query: str, *, archived: bool, cursor: str | None, limit: int
    ) -> FoundThreads:
        """Return threads in which the words occur."""
        ...

    async def find(
        self, thread_id: str, query: str, *, cursor: str | None, limit: int
    ) -> FoundItems:
        """Return where in a thread the words occur."""
        ...

    async def find_files(self, query: str, *, folder: str) -> FoundFiles:
        """Return files below an absolute folder whose paths fit the words.

        Loads nothing and reads no file. Ended where the caller is cancelled.
        """
        ...


class StoreActs(Protocol):
    """Changes threads that no writer of ours has loaded (a rename: any).

    Every method raises CodexRefusedError or NotDeliveredError (no effect),
    ThreadLockedError (somebody has it loaded), NoAnswerError (unknown), and what `guard`
    raises.
    """

    async def rename(self, thread_id: str, name: str, *, guard: Guard) -> None:
        """Give a thread its title."""
        ...

    async def archive(self, thread_id: str, *, guard: Guard) -> None:
        """Move a thread out of the list."""
        ...

    async def unarchive(self, thread_id: str, *, guard: Guard) -> None:
        """Move it back."""
        ...

    async def delete(self, thread_id: str, *, guard: Guard) -> None:
        """Delete it for good. Raises: ThreadForkedError where forks need it."""
        ...
