"""How many rows of Codex's are asked for at once. Sans-IO.

Codex bounds its pages by rows, never by bytes: fifty turns may have 100 KB or 500 MB. So
a page is read in portions: a small one first, then as many rows as their size allows.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from adapter.limits import (
    LARGE_THREADS,
    PAGE_RAW,
    PAGE_SHOWN,
    PORTION_GROWTH,
    TEXT_BYTES,
)
from adapter.shapes.texts import packed_bound

_ROW: Final = 200  # bytes of a row beside its texts


class Portions:
    """The portions of one page of at most `limit` rows; `first` of them come first."""

    def __init__(self, limit: int, *, first: int) -> None:
        self._limit = self._left = limit
        self._next = min(limit, first)
        self._raw = 0
        self._shown = 0

    def wanted(self) -> int:
        """Return how many rows to ask for now; 0: the page is full."""
        return self._next

    def too_long(self) -> bool:
        """So many rows were too long for one answer: ask for fewer. False: for one."""
        if self._next <= 1:
            return False
        self._next //= 2
        self._limit -= self._left - self._next
        self._left = self._next
        return True

    def came(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take in how large the rows are that came."""
        count = len(rows)
        raw = sum(packed_bound(row) for row in rows)
        shown = sum(shown_bound(row) for row in rows)
        self._raw += raw
        self._shown += shown
        self._left -= count
        by_raw = (PAGE_RAW - self._raw) * count // max(1, raw)
        by_shown = (PAGE_SHOWN - self._shown) * count // max(1, shown)
        most = min(self._left, by_raw, by_shown, count * PORTION_GROWTH)
        self._next = max(0, most)

    @property
    def fits(self) -> int | None:
        """How many rows like those that came are read at once; `None`: none came."""
        came = self._limit - self._left
        return max(1, PAGE_RAW * came // max(1, self._raw)) if came > 0 else None

    def end(self) -> None:
        """There is no more, or what came last is enough."""
        self._next = 0


class Firsts:
    """With how many rows a thread's next page begins: fewer than `usual` where its rows
    were large. The last so many of such threads are remembered."""

    def __init__(self, usual: int) -> None:
        self._usual = usual
        self._few: OrderedDict[str, int] = OrderedDict()

    def __len__(self) -> int:
        """How many threads are remembered."""
        return len(self._few)

    def of(self, thread_id: str) -> int:
        """Return how many rows to begin with."""
        return self._few.get(thread_id, self._usual)

    def note(self, thread_id: str, portions: Portions) -> None:
        """Learn from a page that was read."""
        if portions.fits is None:
            return
        self._few.pop(thread_id, None)
        if portions.fits < self._usual:
            self._few[thread_id] = portions.fits
            if len(self._few) > LARGE_THREADS:
                self._few.popitem(last=False)


def shown_bound(value: Any) -> int:
    """Return about how many bytes of a row a client is sent: its texts are cut."""
    if isinstance(value, str):
        return min(packed_bound(value), TEXT_BYTES)
    if isinstance(value, Mapping):
        parts = cast("Mapping[str, Any]", value).values()
        return _ROW + sum(shown_bound(part) for part in parts)
    if isinstance(value, list | tuple):
        return sum(shown_bound(part) for part in cast("Sequence[Any]", value))
    return 9
