"""The process table with real processes: who counts, when they come, when they go.

Everything twice: through /proc, and through psutil as on macOS.
"""

import errno
import fcntl
import os
import sys
import time
from pathlib import Path
from typing import NoReturn, Protocol

import pytest
import trio

from agent.gate import proctable_darwin, proctable_linux
from agent.gate.engines import Look, Programs
from agent.gate.gate import Gate, World
from agent.gate.proctable import ProcessTable
from agent.gate.writers import WriterWatch
from agent.limits import YOUNG_S
from tests.support.fake_desktop import (
    APP,
    CLI,
    ENGINE,
    open_program,
    place,
    say,
    shell,
    wait_ready,
)
from tests.support.leftovers import MARK_NAME
from tests.support.measures import in_time
from tests.support.own_table import without_other_workers
from transport.protocol.gateway import GateReason, WriterKind

PATIENCE_S = 240
ODD = r"/odd/place/app$"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "codex-home"
    home.mkdir()
    return home


def environ(home: Path) -> dict[str, str]:
    return {**os.environ, "CODEX_HOME": str(home)}


class Watching(Protocol):
    """Makes a watch over `home`; `own` are our own app-servers."""

    def __call__(self, home: Path, *own: int) -> WriterWatch: ...


@pytest.fixture(params=[proctable_linux, proctable_darwin])
def table(request: pytest.FixtureRequest) -> ProcessTable:
    return without_other_workers(request.param)


@pytest.fixture
def watching(table: ProcessTable) -> Watching:
    def make(home: Path, *own: int) -> WriterWatch:
        return WriterWatch(own_pids=lambda: set(own), home=home, table=table)

    return make


async def test_a_desktop_is_seen_while_it_lives_and_named(
    tmp_path: Path, home: Path, watching: Watching
) -> None:
    watch = watching(home)
    assert watch.look() == Look()
    with trio.fail_after(PATIENCE_S):
        argv = shell(place(tmp_path, APP))
        async with open_program(argv, environ(home)) as desktop:
            (found,) = watch.look().foreign
            assert found.pid == desktop.pid
            assert found.named.kind is WriterKind.DESKTOP
            assert found.since > 1_600_000_000_000
            assert watch.look().desktop == found
        assert watch.look() == Look()


async def test_its_engine_alone_counts_and_so_does_a_deleted_program(
    tmp_path: Path, home: Path, watching: Watching
) -> None:
    path = place(tmp_path, ENGINE)
    with trio.fail_after(PATIENCE_S):
        async with open_program(shell(path), environ(home)):
            path.unlink()  # an update replaces the file of a running program
            (found,) = watching(home).look().foreign
            assert found.named.kind is WriterKind.DESKTOP


async def test_a_desktop_on_another_home_does_not_count(
    tmp_path: Path, home: Path, watching: Watching
) -> None:
    other = tmp_path / "other-home"
    other.mkdir()
    with trio.fail_after(PATIENCE_S):
        argv = shell(place(tmp_path, APP))
        async with open_program(argv, environ(other)):
            assert watching(home).look() == Look()
            assert watching(other).look().desktop is not None


async def test_a_home_behind_a_link_is_the_same_home(
    tmp_path: Path, home: Path, watching: Watching
) -> None:
    link = tmp_path / "link"
    link.symlink_to(home)
    with trio.fail_after(PATIENCE_S):
        argv = shell(place(tmp_path, APP))
        async with open_program(argv, environ(link)):
            assert watching(home).look().desktop is not None
            assert watching(link).look().desktop is not None


async def test_without_codex_home_the_users_own_home_counts(
    tmp_path: Path, watching: Watching
) -> None:
    user = tmp_path / "user"
    (user / ".codex").mkdir(parents=True)
    plain = {"PATH": os.defpath, "HOME": str(user), **_mark()}
    with trio.fail_after(PATIENCE_S):
        argv = shell(place(tmp_path, APP))
        async with open_program(argv, plain):
            assert watching(user / ".codex").look().desktop is not None


@pytest.mark.parametrize(
    "told", [{}, {"CODEX_HOME": "codex-home"}, {"HOME": "."}], ids=str
)
async def test_a_home_that_cannot_be_told_counts_as_ours(
    told: dict[str, str], tmp_path: Path, home: Path, table: ProcessTable
) -> None:
    programs = Programs(apps=[ODD])  # else it would be the desktop of all other tests
    watch = WriterWatch(own_pids=set, home=home, programs=programs, table=table)
    with trio.fail_after(PATIENCE_S):
        argv = shell(place(tmp_path, "odd/place/app"))
        async with open_program(argv, {"PATH": os.defpath, **_mark(), **told}):
            assert watch.look().desktop is not None


def _mark() -> dict[str, str]:
    """What makes leftovers findable must stay in a child's environment."""
    return {MARK_NAME: os.environ[MARK_NAME]}


async def test_our_own_writers_and_what_they_started_do_not_count(
    tmp_path: Path, home: Path, watching: Watching
) -> None:
    engine = place(tmp_path, CLI)
    with trio.fail_after(PATIENCE_S):
        async with open_program(shell(engine, "x"), environ(home)) as ours:
            assert len(watching(home).look().foreign) == 1
            assert watching(home, ours.pid).look() == Look()
            assert watching(home, os.getpid()).look() == Look()  # a descendant


