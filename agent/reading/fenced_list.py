"""A page of threads for a caller who may not see all of them. Trio shell over the store.

PROTOCOL.md sections 2 and 4. A thread outside the roots does not exist, so it must not
show as a hole either: pages are filled up from behind it, there is a next page only where
it has a thread to show, and its cursor was taken at one. Else a `query` or a `cwd` that
finds nothing but hidden threads would still tell that there are some.
"""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from agent.limits import PAGE_BYTES, THREADS_SCANNED
from agent.reading.pages import size_of
from transport.protocol.threads import Thread


class Rows(Protocol):
    """One of the store's pages."""

    @property
    def threads(self) -> tuple[Thread, ...]:
        """Its rows."""
        ...

    @property
    def next_cursor(self) -> str | None:
        """Where the next one begins; `None` is the end."""
        ...


P = TypeVar("P", bound=Rows)
Ask = Callable[[str | None, int], Awaitable[P]]
Show = Callable[[Collection[Thread]], Awaitable[Collection[Thread]]]

_STEP = 100  # threads that the store is asked for at once


@dataclass(slots=True)
class _Page:
    """What was found. `behind`: the store's page of the last row, and its place there."""

    limit: int
    rows: list[Thread] = field(default_factory=list[Thread])
    behind: tuple[str | None, int] = (None, 0)
    used: int = 0

    def takes(self, row: Thread) -> bool:
        """Whether one more fits; the first always does."""
        self.used += size_of(row)
        fits = len(self.rows) < self.limit and self.used <= PAGE_BYTES
        return fits or not self.rows


async def fenced_page(
    ask: Ask[P], show: Show, *, cursor: str | None, limit: int
) -> tuple[list[Thread], str | None]:
    """Return at most `limit` threads and the store's cursor behind the last of them.

    `ask` gets one of the store's pages, `show` those rows of it that exist for the caller.
    Behind 5,000 threads of others it gives up, and says that there may be more.
    """
    found = _Page(limit)
    at = cursor
    for _ in range(THREADS_SCANNED // _STEP):
        page = await ask(at, _STEP)
        shown = {row.id for row in await show(page.threads)}
        for place, row in enumerate(page.threads, start=1):
            if row.id not in shown:
                continue
            if not found.takes(row):
                start, count = found.behind
                return found.rows, (await ask(start, count)).next_cursor
            found.rows.append(row)
            found.behind = (at, place)
        at = page.next_cursor
        if at is None:
            break
    return found.rows, at
