"""`threadgate service` with service managers that only note what they are told."""

import errno
import json
import shlex
import sys
from pathlib import Path

import pytest

from clients.cli import service
from clients.cli.exits import ExitCode, FailedError, UsageProblemError
from clients.cli.service_files import is_ours
from tests.support.cli_runs import paper, printed

TCP = "127.0.0.1:7130"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home, and a PATH that has nothing but what a test puts there."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "THREADGATE_CODEX", *service.PASSED):
        monkeypatch.delenv(name, raising=False)
    program(tmp_path, "threadgate", "exit 0")
    program(tmp_path, "codex", "exit 0")
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "bin" / "threadgate")])
    return tmp_path


def program(place: Path, name: str, body: str) -> None:
    file = place / "bin" / name
    file.write_text(f'#!/bin/sh\necho "$*" >> {place}/{name}.said\n{body}\n')
    file.chmod(0o755)


def said(place: Path, name: str = "systemctl") -> list[str]:
    """Return what it was told since the last look, the probe left out."""
    file = place / f"{name}.said"
    lines = file.read_text().splitlines() if file.exists() else []
    file.unlink(missing_ok=True)
    probes = ("--user show-environment", "print gui/")
    return [line for line in lines if not line.startswith(probes)]


def unit_of(place: Path) -> Path:
    return place / ".config" / "systemd" / "user" / "threadgate.service"


async def install(place: Path, *, yes: bool = False, platform: str = "linux") -> str:
    screen = paper()
    manager = service.manager_here(platform)
    code = await service.install(
        screen, tcp=[TCP], codex=None, yes=yes, manager=manager
    )
    assert code == ExitCode.OK
    return printed(screen)


STARTED = [
    "--user daemon-reload",
    "--user enable threadgate.service",
    "--user restart threadgate.service",
]


async def test_a_unit_is_shown_written_and_started_and_again_the_same(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(place, "systemctl", "exit 0")
    monkeypatch.setenv("CODEX_HOME", "/somewhere")
    told = await install(place)
    text = unit_of(place).read_text()
    assert (
        f'ExecStart="{place}/bin/threadgate" "serve" "--tcp" "{TCP}" '
        f'"--codex" "{place}/bin/codex"\n' in text
    )
    assert 'Environment="CODEX_HOME=/somewhere"\n' in text
    assert text in told
    assert "journalctl --user -u threadgate" in told
    assert said(place) == STARTED
    await install(place)
    assert unit_of(place).read_text() == text
    assert said(place) == STARTED
    assert [one.name for one in unit_of(place).parent.iterdir()] == [
        unit_of(place).name
    ]


async def test_without_a_manager_it_says_what_to_type(place: Path) -> None:
    told = await install(place)
    assert is_ours(unit_of(place).read_text())
    for line in STARTED:
        assert f"systemctl {line}" in told
    program(place, "systemctl", "exit 1")  # there, but nobody answers it
    assert "systemctl --user daemon-reload" in await install(place)
    screen = paper()
    linux = service.manager_here("linux")
    assert not await service.uninstall(screen, manager=linux)
    assert "disable --now" in printed(screen)
    assert not unit_of(place).exists()
    assert said(place) == []


async def test_what_it_says_to_type_can_be_typed_where_a_home_has_a_space(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(place / "my home"))
    told = await install(place, platform="darwin")
    (typed,) = [line for line in told.splitlines() if "bootstrap" in line]
    assert Path(shlex.split(typed)[-1]).exists()


async def test_a_unit_that_cannot_be_put_in_place_leaves_nothing_beside_it(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_self: Path, _target: Path) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(FailedError, match="No space left"):
        await install(place)
    assert list(unit_of(place).parent.iterdir()) == []


async def test_what_somebody_else_wrote_is_neither_replaced_nor_removed(
    place: Path,
) -> None:
    program(place, "systemctl", "exit 0")
    unit_of(place).parent.mkdir(parents=True)
    unit_of(place).write_text("[Service]\nExecStart=/mine\n")
    with pytest.raises(UsageProblemError, match="not ours"):
        await install(place)
    with pytest.raises(FailedError, match="not ours"):
        await service.uninstall(paper(), manager=service.manager_here("linux"))
    assert unit_of(place).read_text() == "[Service]\nExecStart=/mine\n"
    assert said(place) == []
    await install(place, yes=True)
    assert is_ours(unit_of(place).read_text())


async def test_uninstalling_stops_it_and_leaves_nothing(place: Path) -> None:
    program(place, "systemctl", "exit 0")
    await install(place)
    said(place)
    linux = service.manager_here("linux")
    await service.uninstall(paper(), manager=linux)
    assert said(place) == [
        "--user disable --now threadgate.service",
        "--user daemon-reload",
    ]
    assert list(unit_of(place).parent.iterdir()) == []
    screen = paper()
    await service.uninstall(screen, manager=linux)  # again: nothing to do
    assert printed(screen) == "No service is installed.\n"
    assert said(place) == []


async def test_what_the_manager_refuses_is_told_in_its_words(place: Path) -> None:
    program(place, "systemctl", '[ "$2" != enable ] || { echo no bus >&2; exit 1; }')
    with pytest.raises(FailedError, match=r"enable threadgate\.service failed: no bus"):
        await install(place)


@pytest.mark.parametrize(("active", "running"), [("exit 0", True), ("exit 3", False)])
async def test_status_says_what_the_manager_says(
    place: Path, active: str, *, running: bool
) -> None:
    linux = service.manager_here("linux")

    async def told() -> dict[str, object]:
        screen = paper(as_json=True)
        assert not await service.status(screen, manager=linux)
        answer: dict[str, object] = json.loads(printed(screen))
        return answer

    unknown = await told()
    assert (unknown["installed"], unknown["running"]) == (False, None)
    program(place, "systemctl", f'[ "$2" != is-active ] || {active}')
    await install(place)
    assert await told() == {
        "installed": True,
        "ours": True,
        "enabled": True,
        "running": running,
        "file": str(unit_of(place)),
        "log": "journalctl --user -u threadgate",
    }


async def test_an_address_or_a_codex_that_cannot_be_is_refused(place: Path) -> None:
    linux = service.manager_here("linux")
    for tcp, codex in ((["7130"], None), ([TCP], "/nowhere/codex")):
        with pytest.raises(UsageProblemError):
            await service.install(
                paper(), tcp=tcp, codex=codex, yes=False, manager=linux
            )
    assert not unit_of(place).exists()
    with pytest.raises(FailedError, match="Linux"):
        service.manager_here("win32")


async def test_a_launchd_agent_takes_the_place_of_the_one_that_runs(
    place: Path,
) -> None:
    program(place, "launchctl", "echo 'state = running'")
    await install(place, platform="darwin")
    file = place / "Library" / "LaunchAgents" / "threadgate.plist"
    assert is_ours(file.read_text())
    booted = said(place, "launchctl")
    assert [line.split()[0] for line in booted] == ["bootout", "bootstrap"]
    mac = service.manager_here("darwin")
    screen = paper(as_json=True)
    await service.status(screen, manager=mac)
    assert json.loads(printed(screen))["running"] is True
    await service.uninstall(paper(), manager=mac)
    assert [line.split()[0] for line in said(place, "launchctl")] == ["bootout"]
    assert not file.exists()
