"""Rows on the disk, and what a full one did not take. Trio shell over `store`.

PROTOCOL.md section 3 (Request keys). What the disk refuses to take down is kept in memory,
so that a full disk cannot turn a done act into one that may be done again.
"""

from collections.abc import Container
from contextlib import suppress
from functools import partial

import trio

from agent.errors import StoreFullError, StoreUnavailableError
from agent.limits import UNSAVED
from agent.offload import Runner
from agent.records.key_row import Key, KeyRow
from agent.records.store import Store


class Unsaved:
    """What the disk lacks: rows, by key; `None`: it has one that should be gone."""

    def __init__(self, store: Store, *, run: Runner) -> None:
        self._store = store
        self._run = run
        self._rows: dict[Key, KeyRow | None] = {}
        self._catching_up = trio.Lock()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: Key) -> bool:
        return key in self._rows

    async def find(self, key: Key) -> KeyRow | None:
        """Return the row of a key as it should be. Raises: StoreUnavailableError."""
        async with self._catching_up:
            pass  # what is being written about this key just now is on the disk then
        if key in self._rows:
            return self._rows[key]
        return await self._run(partial(self._store.find, *key))

    async def write(self, key: Key, row: KeyRow | None) -> None:
        """Make it so on the disk, or keep it; `None`: there is no row any more."""
        self.keep(key, row)  # also where who waits for the disk gives up
        with suppress(StoreUnavailableError):
            with suppress(StoreFullError):  # it is `ending`, and goes without a row
                await self._run(self._work(key, row))
            self.saved(key)

    def keep(self, key: Key, row: KeyRow | None) -> None:
        """Hold what the disk did not take. Where it is let go, the disk says `handed`:
        then it reads as unknown, and is not done again."""
        self._rows.pop(key, None)
        self._rows[key] = row
        while len(self._rows) > UNSAVED:
            del self._rows[next(iter(self._rows))]

    def saved(self, key: Key) -> None:
        """The disk has what it should of this key."""
        self._rows.pop(key, None)

    async def catch_up(self, flying: Container[Key]) -> None:
        """Write it, as far as that goes now; of `flying` keys nothing."""
        for key, row in list(self._rows.items()):
            async with self._catching_up:
                if key in flying or not self._lacks(key, row):
                    continue
                try:
                    await self._run(self._work(key, row))
                except StoreFullError:
                    pass  # it ended something; its device has no room for its row by now
                except StoreUnavailableError:
                    return
                if self._lacks(key, row):
                    self.saved(key)

    def _lacks(self, key: Key, row: KeyRow | None) -> bool:
        """Whether that is still what the disk lacks: a repeat may have come and gone."""
        return key in self._rows and self._rows[key] is row

    def _work(self, key: Key, row: KeyRow | None) -> partial[None]:
        if row is None:
            return partial(self._store.drop, *key)
        return partial(self._store.put, row)
