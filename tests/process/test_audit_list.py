"""The audit log read back: newest first, page by page, over rotations, at admin.sock."""

from datetime import UTC
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trio

from agent.records.audit import Audit
from clients.cli.auditing import entry_lines
from clients.cli.style import paint
from tests.support.agents import client_info, open_agent, pair_device
from tests.support.cli_runs import cli_environ, run_cli
from transport.client import open_client
from transport.errors import InvalidParams
from transport.protocol.admin import AuditEntry

pytestmark = pytest.mark.usefixtures("warm_runs")


def read_all(audit: Audit, limit: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        page, cursor = audit.read(cursor=cursor, limit=limit)
        assert len(page) <= limit
        rows += page
        if cursor is None:
            return rows


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_pages_hold_every_entry_once_and_the_newest_first(
    tmp_path: Path, limit: int
) -> None:
    numbers = count()
    audit = Audit(tmp_path / "a", now_ms=lambda: next(numbers), max_bytes=600, files=4)
    for number in range(40):
        audit.record("x", number=number)
    audit.close()
    found = [row["number"] for row in read_all(audit, limit)]
    assert found == list(range(39, 39 - len(found), -1))
    assert len(found) > 40 // 2


def test_a_cursor_goes_on_where_it_was_though_the_log_grew_and_was_rotated(
    tmp_path: Path,
) -> None:
    audit = Audit(tmp_path / "a", now_ms=lambda: 1, max_bytes=400, files=4)
    for number in range(8):
        audit.record("x", number=number)
    page, cursor = audit.read(cursor=None, limit=3)
    for number in range(8, 14):
        audit.record("x", number=number)
    more, _ = audit.read(cursor=cursor, limit=3)
    audit.close()
    assert [row["number"] for row in [*page, *more]] == [7, 6, 5, 4, 3, 2]


def test_a_cursor_behind_the_end_of_the_log_reads_no_more_than_there_is(
    tmp_path: Path,
) -> None:
    audit = Audit(tmp_path / "a", now_ms=lambda: 1)
    audit.record("x", number=1)
    inode = (tmp_path / "a").stat().st_ino
    page, _ = audit.read(cursor=f"{inode}-{'9' * 20}", limit=3)
    audit.close()
    assert [row["number"] for row in page] == [1]


def test_what_a_crash_cut_short_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b'{"at":1,"event":"x"}\n[1]\n{"at":2,"ev')
    audit = Audit(tmp_path / "a", now_ms=lambda: 3)
    assert read_all(audit, 10) == [{"at": 1, "event": "x"}]


def test_no_log_is_an_empty_page_and_a_foreign_cursor_is_refused(
    tmp_path: Path,
) -> None:
    audit = Audit(tmp_path / "none", now_ms=lambda: 1)
    assert audit.read(cursor=None, limit=5) == ([], None)
    with pytest.raises(InvalidParams):
        audit.read(cursor="../../etc", limit=5)


def test_the_longest_name_of_a_page_has_a_gap_behind_it_too() -> None:
    entries = [
        AuditEntry(at=0, event="approval/withdrawn", fields={"thread": "t"}),
        AuditEntry(at=0, event="gateway/lock", fields={"stop": False}),
        AuditEntry(at=0, event="gateway/unlock", fields={}),
    ]
    shown = [paint(row, colour=False) for row in entry_lines(entries, {}, UTC)]
    assert [row.removeprefix("1970-01-01 00:00:00") for row in shown] == [
        "  approval/withdrawn  thread=t",
        "  gateway/lock        stop=False",
        "  gateway/unlock",
    ]


async def test_the_owner_sees_who_was_paired_and_when(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            device = await pair_device(house)
            async with open_client(house.target(device), client_info()):
                pass
            environ = {
                **cli_environ(house.config.state_dir),
                "THREADGATE_RUNTIME_DIR": str(house.config.runtime_dir),
            }
            ran = await run_cli("audit", environ=environ)
            whole = await run_cli("audit", "--all", environ=environ)
            lines = await run_cli("audit", "-n", "1", "--json", environ=environ)
    assert ran.code == 0, ran
    (paired,) = [line for line in ran.out.splitlines() if "pair.accepted" in line]
    assert f"device={device.id} (phone)" in paired
    assert "session/open" not in ran.out + lines.out  # nothing was done in these
    assert "session/open" in whole.out.splitlines()[0]
    assert len(lines.out.splitlines()) == 1
    assert '"event"' in lines.out


async def test_a_device_that_comes_again_and_again_does_not_fill_the_log(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            devices = [
                await pair_device(house),
                await pair_device(house, name="tablet"),
            ]
            for device in devices * 4:
                async with open_client(house.target(device), client_info()):
                    pass
        audit = Audit(house.config.state_dir / "audit.jsonl", now_ms=lambda: 0)
        rows = read_all(audit, 100)
    opened = [row["device"] for row in rows if row["event"] == "session/open"]
    assert sorted(opened) == sorted(device.id for device in devices)
