"""The ledger's rows: durable, bounded, private; and what a restart makes of them."""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent.errors import StoreFullError, StoreUnavailableError
from agent.limits import DONE_MS, UNKNOWN_MS
from agent.records.key_row import KeyRow, RowState
from agent.records.ledger_file import open_ledger
from agent.records.row_counts import Room
from agent.records.store import Store

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


SMALL = Room(device=3, devices=5, owner=2)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(tmp_path / "small.sqlite", room=SMALL)
    yield store
    store.close()


def done(device: str, key: str, at: int) -> KeyRow:
    return replace(
        ROW, device=device, key=key, state=RowState.DONE, outcome="{}", at=at
    )


def refused(store: Store, device: str, now: int) -> StoreFullError:
    """Return why the device gets no further row; nothing has changed."""
    before = store._connection.execute(  # pyright: ignore[reportPrivateUsage]
        "SELECT * FROM keys"
    ).fetchall()
    row = replace(ROW, device=device, key="one more", at=now)
    with pytest.raises(StoreFullError) as early:
        store.check_room(device, "one more", now)
    with pytest.raises(StoreFullError) as caught:
        store.hand(row)
    with pytest.raises(StoreFullError):
        store.put(row)
    assert vars(caught.value) == vars(early.value)
    assert (
        before
        == store._connection.execute(  # pyright: ignore[reportPrivateUsage]
            "SELECT * FROM keys"
        ).fetchall()
    )
    return caught.value


def test_a_device_that_has_its_share_of_rows_gets_none_before_one_is_past_its_time(
    small: Store,
) -> None:
    small.put(done("hog", "second", 200))
    small.put(done("hog", "first", 100))
    small.put(replace(ROW, device="hog", key="open", state=RowState.UNKNOWN, at=0))
    full = refused(small, "hog", 1_000)
    assert (full.limit, full.of_one) == (3, True)
    assert full.wait_ms == DONE_MS + 101 - 1_000
    small.check_room("other", "k", 1_000)
    small.put(done("hog", "first", 300))  # what is there already may change
    assert refused(small, "hog", DONE_MS + 200).wait_ms == 1
    small.check_room("hog", "k", DONE_MS + 201)
    small.hand(replace(ROW, device="hog", key="next", at=DONE_MS + 201))
    assert small.find("hog", "second") is None
    assert small.find("hog", "first") is not None
    assert small.find("hog", "open") is not None


def test_all_devices_together_have_a_bound_and_the_workstation_one_of_its_own(
    small: Store,
) -> None:
    small.put(done("local", "l1", 1))
    for number in range(5):
        small.hand(replace(done(f"d{number // 3}", f"k{number}", 100), at=100))
    full = refused(small, "new", 1_000)
    assert (full.limit, full.of_one) == (5, False)
    assert full.wait_ms == DONE_MS + 101 - 1_000  # the workstation's row frees nothing
    small.hand(replace(ROW, device="local", key="l2"))
    full = refused(small, "local", 1_000)
    assert (full.limit, full.of_one) == (2, True)
    small.drop("d0", "k0")
    small.hand(replace(ROW, device="new"))


def test_rows_that_all_run_say_no_time_and_make_room_when_they_end(
    small: Store,
) -> None:
    for key in ("a", "b", "c"):
        small.hand(replace(ROW, key=key))
    assert refused(small, "d1", 1_000).wait_ms is None
    small.drop("d1", "b")
    small.hand(replace(ROW, key="d"))
    assert small.recover() == 3
    assert refused(small, "d1", ROW.at).wait_ms == UNKNOWN_MS + 1


def test_a_message_that_waits_may_be_delivered_by_its_own_device(
    small: Store,
) -> None:
    for key in ("a", "b", "c"):
        small.hand(replace(ROW, key=key))
    with small.transaction() as db:
        db.execute(
            "INSERT INTO queue (id, thread, device, params, created_at, expires_at,"
            " until) VALUES ('q-1', 'thr', 'd1', '{}', 0, 0, 0)"
        )
    refused(small, "d1", ROW.at)
    for number in range(2):
        small.put(done("d2", f"k{number}", 0))  # by now all have too many
    assert refused(small, "new", ROW.at).limit == 5
    with pytest.raises(StoreFullError):
        small.hand(replace(ROW, device="new", key="q-1"))
    small.check_room("d1", "q-1", ROW.at)
    small.hand(replace(ROW, key="q-1"))
    refused(small, "d1", ROW.at)


def test_rows_are_counted_right_whatever_comes_goes_or_fails(small: Store) -> None:
    small.check_room("d1", "k", 0)  # counted, and nothing there
    small.hand(ROW)
    small.put(replace(ROW, state=RowState.DONE, outcome="{}"))  # the same row
    small.drop("d1", "no such key")
    with pytest.raises(StoreUnavailableError):
        small.hand(ROW)  # there already
    with pytest.raises(KeyError), small.transaction() as db:
        small.hand_in(db, replace(ROW, key="undone"))
        raise KeyError
    small.hand(replace(ROW, key="second", method="thread/start", thread=None))
    small.hand(replace(ROW, key="third"))
    refused(small, "d1", ROW.at)
    small.recover()  # `second` is gone
    small.hand(replace(ROW, key="fourth"))
    refused(small, "d1", ROW.at)
    assert small.prune(ROW.at + UNKNOWN_MS + 1) == 2
    small.hand(replace(ROW, key="fifth"))
    small.hand(replace(ROW, key="sixth"))
    refused(small, "d1", ROW.at)


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