async def test_a_program_that_becomes_the_desktop_under_its_old_pid_is_seen(
    tmp_path: Path, home: Path, watching: Watching
) -> None:
    watch = watching(home)
    desktop = place(tmp_path, APP)
    with trio.fail_after(PATIENCE_S):
        argv = shell(Path("/bin/bash"))
        async with open_program(argv, environ(home)) as process:
            assert watch.look() == Look()
            await say(process, f"exec {desktop} -c 'echo ready; read -r x'")
            await wait_ready(process)
            assert watch.glance().desktop is not None  # no process was made since
            assert watch.look().desktop is not None


async def test_the_watch_tells_of_a_desktop_that_comes_and_goes(
    tmp_path: Path, home: Path, watching: Watching
) -> None:
    looks, heard = trio.open_memory_channel[Look](1_000)
    watch = watching(home)
    watch.on_look = looks.send_nowait
    with looks, heard, trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            await nursery.start(watch.serve)
            argv = shell(place(tmp_path, APP))
            async with open_program(argv, environ(home)):
                while (await heard.receive()).desktop is None:
                    pass
            while (await heard.receive()).desktop is not None:
                pass
            nursery.cancel_scope.cancel(reason="seen")


@pytest.mark.parametrize("call", ["fork_counter", "pids"])
async def test_where_the_table_cannot_be_read_anybody_may_write_and_the_watch_goes_on(
    call: str,
    tmp_path: Path,
    home: Path,
    table: ProcessTable,
    watching: Watching,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No descriptors are left, for a while; the desktop is not forgotten over it."""
    monkeypatch.setattr("agent.gate.writers.YOUNG_S", 0.0)  # none is looked at again
    full = OSError(errno.EMFILE, "too many open files")
    watch = watching(home)
    looks, heard = trio.open_memory_channel[Look](1_000)
    watch.on_look = looks.send_nowait

    def fail() -> NoReturn:
        raise full

    with looks, heard, trio.fail_after(PATIENCE_S):
        argv = shell(place(tmp_path, APP))
        async with (
            open_program(argv, environ(home)),
            trio.open_nursery() as nursery,
        ):
            await nursery.start(watch.serve)
            with monkeypatch.context() as patched:
                patched.setattr(table, call, fail)
                assert watch.look() == Look(blind=True)
                assert watch.glance() == Look(blind=True)
                while not (await heard.receive()).blind:
                    pass
            while (seen := await heard.receive()).blind:
                pass
            assert seen.desktop is not None
            nursery.cancel_scope.cancel(reason="seen")


@pytest.mark.parametrize("starved", ["stat", "cmdline", "environ"])
async def test_a_desktop_for_which_no_descriptor_is_left_is_not_gone(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, starved: str
) -> None:
    """Others of our threads may take the last one in the middle of a look."""
    monkeypatch.setattr("agent.gate.writers.YOUNG_S", 0.0)  # none is looked at again
    watch = WriterWatch(own_pids=set, home=home, table=proctable_linux)
    true_open = os.open
    with trio.fail_after(PATIENCE_S):
        argv = shell(place(tmp_path, APP))
        async with open_program(argv, environ(home)) as desktop:
            assert watch.look().desktop is not None

            def take_the_last(path: Path, flags: int) -> int:
                if path == Path(f"/proc/{desktop.pid}/{starved}"):
                    raise OSError(errno.EMFILE, "too many open files")
                return true_open(path, flags)

            with monkeypatch.context() as patched:
                patched.setattr(os, "open", take_the_last)
                assert watch.look() == Look(blind=True)
            assert watch.glance().desktop is not None


async def test_a_desktop_of_unknown_age_goes_first(
    tmp_path: Path,
    home: Path,
    table: ProcessTable,
    watching: Watching,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> NoReturn:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(table, "uptime_s", fail)
    watch = watching(home)
    assert watch.settling_s() == 0.0
    with trio.fail_after(PATIENCE_S):
        async with open_program(shell(place(tmp_path, APP)), environ(home)):
            assert watch.settling_s() == YOUNG_S


def test_who_holds_a_thread_is_nobody_where_that_cannot_be_read(
    home: Path,
    table: ProcessTable,
    watching: Watching,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> NoReturn:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(table, "lock_owners", fail)
    assert watching(home).holders(["thr"]) == {}


async def test_an_old_process_that_ends_is_missed_at_the_next_glance(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, watching: Watching
) -> None:
    monkeypatch.setattr("agent.gate.writers.YOUNG_S", 0.0)  # none is looked at again
    watch = watching(home)
    with trio.fail_after(PATIENCE_S):
        argv = shell(place(tmp_path, APP))
        async with open_program(argv, environ(home)):
            assert watch.look().desktop is not None
            assert watch.glance().desktop is not None
        assert watch.glance() == Look()


async def test_a_gate_over_the_real_table_closes_at_once_and_opens_after_two_looks(
    tmp_path: Path, home: Path, watching: Watching
) -> None:
    watch = watching(home)
    gate = Gate(at_ms=0)

    def reason() -> GateReason | None:
        world = World(look=watch.look(), runtime_up=True, ours_lock=True)
        gate.observe(world, at_ms=0, now_s=trio.current_time())
        return gate.state.reason

    assert reason() is None
    with trio.fail_after(PATIENCE_S):
        argv = shell(place(tmp_path, APP))
        async with open_program(argv, environ(home)):
            assert reason() is GateReason.DESKTOP_ACTIVE
        assert reason() is GateReason.DESKTOP_ACTIVE
        await trio.sleep(0.25)
        assert reason() is None


async def test_an_engine_is_asked_once_for_its_version(
    tmp_path: Path, home: Path, watching: Watching
) -> None:
    """Until it has answered, and where it never does, it counts as without locks."""
    engine = place(tmp_path, CLI)
    watch = watching(home)
    with trio.fail_after(PATIENCE_S):
        async with open_program(shell(engine), environ(home)):
            (found,) = watch.look().foreign
            assert found.named.kind is WriterKind.CLI
            assert not found.locks
            async with trio.open_nursery() as nursery:
                await nursery.start(watch.serve)
                nursery.cancel_scope.cancel(reason="asked")
            (found,) = watch.look().foreign  # bash is no codex: its place says it is
            assert not found.locks


async def test_a_codex_that_does_not_tell_its_version_keeps_no_look_waiting(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = trio.Event()
    table = without_other_workers(proctable_linux)
    watch = WriterWatch(own_pids=set, home=home, table=table)

    async def hangs(_file: str | None) -> NoReturn:
        asked.set()
        await trio.sleep_forever()

    monkeypatch.setattr("agent.gate.binary_versions._asked", hangs)
    looks, heard = trio.open_memory_channel[Look](1_000)
    watch.on_look = looks.send_nowait
    with looks, heard, trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            await nursery.start(watch.serve)
            async with open_program(shell(place(tmp_path, CLI)), environ(home)):
                await asked.wait()
                argv = shell(place(tmp_path, APP))
                async with open_program(argv, environ(home)):
                    while (await heard.receive()).desktop is None:
                        pass
            nursery.cancel_scope.cancel(reason="seen")


async def test_another_program_of_that_name_is_let_be_once_it_has_said_so(
    tmp_path: Path, home: Path, watching: Watching
) -> None:
    watch = watching(home)
    with trio.fail_after(PATIENCE_S):
        path = place(tmp_path, "home/u/bin/codex")
        # psutil tells starts here with an error of up to a second, and what is younger
        # than its file is not trusted to be that file.
        while time.time() - path.stat().st_ctime < 1.1:  # noqa: ASYNC110, TID251
            await trio.sleep(0.05)
        argv = shell(path)
        async with open_program(argv, environ(home)):
            assert len(watch.look().foreign) == 1
            async with trio.open_nursery() as nursery:
                await nursery.start(watch.serve)
                nursery.cancel_scope.cancel(reason="asked")
            assert watch.look() == Look()


async def test_the_owners_own_patterns_are_used(
    tmp_path: Path, home: Path, watching: Watching, table: ProcessTable
) -> None:
    programs = Programs(apps=[ODD])
    watch = WriterWatch(own_pids=set, home=home, programs=programs, table=table)
    with trio.fail_after(PATIENCE_S):
        argv = shell(place(tmp_path, "odd/place/app"))
        async with open_program(argv, environ(home)):
            assert watch.look().desktop is not None
            assert watching(home).look() == Look()


PYTHON = {"PYTHONHOME": sys.base_prefix}  # its copy does not find its library
LOCKER = """
import fcntl, sys
lock = open(sys.argv[1], "a")
fcntl.flock(lock, fcntl.LOCK_EX)
print("ready", flush=True)
sys.stdin.readline()
"""


async def test_who_holds_a_threads_lock_is_told_without_touching_it(
    home: Path, watching: Watching
) -> None:
    folder = home / "thread-writer-locks"
    folder.mkdir()
    for name in ("held", "free"):
        (folder / f"{name}.lock").touch()
    watch = watching(home)
    asked = ["held", "free", "missing", "../../etc/passwd"]
    with trio.fail_after(PATIENCE_S):
        python = place(home, CLI, Path(sys.executable).resolve())
        argv = [str(python), "-c", LOCKER, str(folder / "held.lock")]
        async with open_program(argv, environ(home) | PYTHON) as holder:
            writers = watch.holders(asked)
            assert {name: one.pid for name, one in writers.items()} == {
                "held": holder.pid
            }
            assert watching(home, holder.pid).holders(asked) == {}
        assert watch.holders(asked) == {}
    with (folder / "held.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


async def test_a_look_is_quick_enough_to_stand_before_an_act(
    home: Path, watching: Watching
) -> None:
    watch = watching(home)
    watch.look()
    took: list[float] = []
    for _ in range(10):  # one of them meets nothing else that runs here
        before = trio.current_time()
        watch.look()
        took.append(trio.current_time() - before)
    assert min(took) < in_time(0.1)
