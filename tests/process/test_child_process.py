"""Real children: started alone in their group, read to the end, stopped in order."""

import errno
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NoReturn

import psutil
import pytest
import trio

from adapter.errors import BinaryNotFoundError, ChildExitedError, NotRecordedError
from adapter.limits import STDERR_RING
from adapter.processes import process_table_linux
from adapter.processes.launch import Ears, Launch
from adapter.processes.process import Child, open_child
from adapter.processes.process_table import identify

READY = "import sys, os, signal, time\nprint('ready', flush=True)\n"
POLITE = READY + "sys.stdin.read(); sys.exit(7)"
CHATTY = READY + "sys.stdin.read(); sys.stdout.write('x' * 1_000_000)"
ON_TERM = (
    "import sys, signal, time\n"
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n"
    + READY
    + "time.sleep(600)"
)
STUBBORN = (
    "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    + READY
    + "time.sleep(600)"
)


@dataclass
class Heard:
    """An ear that remembers, and can wait for a word."""

    output: bytearray = field(default_factory=bytearray)
    pids: list[int] = field(default_factory=list)
    ends: list[ChildExitedError | None] = field(default_factory=list)
    news: trio.Event = field(default_factory=trio.Event)
    output_after_end: bool = False

    def ears(self) -> Ears:
        return Ears(started=self.pids.append, output=self.hear, ended=self.ends.append)

    def hear(self, data: bytes) -> None:
        self.output_after_end |= bool(self.ends)
        self.output += data
        self.news.set()
        self.news = trio.Event()

    async def wait_for(self, word: bytes) -> None:
        while word not in self.output:
            await self.news.wait()


def launch(code: str, records: Path, *arguments: str) -> Launch:
    argv = [sys.executable, "-u", "-c", code, *arguments]
    return Launch(name="child", argv=argv, environ=os.environ, records=records)


