"""The watch over written-down process tables of Macs, through macOS's own module."""

import os
from pathlib import Path

import psutil
import pytest

from adapter.processes import process_table_darwin
from agent.gate import proctable_darwin
from agent.gate.engines import Role
from agent.gate.writers import WriterWatch
from tests.support import recorded_macs as macs
from tests.support.recorded_macs import DENIED, NPM, USER, Mac, Recorded
from transport.protocol.gateway import WriterKind

HOME = Path(f"{USER}/.codex")
Found = set[tuple[int, Role, WriterKind]]


@pytest.fixture(autouse=True)
def _nobody_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proctable_darwin, "KNOWN", {})


def watch(
    monkeypatch: pytest.MonkeyPatch, *table: Mac, home: Path = HOME, own: int = 0
) -> WriterWatch:
    monkeypatch.setattr(proctable_darwin, "psutil", Recorded(*table))
    return WriterWatch(own_pids=lambda: {own}, home=home, table=proctable_darwin)


def found(watching: WriterWatch) -> Found:
    return {
        (one.pid, one.named.role, one.named.kind) for one in watching.look().foreign
    }


APP = (Role.APP, WriterKind.DESKTOP)
ENGINE = (Role.ENGINE, WriterKind.DESKTOP)
IDE = (Role.ENGINE, WriterKind.IDE)
CLI = (Role.ENGINE, WriterKind.CLI)
CASES: dict[str, tuple[tuple[Mac, ...], Found]] = {
    "the desktop": (macs.DESKTOP, {(100, *APP), (104, *ENGINE)}),
    "its updaters and helpers": (macs.UPDATERS, set()),
    "run from a random place": (macs.TRANSLOCATED, {(120, *APP)}),
    "moved away by an update": (macs.MOVED_AWAY, {(121, *ENGINE)}),
    "deleted by an update": (macs.DELETED, {(122, *APP), (123, *ENGINE)}),
    "a beta": (macs.BETA, {(124, *APP)}),
    "VS Code's extension": (macs.CODE_EXTENSION, {(202, *IDE)}),
    "VS Code with a codex of npm": (macs.CODE_OWN_NPM, {(203, *IDE)}),
    "Cursor": (macs.CURSOR, {(212, *IDE), (213, *IDE)}),
    "JetBrains": (macs.JETBRAINS, {(221, *IDE)}),
    "a cask of Homebrew": (macs.HOMEBREW, {(302, *CLI)}),
    "a formula of Homebrew": (macs.CELLAR, {(303, *CLI)}),
    "npm": (macs.NODE, {(305, *CLI)}),
    "PyPI": (macs.PYPI, {(306, *CLI)}),
    "a background server": (
        macs.STANDALONE,
        {(307, Role.ENGINE, WriterKind.DAEMON)},
    ),
    "commands that write nothing": (macs.COMMANDS, set()),
}


