"""What Codex's list of threads shows to have changed. Sans-IO.

PROTOCOL.md section 3 (Modes). The list's newest page is looked at again and again; a row
that moved says that its thread is to be read, and from which time on it is news.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from transport.protocol.threads import Thread


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """`changed`: thread → until when (ms) it is known. `looks_new`: those of them that
    have another title, or are back in the list. `gone`: missing at two looks."""

    changed: dict[str, int] = field(default_factory=dict[str, int])
    looks_new: frozenset[str] = frozenset()
    gone: tuple[str, ...] = ()


class Recent:
    """The newest page of threads as it was seen last."""

    def __init__(self) -> None:
        self.rows: dict[str, Thread] = {}
        self._seen_at: int | None = None
        self._oldest = 0  # a row that is older than this was on no page yet
        self._missing: set[str] = set()

    def see(self, page: Sequence[Thread], *, whole: bool, at: int) -> Moved:
        """Take the page in; return how it differs from the last one.

        `whole`: there are no other threads. `at`: when it was asked for, ms. The first
        page says nothing.
        """
        rows = {row.id: row for row in page}
        before, self.rows = self.rows, rows
        last, self._seen_at = self._seen_at, at
        end, self._oldest = self._oldest, _end_of(page, whole=whole)
        if last is None:
            return Moved()
        changed = {
            row.id: _known_until(row, before.get(row.id), last)
            for row in page
            if _mark(row) != (_mark(before[row.id]) if row.id in before else None)
        }
        looks_new = frozenset(
            one for one in changed if _looks_new(rows[one], before.get(one), end)
        )
        gone = self._gone(before, page, whole=whole)
        return Moved(changed=changed, looks_new=looks_new, gone=gone)

    def note(self, thread: Thread) -> None:
        """This is known of the thread already, before a look shows it."""
        if thread.parent_id is None:  # Codex lists no sub-agents
            self.rows[thread.id] = thread

    def forget(self, thread_id: str) -> None:
        """The thread is known to be gone."""
        self.rows.pop(thread_id, None)
        self._missing.discard(thread_id)

    def _gone(
        self, before: dict[str, Thread], page: Sequence[Thread], *, whole: bool
    ) -> tuple[str, ...]:
        """Return threads that left the list though nothing pushed them off its page."""
        oldest = _end_of(page, whole=whole)
        missing = {
            one.id
            for one in before.values()
            if one.id not in self.rows and one.updated_at > oldest
        }
        twice = missing & self._missing
        self._missing = missing - twice
        for thread_id in self._missing:  # looked for once more
            self.rows[thread_id] = before[thread_id]
        return tuple(sorted(twice))


def _known_until(row: Thread, before: Thread | None, last: int) -> int:
    """Return until when the thread's turns could be read before; 0: it is new.

    Codex's times are whole seconds, so that of the last look counts as after it.
    """
    if before is not None:
        return before.updated_at
    second = last - last % 1_000
    return 0 if row.created_at >= second else second - 1


def _end_of(page: Sequence[Thread], *, whole: bool) -> int:
    """Return from when on (ms) the page has every thread."""
    return 0 if whole else min((row.updated_at for row in page), default=0)


def _looks_new(row: Thread, before: Thread | None, end: int) -> bool:
    """Whether the row itself is news. A row that was not there is, unless it was pushed
    up from behind the last page, whose end was there (ms)."""
    if before is None:
        return row.updated_at > end
    return (row.title, row.archived) != (before.title, before.archived)


def _mark(row: Thread) -> tuple[object, ...]:
    return (row.updated_at, row.title, row.preview, row.archived)
