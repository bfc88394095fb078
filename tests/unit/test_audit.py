"""The audit log: durable, private, content-free, bounded; and a disk that is full."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agent.errors import AuditUnavailableError
from agent.records.audit import Audit


def make(path: Path, **more: Any) -> Audit:
    return Audit(path, now_ms=lambda: 7, **more)


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_an_entry_is_one_line_on_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    audit = make(path)
    audit.record("turn/start", device="d1", thread="thr", key=None)
    assert entries(path) == [
        {"at": 7, "event": "turn/start", "device": "d1", "thread": "thr", "key": None}
    ]
    assert path.stat().st_mode & 0o777 == 0o600
    audit.close()


def test_an_entry_is_synced_before_record_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.jsonl"
    synced: list[str] = []

    def fsync(descriptor: int) -> None:
        synced.append(path.read_text())

    monkeypatch.setattr(os, "fsync", fsync)
    audit = make(path)
    audit.record("x")
    assert [text.count("\n") for text in synced] == [1]
    audit.close()


def test_no_field_can_forge_a_line_or_carry_much(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    audit = make(path)
    audit.record("pair", name='evil\n{"event":"forged"}\x1b[2J' + "x" * 1_000)
    (entry,) = entries(path)
    assert "\x1b" not in path.read_text()
    assert len(entry["name"]) == 200
    audit.close()


def test_it_is_rotated_by_size_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    audit = make(path, max_bytes=200, files=3)
    for number in range(30):
        audit.record("e", n=number)
    audit.close()
    names = sorted(one.name for one in tmp_path.iterdir())
    assert names == ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"]
    newest = entries(path)[-1]["n"]
    assert newest == 29
    kept = [*entries(tmp_path / "audit.jsonl.2"), *entries(tmp_path / "audit.jsonl.1")]
    kept += entries(path)
    numbers = [entry["n"] for entry in kept]
    assert numbers == list(range(numbers[0], 30))  # nothing is lost in between
    for one in tmp_path.iterdir():
        assert one.stat().st_mode & 0o077 == 0


def full(monkeypatch: pytest.MonkeyPatch, *, half: bool = False) -> None:
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        if half:
            return real(descriptor, data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", write)


@pytest.mark.parametrize("half", [False, True], ids=["nothing fits", "half fits"])
def test_a_full_disk_is_told_and_leaves_no_half_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, half: bool
) -> None:
    path = tmp_path / "audit.jsonl"
    audit = make(path)
    audit.record("first")
    with monkeypatch.context() as patch:
        full(patch, half=half)
        with pytest.raises(AuditUnavailableError):
            audit.record("lost")
    audit.record("second")
    assert [entry["event"] for entry in entries(path)] == ["first", "second"]
    audit.close()


def test_what_was_only_noted_on_a_full_disk_is_written_in_order_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.jsonl"
    audit = make(path)
    with monkeypatch.context() as patch:
        full(patch)
        audit.note("deny 1")
        audit.note("deny 2")
    audit.record("allow")
    assert [one["event"] for one in entries(path)] == ["deny 1", "deny 2", "allow"]
    audit.close()


def test_a_log_that_was_moved_away_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    audit = make(path)
    audit.record("one")
    path.rename(tmp_path / "kept")
    audit.record("two")
    path.unlink()
    audit.note("three")
    assert [entry["event"] for entry in entries(path)] == ["three"]
    path.unlink()
    path.mkdir()
    with pytest.raises(AuditUnavailableError):
        audit.record("four")
    audit.close()
    assert [entry["event"] for entry in entries(tmp_path / "kept")] == ["one"]


def test_a_link_in_the_logs_place_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine\n")
    (tmp_path / "audit.jsonl").symlink_to(victim)
    audit = make(tmp_path / "audit.jsonl")
    with pytest.raises(AuditUnavailableError):
        audit.record("x")
    assert victim.read_text() == "mine\n"


def test_after_a_crash_in_an_entry_the_next_begins_on_its_own_line(
    tmp_path: Path,
) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_text('{"at":1,"event":"cut sh')
    path.chmod(0o644)
    audit = make(path)
    audit.record("next")
    audit.close()
    assert json.loads(path.read_text().splitlines()[-1])["event"] == "next"
    assert path.stat().st_mode & 0o777 == 0o600