@pytest.mark.parametrize(("table", "expected"), CASES.values(), ids=CASES)
def test_a_mac_s_programs_are_told_apart(
    table: tuple[Mac, ...], expected: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found(watch(monkeypatch, *table)) == expected


def test_a_whole_mac_at_once_names_every_writer_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    everything = {mac.pid: mac for table, _ in CASES.values() for mac in table}
    expected = set[tuple[int, Role, WriterKind]]().union(
        *(writers for _, writers in CASES.values())
    )
    assert found(watch(monkeypatch, *everything.values())) == expected


def test_another_users_codex_and_one_on_another_home_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others = Mac(pid=50, exe=NPM, argv=DENIED, environ=False, ours=False)
    elsewhere = Mac(pid=51, exe=NPM, home="/Users/u/other")
    assert found(watch(monkeypatch, others, elsewhere)) == set()


def test_where_environment_or_arguments_are_hidden_it_counts_as_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hardened = Mac(pid=52, exe=NPM, environ=False)
    silent = Mac(pid=53, exe=NPM, argv=DENIED)
    nameless = Mac(pid=54, exe=DENIED, program=NPM)
    expected = {(pid, *CLI) for pid in (52, 53, 54)}
    assert found(watch(monkeypatch, hardened, silent, nameless)) == expected


def test_a_home_under_another_name_is_the_same_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where case does not count: `samefile` is asked, not the spelling."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setattr("os.path.realpath", os.path.abspath)
    (tmp_path / "HOME").symlink_to(home)
    table = Mac(pid=55, exe=NPM, home=str(tmp_path / "HOME"))
    assert found(watch(monkeypatch, table, home=home)) == {(55, *CLI)}


def test_ours_and_the_dead_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = Mac(pid=60, exe=NPM, argv=("app-server", "--stdio"))
    child = Mac(pid=61, parent=60, exe=NPM, argv=("exec", "x"))
    dead = Mac(pid=62, exe=NPM, status=psutil.STATUS_ZOMBIE)
    assert found(watch(monkeypatch, ours, child, dead, own=60)) == set()


def test_a_glance_sees_new_pids_and_a_pid_that_is_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agent.gate.writers.YOUNG_S", 0.0)  # the old are not looked at
    recorded = Recorded(*macs.DESKTOP)
    monkeypatch.setattr(proctable_darwin, "psutil", recorded)
    watching = WriterWatch(own_pids=set, home=HOME, table=proctable_darwin)
    assert watching.look().desktop is not None
    successor = Mac(pid=100, exe="/bin/ls", started=1_796_000_900.0)
    recorded.become(successor)
    assert watching.glance().desktop is None
    monkeypatch.setattr("agent.gate.writers.YOUNG_S", 5.0)
    recorded.become(successor, *macs.HOMEBREW)
    assert {one.pid for one in watching.glance().foreign} == {302}


def test_who_of_codex_has_a_lock_file_open_holds_the_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "codex-home"
    (home / "thread-writer-locks").mkdir(parents=True)
    held = home / "thread-writer-locks" / "held.lock"
    free = home / "thread-writer-locks" / "free.lock"
    held.touch()
    free.touch()
    codex = Mac(pid=70, exe=NPM, files=("/dev/null", str(held), "/gone/x.lock"))
    indexer = Mac(pid=71, exe="/usr/libexec/mdworker", files=(str(free),))
    others = Mac(pid=72, exe=NPM, files=(str(free),), ours=False)
    watching = watch(monkeypatch, codex, indexer, others, home=home)
    writers = watching.holders(["held", "free", "missing", "../held"])
    assert {name: one.pid for name, one in writers.items()} == {"held": 70}
    assert writers["held"].kind is WriterKind.CLI
    assert watching.lock_holders() == {70: 1}


def test_a_program_updated_in_its_place_is_not_asked_for_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "codex"
    file.touch()
    changed = file.stat().st_ctime
    before = Mac(pid=80, exe=str(file), started=changed - 1)
    after = Mac(pid=81, exe=str(file), started=changed + 1)
    monkeypatch.setattr(proctable_darwin, "psutil", Recorded(before, after))
    assert proctable_darwin.running_file(80) is None
    assert proctable_darwin.running_file(81) == str(file)


def test_a_record_names_a_process_by_its_start_to_the_microsecond(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []
    for started in (1_796_000_100.000_001, 1_796_000_100.000_002):
        recorded = Recorded(Mac(pid=os.getpid(), exe=NPM, started=started))
        monkeypatch.setattr(process_table_darwin, "psutil", recorded)
        identity = process_table_darwin.identify(os.getpid())
        assert identity is not None
        seen.append(identity.started)
    assert seen == ["/1796000100000001", "/1796000100000002"]


@pytest.mark.parametrize(("denials", "known"), [(0, True), (2, True), (3, False)])
def test_a_process_that_just_starts_is_asked_again_for_its_arguments(
    denials: int, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = Recorded(Mac(pid=90, exe=NPM, argv=("app-server", "--stdio")))
    recorded.denials = denials
    monkeypatch.setattr(process_table_darwin, "psutil", recorded)
    identity = process_table_darwin.identify(90)
    argv = (NPM, "app-server", "--stdio") if known else None
    assert (identity and identity.argv) == argv


@pytest.mark.parametrize(
    ("age_s", "least", "most"), [(-3_600, 5.0, 5.0), (2, 2.5, 3.0), (60, 0.0, 0.0)]
)
def test_a_desktop_goes_first_for_seconds_even_where_the_clock_was_set_back(
    age_s: float, least: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = proctable_darwin.uptime_s() - age_s
    desktop = Mac(pid=91, exe=f"{macs.APP}/MacOS/Codex", started=started)
    assert least <= watch(monkeypatch, desktop).settling_s() <= most
