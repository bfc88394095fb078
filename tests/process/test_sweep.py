"""What an earlier Agent left alive is ended; what only looks like it is not.

Everything twice: through /proc, and through psutil as on macOS.
"""

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

import pytest

from adapter.processes import process_table_darwin, process_table_linux
from adapter.processes.identity import Identity
from adapter.processes.process_table import ProcessTable
from adapter.processes.stragglers import MARK_NAME, mark_environ
from adapter.processes.sweep import sweep, write_record

POLITE = "print('ready', flush=True); import time; time.sleep(600)"
STUBBORN = (
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "import subprocess, sys\n"
    "kid = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
    "print(kid.pid, flush=True); import time; time.sleep(600)"
)


class Leftover:
    """A process of an earlier Agent, and what it printed."""

    def __init__(self, code: str, table: ProcessTable) -> None:
        self.process = subprocess.Popen(  # noqa: TID251
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline()
        identity = table.identify(self.process.pid)
        assert identity is not None
        self.identity: Identity = identity

    def end(self) -> None:
        assert self.process.stdout is not None
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture(params=[process_table_linux, process_table_darwin])
def table(request: pytest.FixtureRequest) -> ProcessTable:
    found: ProcessTable = request.param
    return found


@pytest.fixture
def leftover(table: ProcessTable) -> Iterator[Leftover]:
    made = Leftover(POLITE, table)
    yield made
    made.end()


def test_a_leftover_is_ended_and_its_record_forgotten(
    tmp_path: Path, leftover: Leftover, table: ProcessTable
) -> None:
    write_record(tmp_path, leftover.identity)
    (swept,) = sweep(tmp_path, table=table)
    assert swept.identity == leftover.identity
    assert not swept.killed
    assert leftover.process.wait(10) == -signal.SIGTERM
    assert list(tmp_path.iterdir()) == []
    assert sweep(tmp_path, table=table) == []


BACKGROUND = "sleep 971 & setsid sleep 972 & echo $!; read -r line"


def test_what_a_killed_one_had_in_the_background_ends_but_not_what_leads_a_session(
    tmp_path: Path, table: ProcessTable
) -> None:
    """Its command led a session, and is dead by now."""
    environ = {**os.environ, **mark_environ("some-mark")}
    with subprocess.Popen(  # noqa: TID251
        ["bash", "-c", BACKGROUND],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as command:
        assert command.stdout is not None
        command.stdout.readline()
        identity = table.identify(command.pid)
        assert identity is not None
        while len(marked := table.marked(f"{MARK_NAME}=some-mark")) < 3:
            os.sched_yield()
        while sum(os.getsid(pid) == pid for pid in marked) < 2:
            os.sched_yield()
        (daemon,) = [p for p in marked if os.getsid(p) == p and p != command.pid]
        command.kill()
        command.wait()
        write_record(tmp_path, identity, mark="some-mark")
        assert sweep(tmp_path, table=table) == []
        try:
            assert table.marked(f"{MARK_NAME}=some-mark") == [daemon]
        finally:
            os.kill(daemon, signal.SIGKILL)


def test_one_that_does_not_listen_is_killed_with_its_group(
    tmp_path: Path, table: ProcessTable
) -> None:
    leftover = Leftover(STUBBORN, table)
    try:
        write_record(tmp_path, leftover.identity)
        (swept,) = sweep(tmp_path, table=table)
        assert swept.killed
        assert leftover.process.wait(10) == -signal.SIGKILL
        kid = int(leftover.said)
        while table.identify(kid) is not None:
            os.sched_yield()
    finally:
        leftover.end()


@pytest.mark.parametrize(
    ("started", "argv"),
    [
        ("another-boot/123", None),
        (None, ("codex", "app-server", "--stdio")),
        (None, ()),
    ],
    ids=["a reused pid", "another command", "no command"],
)
def test_a_process_that_does_not_match_in_all_three_is_left_alone(
    tmp_path: Path,
    leftover: Leftover,
    table: ProcessTable,
    started: str | None,
    argv: tuple[str, ...] | None,
) -> None:
    known = leftover.identity
    noted = Identity(
        pid=known.pid,
        started=known.started if started is None else started,
        argv=known.argv if argv is None else argv,
    )
    write_record(tmp_path, noted)
    assert sweep(tmp_path, table=table) == []
    assert leftover.process.poll() is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        json.dumps({"pid": 1, "started": "x", "argv": []}),
        json.dumps({"pid": -1, "started": "x", "argv": []}),
        json.dumps({"pid": 10**30, "started": "x", "argv": []}),
        json.dumps({"pid": "1", "started": "x", "argv": []}),
    ],
)
def test_a_torn_record_names_nobody(
    tmp_path: Path, text: str, table: ProcessTable
) -> None:
    (tmp_path / "7-7.json").write_text(text)
    assert sweep(tmp_path, table=table) == []
    assert list(tmp_path.iterdir()) == []


def test_a_folder_where_a_record_would_be_stops_no_start(
    tmp_path: Path, leftover: Leftover, table: ProcessTable
) -> None:
    (tmp_path / "7-7.json").mkdir()
    write_record(tmp_path, leftover.identity)
    (swept,) = sweep(tmp_path, table=table)
    assert swept.identity == leftover.identity


def test_a_record_of_the_dead_ends_nobody(
    tmp_path: Path, leftover: Leftover, table: ProcessTable
) -> None:
    write_record(tmp_path, leftover.identity)
    leftover.end()
    assert sweep(tmp_path, table=table) == []


@pytest.mark.parametrize(
    "call", ["os.pidfd_open", "pathlib.Path.read_text", "pathlib.Path.read_bytes"]
)
def test_without_a_descriptor_to_look_with_nobody_is_forgotten(
    call: str, tmp_path: Path, leftover: Leftover, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = process_table_linux.identify(leftover.process.pid)
    assert identity is not None
    path = write_record(tmp_path, identity)

    def no_room(*_args: object, **_how: object) -> NoReturn:
        raise OSError(errno.EMFILE, "too many open files")

    with monkeypatch.context() as full:
        full.setattr(call, no_room)
        with pytest.raises(OSError, match="too many"):
            sweep(tmp_path, table=process_table_linux)
    assert path.exists()
    (swept,) = sweep(tmp_path, table=process_table_linux)
    assert swept.identity == identity


def test_records_are_private(tmp_path: Path, leftover: Leftover) -> None:
    path = write_record(tmp_path / "records", leftover.identity)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert json.loads(path.read_text())["pid"] == leftover.identity.pid
    assert set(asdict(leftover.identity)) == {"pid", "started", "argv"}


def test_nothing_to_sweep_is_no_error(tmp_path: Path, table: ProcessTable) -> None:
    assert sweep(tmp_path / "nothing", table=table) == []