def records_of(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize(
    ("code", "returncode"),
    [(POLITE, 7), (CHATTY, 0), (ON_TERM, 9), (STUBBORN, -signal.SIGKILL)],
    ids=["end of input", "end of input with much to say", "SIGTERM", "SIGKILL"],
)
async def test_leaving_the_block_stops_the_child_with_the_mildest_means(
    tmp_path: Path, code: str, returncode: int
) -> None:
    heard = Heard()
    with trio.fail_after(240):
        async with open_child(launch(code, tmp_path / "r"), heard.ears()) as child:
            await heard.wait_for(b"ready")
        assert child.returncode == returncode
    assert heard.ends == [None]
    assert not heard.output_after_end
    assert code is not CHATTY or heard.output.endswith(b"x" * 1_000_000)
    assert identify(child.pid) is None


async def test_a_child_has_a_record_exactly_while_it_lives(tmp_path: Path) -> None:
    heard = Heard()
    with trio.fail_after(240):
        async with open_child(launch(POLITE, tmp_path / "r"), heard.ears()) as child:
            await heard.wait_for(b"ready")
            (record,) = records_of(tmp_path / "r")
            assert record.name.startswith(f"{child.pid}-")
            assert record.stat().st_mode & 0o777 == 0o600
    assert records_of(tmp_path / "r") == []


async def test_a_child_without_a_record_is_not_left_running(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    heard = Heard()
    with trio.fail_after(240), pytest.raises(NotRecordedError):
        async with open_child(launch(POLITE, tmp_path / "file"), heard.ears()):
            pytest.fail("it must not start")
    assert heard.ends == [None]


async def test_a_child_that_only_reads_runs_without_a_record(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    heard = Heard()
    wanted = replace(launch(POLITE, tmp_path / "file"), unrecorded=True)
    with trio.fail_after(240):
        async with open_child(wanted, heard.ears()):
            await heard.wait_for(b"ready")
    assert heard.ends == [None]


async def test_a_child_that_leaves_unasked_ends_the_block_after_its_last_words(
    tmp_path: Path,
) -> None:
    heard = Heard()
    code = READY + "print('bye'); print('why', file=sys.stderr); sys.exit(0)"
    with trio.fail_after(240), pytest.raises(ChildExitedError) as caught:
        async with open_child(launch(code, tmp_path), heard.ears()):
            await trio.sleep_forever()
    assert caught.value.returncode == 0
    assert caught.value.last_words == "why"
    assert heard.output.endswith(b"bye\n")
    assert [str(end) for end in heard.ends] == [str(caught.value)]


async def test_a_child_that_closes_its_output_is_ended(tmp_path: Path) -> None:
    heard = Heard()
    code = READY + "os.close(1); sys.stdin.read(); time.sleep(600)"
    with trio.fail_after(240), pytest.raises(ChildExitedError) as caught:
        async with open_child(launch(code, tmp_path), heard.ears()):
            await trio.sleep_forever()
    assert caught.value.returncode == -signal.SIGTERM


async def test_an_error_of_the_listener_ends_the_child_and_leaves_the_block(
    tmp_path: Path,
) -> None:
    def fail(data: bytes) -> None:
        raise LookupError("a bug of ours")

    heard = Heard()
    ears = replace(heard.ears(), output=fail)
    with trio.fail_after(240), pytest.raises(LookupError, match="bug of ours"):
        async with open_child(launch(CHATTY, tmp_path), ears):
            await trio.sleep_forever()
    assert len(heard.ends) == 1


async def test_an_error_in_the_block_is_the_one_that_leaves_it(tmp_path: Path) -> None:
    heard = Heard()
    with trio.fail_after(240), pytest.raises(ValueError, match="mine"):
        async with open_child(launch(POLITE, tmp_path), heard.ears()):
            await heard.wait_for(b"ready")
            raise ValueError("mine")
    assert heard.ends == [None]


async def test_cancelling_the_block_reaps_the_child(tmp_path: Path) -> None:
    heard = Heard()
    child: Child | None = None
    with trio.fail_after(240), trio.CancelScope() as scope:
        async with open_child(launch(POLITE, tmp_path), heard.ears()) as child:
            await heard.wait_for(b"ready")
            scope.cancel()
            await trio.sleep_forever()
    assert child is not None
    assert child.returncode == 7


async def test_a_binary_that_cannot_run_says_so(tmp_path: Path) -> None:
    nothing = Launch(
        name="child", argv=["/no/such/codex"], environ={}, records=tmp_path
    )
    with pytest.raises(BinaryNotFoundError, match="/no/such/codex"):
        async with open_child(nothing, Heard().ears()):
            pytest.fail("it cannot run")


async def test_a_guard_that_says_no_starts_nothing(tmp_path: Path) -> None:
    def guard() -> None:
        raise PermissionError("no")

    seen = tmp_path / "seen"
    code = f"open({str(seen)!r}, 'w')"
    with pytest.raises(PermissionError, match="no"):
        async with open_child(launch(code, tmp_path), Heard().ears(), guard=guard):
            pytest.fail("it must not start")
    assert not seen.exists()


async def test_a_twenty_megabyte_line_arrives_whole(tmp_path: Path) -> None:
    heard = Heard()
    code = "import sys; sys.stdout.write('y' * 20_000_000 + '\\n'); sys.stdout.flush(); sys.stdin.read()"
    with trio.fail_after(240):
        async with open_child(launch(code, tmp_path), heard.ears()):
            await heard.wait_for(b"\n")
    assert len(heard.output) == 20_000_001


async def test_a_flood_on_stderr_neither_stops_the_child_nor_grows_without_bound(
    tmp_path: Path,
) -> None:
    heard = Heard()
    code = "import sys\nsys.stderr.write('z' * 8_000_000 + 'last')\n" + POLITE
    with trio.fail_after(240):
        async with open_child(launch(code, tmp_path), heard.ears()) as child:
            await heard.wait_for(b"ready")
        assert len(child.log) == STDERR_RING
        assert child.log.tail().endswith("last")


def holders_of_write_end(child_pid: int) -> set[int]:
    """Return who has the write end of the child's stdin, by the pipe's own number."""
    pipe = os.readlink(f"/proc/{child_pid}/fd/0")
    holders: set[int] = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            for fd in (entry / "fd").iterdir():
                if os.readlink(fd) == pipe:
                    info = (entry / "fdinfo" / fd.name).read_text()
                    flags = int(info.split("flags:")[1].split()[0], 8)
                    if flags & os.O_ACCMODE == os.O_WRONLY:
                        holders.add(int(entry.name))
        except OSError:
            continue
    return holders


async def test_the_write_end_of_its_input_is_inherited_by_nobody(
    tmp_path: Path,
) -> None:
    one, two = Heard(), Heard()
    with trio.fail_after(240):
        async with (
            open_child(launch(POLITE, tmp_path), one.ears()) as child,
            open_child(launch(POLITE, tmp_path), two.ears()) as other,
        ):
            await one.wait_for(b"ready")
            await two.wait_for(b"ready")
            careless = subprocess.Popen(  # noqa: ASYNC220, TID251
                [sys.executable, "-c", POLITE],
                close_fds=False,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            with careless:
                assert careless.stdout is not None
                await trio.to_thread.run_sync(careless.stdout.readline)
                assert holders_of_write_end(child.pid) == {os.getpid()}
                assert holders_of_write_end(other.pid) == {os.getpid()}


async def test_the_child_leads_its_own_group_and_takes_it_along(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys\n"
        "kid = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print('kid', kid.pid, flush=True)\nsys.stdin.read()"
    )
    heard = Heard()
    with trio.fail_after(240):
        async with open_child(launch(code, tmp_path), heard.ears()) as child:
            await heard.wait_for(b"\n")
            grandchild = int(heard.output.split()[1])
            assert os.getpgid(child.pid) == child.pid != os.getpgrp()
            assert os.getpgid(grandchild) == child.pid
        while identify(grandchild) is not None:  # noqa: ASYNC110 - not our child
            await trio.sleep(0.01)


SHELL = """
import subprocess, sys
subprocess.Popen(
    ["/bin/bash", "-c", "echo '# Snapshot file' >/dev/null; sleep $0; touch $1", *sys.argv[1:]],
    start_new_session=True,
)
print("ready", flush=True)
sys.stdin.read()
"""


async def test_the_login_shell_of_a_snapshot_is_waited_for(tmp_path: Path) -> None:
    done, heard = tmp_path / "done", Heard()
    with trio.fail_after(240):
        async with open_child(
            launch(SHELL, tmp_path / "r", "2", str(done)), heard.ears()
        ) as child:
            await heard.wait_for(b"ready")
            assert child.shells_alive()
        assert done.exists()
        assert child.returncode == 0


async def test_in_a_hurry_the_login_shell_is_not_waited_for(tmp_path: Path) -> None:
    done, heard = tmp_path / "done", Heard()
    with trio.fail_after(240):
        async with open_child(
            launch(SHELL, tmp_path / "r", "60", str(done)), heard.ears()
        ) as child:
            await heard.wait_for(b"ready")
            assert child.shells_alive()
            child.hurry()
        assert not done.exists()


async def test_a_killed_child_leaves_no_login_shell_behind(tmp_path: Path) -> None:
    done, heard = tmp_path / "done", Heard()
    code = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SHELL
    with trio.fail_after(240):
        async with open_child(
            launch(code + "import time; time.sleep(600)", tmp_path / "r", "600", "x"),
            heard.ears(),
        ) as child:
            await heard.wait_for(b"ready")
            assert child.shells_alive()
            (shell,) = child.shells
            child.hurry()
        assert child.returncode == -signal.SIGKILL
        assert identify(shell.pid) != shell
        assert not done.exists()


async def test_starting_many_at_once_and_stopping_them_leaves_nothing(
    tmp_path: Path,
) -> None:
    async def one() -> None:
        heard = Heard()
        async with open_child(launch(POLITE, tmp_path / "r"), heard.ears()):
            await heard.wait_for(b"ready")

    before = len(os.listdir("/proc/self/fd"))
    with trio.fail_after(240):
        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(partial(one))
    assert records_of(tmp_path / "r") == []
    assert len(os.listdir("/proc/self/fd")) == before


def no_room(*_args: object) -> NoReturn:
    raise OSError(errno.EMFILE, "too many open files")


def children() -> set[int]:
    return {one.pid for one in psutil.Process().children()}  # the dead too


def open_files() -> int:
    return len(os.listdir("/dev/fd"))


@pytest.mark.parametrize("call", ["dup", "pidfd_open"])
async def test_a_child_for_which_no_descriptor_is_left_is_gone_and_nobody_saw_it(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard, before, ours = Heard(), open_files(), children()
    with trio.fail_after(240):
        with monkeypatch.context() as full, pytest.raises(BinaryNotFoundError):
            full.setattr(os, call, no_room)
            async with open_child(launch(STUBBORN, tmp_path / "r"), heard.ears()):
                pytest.fail("it cannot be watched")
    assert children() == ours, "none is there to be waited for"
    assert (heard.pids, heard.ends) == ([], [])
    assert open_files() == before


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's table is starved here")
async def test_a_child_that_nobody_can_look_at_has_no_record_and_is_not_left_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = Heard()
    monkeypatch.setattr(process_table_linux, "_stat", no_room)
    monkeypatch.setattr("adapter.processes.process.SHELL_WAIT_S", 0.2)
    with trio.fail_after(240), pytest.raises(NotRecordedError):
        async with open_child(launch(POLITE, tmp_path / "r"), heard.ears()):
            pytest.fail("nobody could sweep it")
    monkeypatch.undo()
    (pid,) = heard.pids
    assert identify(pid) is None


async def test_a_child_ends_though_no_descriptor_is_left_to_look_at_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard()
    with trio.fail_after(240):
        async with open_child(launch(STUBBORN, tmp_path / "r"), heard.ears()) as child:
            await heard.wait_for(b"ready")
            monkeypatch.setattr(os, "listdir", no_room)
            assert child.shells_alive(), "nobody knows, so it is asked again"
            child.hurry()
        monkeypatch.undo()
    assert child.returncode == -signal.SIGKILL
    assert records_of(tmp_path / "r") == []
    assert "could not be looked for" in caplog.text
