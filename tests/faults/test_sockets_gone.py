"""The folder of the Agent's sockets goes while it runs; an Agent that cannot be reached."""

import shutil
import stat
from functools import partial
from pathlib import Path

import pytest
import trio

from agent.lockfile import hold_folder
from clients.cli import locking
from clients.cli.exits import FailedError
from tests.support.agents import (
    client_info,
    make_config,
    open_agent,
    open_owner,
    pair_device,
)
from tests.support.cli_runs import paper, printed
from transport.client import open_client
from transport.protocol import gateway
from transport.protocol.methods import GATEWAY_STATUS

STATUS = gateway.GatewayStatusParams()


async def until_there(*paths: Path) -> None:
    while not all(path.exists() for path in paths):
        await trio.lowlevel.checkpoint()


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person's environment in which the test's own Agent is the one of this machine."""
    monkeypatch.setenv("THREADGATE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("THREADGATE_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("THREADGATE_CONFIG", raising=False)
    return tmp_path


@pytest.mark.parametrize("what", ["folder", "socket", "replaced"])
async def test_sockets_that_are_gone_are_made_anew_and_open_connections_go_on(
    what: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("agent.sessions.unix_doors.SOCKET_LOOK_S", 0.05)
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            device = await pair_device(house)
            target = house.target(device, carrier="unix")
            places = (house.running.admin_path, house.running.agent_path)
            async with open_client(target, client_info()) as phone:
                if what == "folder":
                    shutil.rmtree(house.config.runtime_dir)
                elif what == "socket":
                    for path in places:
                        path.unlink()
                else:  # for a while nothing can be made there
                    shutil.rmtree(house.config.runtime_dir)
                    house.config.runtime_dir.touch()
                    while "cannot be made yet" not in caplog.text:
                        await owner.call(GATEWAY_STATUS, STATUS)
                    house.config.runtime_dir.unlink()
                await until_there(*places)
                await owner.call(GATEWAY_STATUS, STATUS)
                await phone.call(GATEWAY_STATUS, STATUS)
            async with open_client(house.admin, client_info("o2", "2" * 32)) as again:
                await again.call(GATEWAY_STATUS, STATUS)
            async with open_client(target, client_info()) as again:
                await again.call(GATEWAY_STATUS, STATUS)
            assert stat.S_IMODE(house.config.runtime_dir.stat().st_mode) == 0o700
            assert {stat.S_IMODE(one.stat().st_mode) for one in places} == {0o600}
        assert not any(path.exists() for path in places)


async def test_a_lock_waits_for_the_door_of_an_agent_that_is_there(
    at_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.sessions.unix_doors.SOCKET_LOOK_S", 0.05)
    monkeypatch.setattr(locking, "STARTS_OR_CLOSES_S", 200.0)
    with trio.fail_after(240):
        async with open_agent(at_home) as house, trio.open_nursery() as nursery:
            shutil.rmtree(house.config.runtime_dir)
            house.config.runtime_dir.touch()
            screen = paper()
            nursery.start_soon(partial(locking.lock, screen, stop=False))
            await until_there(house.config.state_dir / "locked")
            house.config.runtime_dir.unlink()
        assert printed(screen).startswith("Locked: no device has a session")


async def test_a_lock_waits_for_an_agent_that_closes_and_then_locks(
    at_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locking, "STARTS_OR_CLOSES_S", 200.0)
    state = make_config(at_home).state_dir
    screen = paper()
    with trio.fail_after(240):
        async with trio.open_nursery() as nursery:
            with hold_folder(state):  # as one that has closed its doors
                nursery.start_soon(partial(locking.lock, screen, stop=False))
                await until_there(state / "locked")
        assert "The next Agent starts locked." in printed(screen)
        async with open_agent(at_home) as house, open_owner(house) as owner:
            gate = (await owner.call(GATEWAY_STATUS, STATUS)).gate
            assert gate.reason is gateway.GateReason.LOCKED


async def test_whoever_cannot_reach_the_agent_is_told_which_process_to_end(
    at_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locking, "STARTS_OR_CLOSES_S", 0.1)
    state = make_config(at_home).state_dir
    with trio.fail_after(240):
        with hold_folder(state):
            for act in (partial(locking.lock, stop=False), locking.unlock):
                with pytest.raises(
                    FailedError, match=r"cannot be reached; end it \(`kill \d+`\)"
                ):
                    await act(paper())
                assert (state / "locked").exists(), "its next start is locked"
        screen = paper()
        await locking.unlock(screen)
        assert not (state / "locked").exists()
