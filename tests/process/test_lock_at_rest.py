"""`lock` and `unlock` while no Agent runs, on what one has left in the state folder."""

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from agent.gate import panic
from agent.gate.at_rest import lock_at_rest, mark_locked, unlock_at_rest
from agent.queue.dropped_book import Why, dropped
from agent.queue.queue_book import Waiting
from agent.queue.queue_table import QueueTable
from agent.records.key_row import new_row
from agent.records.reserve import Reserve
from agent.records.store import Store
from agent.state import AUDIT, LEDGER
from tests.support.queued import queued
from transport.keys import write_secret_file


def message(number: int, device_id: str) -> Waiting:
    return Waiting(
        queue_id=f"q-{number}",
        thread_id="thr",
        device_id=device_id,
        params=queued(number).model_dump_json(by_alias=True, exclude_none=True),
        preview=f"message {number}",
        created_at=1,
        expires_at=2,
        until=2,
    )


def leave(folder: Path, *, waiting: list[Waiting], gone: list[Waiting]) -> None:
    """Leave these messages as an Agent would: some wait, some were dropped."""
    store = Store.open(folder / LEDGER)
    table = QueueTable(store)
    for one in waiting:
        key = new_row(one.device_id, "turn/start", queued(int(one.queue_id[2:])), at=1)
        table.put(one, key)
    why = Why(code="queueRefused", brief="It was refused.")
    told = {one.queue_id: dropped(one, why, at=1, since=1) for one in gone}
    table.remove([], told)
    store.close()


def audited(folder: Path, event: str) -> list[dict[str, Any]]:
    lines = (folder / AUDIT).read_text().splitlines()
    return [one for one in map(json.loads, lines) if one["event"] == event]


def test_an_unlock_drops_what_devices_have_left_as_an_agent_does(
    tmp_path: Path,
) -> None:
    tmp_path.chmod(0o700)
    leave(
        tmp_path,
        waiting=[message(1, "d1"), message(2, "local"), message(3, "d1")],
        gone=[message(4, "d1"), message(5, "d2"), message(6, "local")],
    )
    lock_at_rest(tmp_path)
    unlock_at_rest(tmp_path)
    store = Store.open(tmp_path / LEDGER)
    table = QueueTable(store)
    assert [one.queue_id for one in table.load()] == ["q-2"]
    told = {one.queue_id: one.preview for one in table.load_dropped()}
    store.close()
    assert told == {"q-1": "", "q-3": "", "q-4": "", "q-5": "", "q-6": "message 6"}
    entries = audited(tmp_path, "message/dropped")
    assert [(one["key"], one["code"]) for one in entries] == [
        ("q-1", "queueDropped"),
        ("q-3", "queueDropped"),
    ]
    assert [one["count"] for one in audited(tmp_path, "queue/dropped")] == [2]


def test_a_mark_for_an_agent_that_hangs_is_written_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    assert Reserve(tmp_path, size=4_096).lay_in()

    def write(path: Path, data: bytes) -> None:
        if (tmp_path / "reserve").exists():
            raise OSError(errno.ENOSPC, "no room")
        write_secret_file(path, data)

    monkeypatch.setattr(panic, "write_secret_file", write)
    mark_locked(tmp_path)
    assert (tmp_path / "locked").exists()
