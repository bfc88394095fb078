"""The room that is kept on a disk for taking things away."""

import errno
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent.errors import AuditUnavailableError, StorageError
from agent.limits import BEGIN_BYTES, RESERVE_BYTES
from agent.records.audit import Audit
from agent.records.reserve import Reserve
from tests.support.full_disk import full_disk
from transport.errors import KeyFileError
from transport.limits import KEY_FILE

SIZE = 10_000


def reserve_in(folder: Path) -> Reserve:
    return Reserve(folder, size=SIZE)


def full_while(path: Path) -> Callable[[], str]:
    """Return a write that finds no room while a file is there."""

    def write() -> str:
        if path.exists():
            raise OSError(errno.ENOSPC, "no room")
        return "written"

    return write


def test_it_is_of_its_size_private_and_not_made_anew(tmp_path: Path) -> None:
    assert reserve_in(tmp_path).lay_in()
    path = tmp_path / "reserve"
    found = path.stat()
    assert (found.st_size, found.st_mode & 0o777) == (SIZE, 0o600)
    assert reserve_in(tmp_path).lay_in()
    assert path.stat().st_mtime_ns == found.st_mtime_ns


def test_an_agent_s_own_has_room_for_a_thousand_devices_and_the_ledger_s_log(
    tmp_path: Path,
) -> None:
    assert Reserve(tmp_path).lay_in()
    assert (tmp_path / "reserve").stat().st_size == RESERVE_BYTES >= 2 * KEY_FILE


def test_one_that_was_cut_short_is_made_whole(tmp_path: Path) -> None:
    (tmp_path / "reserve").write_bytes(b"x")
    assert reserve_in(tmp_path).lay_in()
    assert (tmp_path / "reserve").stat().st_size == SIZE


def test_what_must_be_written_takes_its_place(tmp_path: Path) -> None:
    reserve = reserve_in(tmp_path)
    reserve.lay_in()
    assert reserve.insist(full_while(tmp_path / "reserve")) == "written"
    assert not (tmp_path / "reserve").exists()
    assert reserve.lay_in(), "with room again it is there again"
    assert (tmp_path / "reserve").stat().st_size == SIZE


def test_one_that_somebody_removed_is_missed_at_once(tmp_path: Path) -> None:
    reserve = reserve_in(tmp_path)
    reserve.lay_in()
    (tmp_path / "reserve").unlink()
    with full_disk():
        assert not reserve.may_begin()
    assert reserve.may_begin()
    assert (tmp_path / "reserve").stat().st_size == SIZE


def test_it_is_not_made_out_of_the_last_room_that_others_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reserve").write_bytes(b"cut short")
    reserve = reserve_in(tmp_path)
    monkeypatch.setattr(reserve, "_room", lambda: SIZE + BEGIN_BYTES - 1)
    assert not reserve.may_begin()
    assert list(tmp_path.iterdir()) == []


def test_it_is_given_up_for_a_full_disk_alone(tmp_path: Path) -> None:
    reserve = reserve_in(tmp_path)
    reserve.lay_in()
    assert reserve.insist(lambda: 7) == 7
    assert (tmp_path / "reserve").exists()


def test_where_it_does_not_help_the_refusal_is_told(tmp_path: Path) -> None:
    def refused() -> None:
        raise StorageError("no") from OSError(errno.ENOSPC, "no room")

    reserve = reserve_in(tmp_path)
    reserve.lay_in()
    for _ in range(2):  # with it, and without it
        with pytest.raises(StorageError):
            reserve.insist(refused)
        assert not (tmp_path / "reserve").exists()


@pytest.mark.parametrize("refusal", [OSError(errno.EROFS, "no"), KeyFileError("open")])
def test_it_is_not_given_up_for_what_it_cannot_mend(
    tmp_path: Path, refusal: Exception
) -> None:
    def refused() -> None:
        raise refusal

    reserve = reserve_in(tmp_path)
    reserve.lay_in()
    with pytest.raises(type(refusal)):
        reserve.insist(refused)
    assert (tmp_path / "reserve").exists()


def test_all_who_insist_at_once_are_written(tmp_path: Path) -> None:
    """The second finds the reserve used by the first, and room all the same."""
    reserve = reserve_in(tmp_path)
    path = tmp_path / "reserve"
    barrier = threading.Barrier(3)

    def write() -> str:
        if path.exists():
            barrier.wait(10)  # all of them have found no room
            raise OSError(errno.ENOSPC, "no room")
        return "written"

    for _ in range(20):
        assert reserve.lay_in()
        with ThreadPoolExecutor(3) as writers:
            told = [writers.submit(reserve.insist, write) for _ in range(3)]
            assert [one.result() for one in told] == ["written"] * 3


def test_a_full_disk_makes_none_and_keeps_no_half(tmp_path: Path) -> None:
    reserve = reserve_in(tmp_path)
    with full_disk():
        assert not reserve.lay_in()
    assert not (tmp_path / "reserve").exists()
    assert list(tmp_path.iterdir()) == []


def test_whether_there_is_room_is_told_of_the_disk_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve = reserve_in(tmp_path)
    assert [reserve.has_room, reserve.may_begin(), reserve.has_room] == [
        False,
        True,
        True,
    ]
    with monkeypatch.context() as patched:
        patched.setattr("agent.records.reserve.BEGIN_BYTES", 2**62)
        assert not reserve.may_begin()
    assert reserve.may_begin()


def test_who_asks_whether_there_is_room_waits_for_no_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve = reserve_in(tmp_path)
    reserve.may_begin()

    def fails(_folder: Path) -> None:
        raise OSError(errno.EIO, "it hangs, say")

    with monkeypatch.context() as patched:
        patched.setattr("agent.records.reserve.os.statvfs", fails)
        told = [reserve.has_room, reserve.may_begin(), reserve.has_room]
    assert told == [True, False, False]


def test_nothing_new_is_begun_while_it_is_missing(tmp_path: Path) -> None:
    reserve = reserve_in(tmp_path)
    audit = Audit(
        tmp_path / "audit.jsonl",
        now_ms=lambda: 1,
        may_begin=(tmp_path / "reserve").exists,
    )
    with pytest.raises(AuditUnavailableError):
        audit.record("turn/start")
    audit.note("device/revoke")
    reserve.lay_in()
    audit.record("turn/start")
    audit.close()
    told = (tmp_path / "audit.jsonl").read_text()
    assert told.index("device/revoke") < told.index("turn/start")
