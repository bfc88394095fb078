"""Doctor on folders, keys, ports and clocks that are as they should be, or not."""

import errno
import os
import socket
from pathlib import Path
from typing import NoReturn

import pytest
import trio

from agent.config import Config
from agent.doctor.doctor import examine, system_finding
from agent.doctor.doctor_files import (
    look_at_clock,
    look_at_codex_home,
    look_at_disk,
    look_at_state,
)
from agent.doctor.findings import Finding, Level, redacted
from agent.gate.at_rest import mark_locked
from agent.gate.proctable import HERE
from agent.lockfile import hold_folder
from tests.support.agents import make_config, open_agent

ENVIRON = {"PATH": "/nonexistent", "THREADGATE_CODEX": "/nonexistent/codex"}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    made = make_config(tmp_path, listen=[])
    made.state_dir.mkdir(mode=0o700)
    made.codex_home.mkdir(mode=0o700)
    return made


async def named(config: Config, name: str) -> Finding:
    with trio.fail_after(240):
        (found,) = [one for one in await examine(config, ENVIRON) if one.name == name]
    return found


@pytest.mark.parametrize("name", ["identity.key", "devices.json", "audit.jsonl"])
def test_a_secret_that_others_can_read_fails_with_the_command_to_mend_it(
    config: Config, name: str
) -> None:
    assert look_at_state(config).level is Level.OK
    (config.state_dir / name).touch(mode=0o600)
    assert look_at_state(config).level is Level.OK
    (config.state_dir / name).chmod(0o640)
    found = look_at_state(config)
    assert found.level is Level.FAIL
    assert f"chmod go= {config.state_dir / name}" in found.advice


def test_a_state_folder_that_others_may_enter_fails(config: Config) -> None:
    config.state_dir.chmod(0o755)
    assert look_at_state(config).level is Level.FAIL


@pytest.mark.parametrize(
    ("mode", "level"),
    [(0o700, Level.OK), (0o755, Level.WARN), (0o775, Level.FAIL), (0o777, Level.FAIL)],
)
def test_the_modes_of_codex_home_are_judged(
    config: Config, mode: int, level: Level
) -> None:
    config.codex_home.chmod(mode)
    assert look_at_codex_home(config.codex_home).level is level


def test_a_codex_home_that_is_not_there_fails(tmp_path: Path) -> None:
    assert look_at_codex_home(tmp_path / "none").level is Level.FAIL


def test_a_disk_without_room_fails_also_where_no_folder_is_made_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "not" / "there"
    assert look_at_disk(folder).level is Level.OK
    monkeypatch.setattr("agent.doctor.doctor_files.RESERVE_BYTES", 2**62)
    assert look_at_disk(folder).level is Level.FAIL, "none can be laid in"
    folder.mkdir(parents=True)
    (folder / "reserve").touch()
    assert look_at_disk(folder).level is Level.WARN
    monkeypatch.setattr("agent.doctor.doctor_files.BEGIN_BYTES", 2**62)
    found = look_at_disk(folder)
    assert found.level is Level.FAIL
    assert str(tmp_path) in found.advice


def test_a_clock_that_went_back_is_noticed(config: Config) -> None:
    audit = config.state_dir / "audit.jsonl"
    audit.touch(mode=0o600)
    os.utime(audit, (2_000, 2_000))
    seen = [
        look_at_clock(config, now_ms=now_ms, oldest_ms=1_000_000).level
        for now_ms in (2_000_000, 1_900_000, 900_000)
    ]
    assert seen == [Level.OK, Level.WARN, Level.FAIL]


async def test_a_port_that_somebody_has_fails_and_a_free_one_is_good(
    config: Config,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        listening = config.model_copy(update={"listen": [address]})
        assert (await named(listening, "port")).level is Level.FAIL
    assert (await named(listening, "port")).level is Level.OK


async def test_a_codex_that_is_not_there_fails_and_the_rest_is_looked_at(
    config: Config,
) -> None:
    found = await examine(config, ENVIRON)
    levels = {one.name: one.level for one in found}
    assert levels["codex"] is Level.FAIL
    assert {"desktop", "writers", "locks", "keys", "clock"} <= set(levels)


async def test_where_no_process_can_be_seen_it_says_so_and_calls_nothing_good(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> NoReturn:
        raise PermissionError(errno.EACCES, "no /proc here")

    for call in ("pids", "lock_owners"):
        monkeypatch.setattr(HERE, call, fail)
    found = {one.name: one for one in await examine(config, ENVIRON)}
    for name in ("desktop", "writers", "locks"):
        assert found[name].level is Level.FAIL
        assert "cannot be seen" in found[name].text


def test_on_a_mac_it_says_what_no_mac_has_tried_and_elsewhere_that_it_cannot() -> None:
    found = {name: system_finding(name) for name in ("Linux", "Darwin", "Windows")}
    assert [one.level for one in found.values()] == [Level.OK, Level.WARN, Level.FAIL]
    told = found["Darwin"].text
    assert all(part in told for part in ("never run on a Mac", "watch", "leftover"))


async def test_it_changes_nothing(config: Config) -> None:
    await examine(config, ENVIRON)
    assert list(config.state_dir.iterdir()) == []
    assert not config.runtime_dir.exists()


async def test_an_agent_that_runs_is_seen_and_left_alone(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            (house.config.codex_home).mkdir(mode=0o700)
            port = int(house.running.tcp[0].rpartition(":")[2])
            config = house.config.model_copy(update={"listen": [f"127.0.0.1:{port}"]})
            assert "one runs" in (await named(config, "agent")).text
            found = await named(config, "port")
            assert (found.level, "by the Agent" in found.text) == (Level.OK, True)


async def test_a_lock_is_named_with_the_command_that_ends_it(config: Config) -> None:
    names = [one.name for one in await examine(config, ENVIRON)]
    assert "lock" not in names
    mark_locked(config.state_dir)
    found = await named(config, "lock")
    assert (found.level, "threadgate unlock" in found.advice) == (Level.WARN, True)


async def test_an_agent_that_cannot_be_reached_is_told_from_none(
    config: Config,
) -> None:
    assert (await named(config, "agent")).text.startswith("none runs")
    with hold_folder(config.state_dir):
        found = await named(config, "agent")
    assert found.level is Level.FAIL
    assert f"process {os.getpid()}, since" in found.text
    (told,) = redacted([found], private=())
    assert str(os.getpid()) not in told.text + told.advice
    assert (await named(config, "agent")).level is Level.OK
