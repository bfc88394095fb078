"""Runs of an Agent in memory: one is killed, and the next finds what it left."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from agent.errors import StoreUnavailableError
from agent.records.store import Store
from tests.support.fake_runtime import FakeRuntime


class MortalStore(Store):
    """A store whose process can be killed: then nothing reaches the disk any more."""

    killed = False

    @contextmanager
    def _using(self) -> Generator[sqlite3.Connection]:
        if self.killed:
            raise StoreUnavailableError("killed")
        with super()._using() as db:
            yield db


def next_run(path: Path, runtime: FakeRuntime) -> Store:
    """Return what the next Agent finds: the processes of the last one are gone."""
    for stored in runtime.threads.values():
        stored.locked_by = None
    store = Store.open(path / "ledger.sqlite")
    store.recover()
    return store


def sent(runtime: FakeRuntime) -> list[tuple[str, str]]:
    """Return what reached the model, with its keys."""
    return [one for writer in runtime.writers for one in writer.sent]
