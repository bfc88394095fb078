"""The ledger's rows: durable, bounded, private; and what a restart makes of them."""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.errors import StoreFullError, StoreUnavailableError
from agent.limits import DONE_MS, UNKNOWN_MS
from agent.records.store import KeyRow, RowState, Store, open_ledger

ROW = KeyRow(
    device="d1",
    key="k1",
    digest="abc",
    method="turn/start",
    state=RowState.HANDED,
    thread="thr",
    last_turn="t1",
    turn=None,
    outcome=None,
    at=1_000,
)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    db = open_ledger(tmp_path / "ledger.sqlite")
    yield db
    db.close()


@pytest.fixture
def store(db: sqlite3.Connection) -> Store:
    return Store(db)


def test_a_row_is_found_as_it_was_written_by_another_connection(
    store: Store, tmp_path: Path
) -> None:
    store.hand(ROW)
    other = Store.open(tmp_path / "ledger.sqlite")
    assert other.find("d1", "k1") == ROW
    assert other.find("d2", "k1") is None
    other.close()


def test_a_key_can_be_handed_once(store: Store) -> None:
    store.hand(ROW)
    with pytest.raises(StoreUnavailableError):
        store.hand(replace(ROW, digest="other"))
    found = store.find("d1", "k1")
    assert found is not None
    assert found.digest == "abc"


def test_the_file_is_the_owners_alone_and_every_write_is_synced(
    store: Store, db: sqlite3.Connection, tmp_path: Path
) -> None:
    store.hand(ROW)
    for path in tmp_path.iterdir():
        assert path.stat().st_mode & 0o077 == 0, path
    assert db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_after_a_restart_what_was_handed_is_unknown_and_the_rest_stays(
    store: Store,
) -> None:
    store.hand(ROW)
    store.hand(replace(ROW, key="k2", state=RowState.DONE, outcome="{}"))
    assert store.recover() == 1
    handed, done = store.find("d1", "k1"), store.find("d1", "k2")
    assert handed is not None
    assert done is not None
    assert (handed.state, done.state) == (RowState.UNKNOWN, RowState.DONE)
    assert store.has_unknown("thr")
    assert not store.has_unknown("other")


def test_a_new_thread_without_a_name_is_forgotten_at_a_restart_and_no_other_row(
    store: Store,
) -> None:
    unnamed = replace(ROW, method="thread/start", thread=None)
    store.hand(replace(unnamed, key="free"))
    store.hand(replace(unnamed, key="named", thread="thr"))
    store.hand(replace(unnamed, key="other", method="gateway/lock"))
    store.put(replace(unnamed, key="told", state=RowState.UNKNOWN))
    assert store.recover() == 2
    assert store.find("d1", "free") is None
    for key in ("named", "other", "told"):
        row = store.find("d1", key)
        assert row is not None
        assert row.state is RowState.UNKNOWN


def test_turns_that_we_started_are_known_again(store: Store) -> None:
    store.hand(ROW)
    store.put(replace(ROW, state=RowState.DONE, turn="t2", outcome="{}"))
    assert store.knows_turn("thr", "t2")
    assert not store.knows_turn("thr", "t1")
    assert not store.knows_turn("other", "t2")


def test_a_dropped_key_may_be_used_again(store: Store) -> None:
    store.hand(ROW)
    store.drop("d1", "k1")
    assert store.find("d1", "k1") is None
    store.hand(ROW)


def test_rows_are_kept_for_their_time_and_no_longer(store: Store) -> None:
    store.put(replace(ROW, key="done", state=RowState.DONE, at=0))
    store.put(replace(ROW, key="unknown", state=RowState.UNKNOWN, at=0))
    store.put(replace(ROW, key="handed", at=0))
    assert store.prune(DONE_MS) == 0
    assert store.prune(DONE_MS + 1) == 1
    assert store.find("d1", "done") is None
    assert store.prune(UNKNOWN_MS + 1) == 1
    assert store.find("d1", "handed") is not None  # it runs


def test_a_full_ledger_forgets_what_is_done_and_nothing_else(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "small.sqlite", most=3)
    store.put(replace(ROW, key="old", state=RowState.DONE, at=1))
    store.put(replace(ROW, key="new", state=RowState.DONE, at=2))
    store.put(replace(ROW, key="open", state=RowState.UNKNOWN, at=0))
    store.hand(replace(ROW, key="k4"))
    assert store.find("d1", "old") is None
    assert store.find("d1", "new") is not None
    store.hand(replace(ROW, key="k5"))
    with pytest.raises(StoreFullError):
        store.hand(replace(ROW, key="k6"))
    store.close()


def test_a_closed_or_damaged_file_is_told_as_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"this is no database" * 100)
    with pytest.raises(StoreUnavailableError):
        Store.open(path)
    with pytest.raises(StoreUnavailableError):
        Store.open(tmp_path / "missing" / "ledger.sqlite")


def test_a_ledger_of_a_newer_version_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreUnavailableError, match="newer"):
        Store.open(path)


def test_a_ledger_from_before_the_first_release_is_refused_and_not_touched(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ledger.sqlite"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE queue (id TEXT)")
    db.execute("PRAGMA user_version = 1")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreUnavailableError, match="move it away") as caught:
        Store.open(path)
    assert str(caught.value).startswith(f"{path}: written before the first release")
    assert path.read_bytes() == before


def test_a_disk_that_is_full_is_told_and_nothing_is_half_written(
    store: Store, db: sqlite3.Connection
) -> None:
    store.hand(ROW)
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    db.execute(f"PRAGMA max_page_count = {pages}")
    written = 0
    with pytest.raises(StoreUnavailableError, match="full"):
        for number in range(10_000):
            store.hand(replace(ROW, key=f"n{number}", outcome="x" * 1_000))
            written = number + 1
    count = db.execute("SELECT count(*) FROM keys").fetchone()[0]
    assert count == written + 1
    db.execute("PRAGMA max_page_count = 1000000")
    store.hand(replace(ROW, key="again"))
