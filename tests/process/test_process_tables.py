"""What psutil tells of real processes is what /proc tells: macOS's modules, on Linux."""

import errno
import os
import signal
from operator import attrgetter
from pathlib import Path
from typing import Any

import psutil
import pytest
import trio

from adapter.processes import process_table_darwin, process_table_linux
from adapter.processes.process_table import ProcessTable, children, group
from agent.gate import proctable_darwin, proctable_linux
from tests.support.fake_desktop import CLI, open_program, place, shell

PATIENCE_S = 240
FAMILY = "sleep 600 & sleep 600 & echo ready; read -r line"
BOTH = [process_table_linux, process_table_darwin]


async def test_both_tell_the_same_of_a_process_and_its_kin(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    program = place(tmp_path, CLI)
    argv = [str(program), "-c", FAMILY, "codex", "exec"]
    with trio.fail_after(PATIENCE_S):
        async with open_program(argv, os.environ | {"CODEX_HOME": str(home)}) as one:
            kin = children(one.pid, table=process_table_linux)
            try:
                assert len(kin) == 2
                told = children(one.pid, table=process_table_darwin)
                assert sorted(told) == sorted(kin)
                _compare(one.pid, str(program), str(home))
            finally:
                for pid in kin:
                    os.kill(pid, signal.SIGKILL)
    assert proctable_darwin.read_exe(one.pid) is None
    assert proctable_darwin.started(one.pid) is None


def _compare(pid: int, program: str, home: str) -> None:
    tables = (proctable_linux, proctable_darwin)
    assert [table.read_exe(pid) for table in tables] == [program, program]
    told, same = [table.read_process(pid, program) for table in tables]
    assert told is not None
    assert same is not None
    assert (same.parent, same.argv, same.home) == (told.parent, told.argv, home)
    since = proctable_linux.boot_ms() / 1_000 + told.started
    assert same.started == pytest.approx(since, abs=1)
    lines = [
        [(parent.pid, parent.exe) for parent in table.ancestors(told)]
        for table in tables
    ]
    assert lines[0] == lines[1]
    assert lines[0][0][0] == os.getpid()


def test_both_list_the_same_processes() -> None:
    kept = set(proctable_linux.pids()) & set(proctable_linux.pids())
    assert {1, os.getpid()} <= kept & set(proctable_darwin.pids())
    rows = [{row.pid: row for row in table.rows()} for table in BOTH]
    me = os.getpid()
    assert rows[0][me] == rows[1][me]
    assert me in group(os.getpgid(me), table=process_table_darwin)


async def test_a_start_is_told_the_same_for_as_long_as_a_process_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the clock is set: psutil alone would tell another one then."""
    with trio.fail_after(PATIENCE_S):
        async with open_program(shell(place(tmp_path, CLI)), os.environ) as one:
            first = proctable_darwin.started(one.pid)
            assert first is not None
            monkeypatch.setattr("psutil._pslinux.Process.create_time", _an_hour_on)
            assert psutil.Process(one.pid).create_time() > first + 3_000
            assert proctable_darwin.started(one.pid) == first
    proctable_darwin.pids()
    assert one.pid not in proctable_darwin.KNOWN


READ: Any = attrgetter("_read")(proctable_linux)
TELL: Any = attrgetter("_pslinux.Process.create_time")(psutil)


def _not_laid_out(path: Path) -> bytes:
    """What /proc tells of a process in the middle of its exec: no environment's end."""
    told = bytes(READ(path))
    if path.name != "stat":
        return told
    *fields, _, exit_code = told.split(b" ")
    return b" ".join([*fields, b"0", exit_code])


def _an_hour_on(self: object, monotonic: bool = False) -> float:
    return float(TELL(self, monotonic)) + (0 if monotonic else 3_600)


@pytest.mark.parametrize("table", BOTH)
async def test_a_process_is_held_signalled_and_seen_to_end(
    table: ProcessTable, tmp_path: Path
) -> None:
    with trio.fail_after(PATIENCE_S):
        async with open_program(shell(place(tmp_path, CLI)), os.environ) as one:
            identity = table.identify(one.pid)
            assert identity is not None
            held = table.hold(identity)
            assert held is not None
            assert table.wait_gone([held], 0.05) == [held]
            table.send(held, signal.SIGKILL)
            assert await trio.to_thread.run_sync(table.wait_gone, [held], 10.0) == []
            table.release(held)
            assert table.hold(identity) is None


async def test_a_process_between_two_programs_is_read_once_it_has_an_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exec leaves it without one for a moment: it is not taken for one of ours."""
    program = place(tmp_path, CLI)
    environ = os.environ | {"CODEX_HOME": str(tmp_path)}
    unready: list[bytes | OSError] = [b"", OSError(errno.EIO, "no page"), b""]

    def read(path: Path) -> bytes:
        if path.name != "environ" or not unready:
            return _not_laid_out(path)
        told = unready.pop()
        if isinstance(told, OSError):
            raise told
        return told

    with trio.fail_after(PATIENCE_S):
        async with open_program(shell(program), environ) as one:
            monkeypatch.setattr(proctable_linux, "_read", read)
            told = proctable_linux.read_process(one.pid, str(program))
    assert told is not None
    assert told.home == str(tmp_path)
    assert told.argv


async def test_a_process_that_stays_between_two_programs_is_none_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy machine may hold an exec up: the next look will see what it became."""

    def read(path: Path) -> bytes:
        return b"" if path.name in {"environ", "cmdline"} else _not_laid_out(path)

    program = place(tmp_path, CLI)
    with trio.fail_after(PATIENCE_S):
        async with open_program(shell(program), os.environ) as one:
            monkeypatch.setattr(proctable_linux, "_read", read)
            assert proctable_linux.read_process(one.pid, str(program)) is None


async def test_a_process_with_an_empty_environment_holds_no_look_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays so: every look would wait for it again, and for each of its kind."""
    program = place(tmp_path, "bin/program")  # else it would be everybody's codex
    waits: list[None] = []
    with trio.fail_after(PATIENCE_S):
        async with open_program(shell(program), {}) as one:
            monkeypatch.setattr("os.sched_yield", lambda: waits.append(None))
            told = proctable_linux.read_process(one.pid, str(program))
    assert told is not None
    assert told.home is None
    assert waits == []


@pytest.mark.parametrize("table", [proctable_linux, proctable_darwin])
async def test_a_process_that_ends_while_it_is_read_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: Any
) -> None:
    program = place(tmp_path, CLI)
    home_of = table._home

    def end_first(process: int | psutil.Process) -> str | None:
        pid = process if isinstance(process, int) else process.pid
        os.kill(pid, signal.SIGKILL)
        while proctable_linux.started(pid) is not None:
            pass
        found: str | None = home_of(process)
        return found

    with trio.fail_after(PATIENCE_S):
        async with open_program(shell(program), os.environ) as one:
            monkeypatch.setattr(table, "_home", end_first)
            assert table.read_process(one.pid, str(program)) is None
