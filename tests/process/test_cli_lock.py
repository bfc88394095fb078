"""`lock` and `unlock` as the owner runs them, with and without an Agent."""

import json
from pathlib import Path

import pytest
import trio

from tests.support.agents import House, client_info, open_agent, pair_device
from tests.support.cli_runs import cli_environ, run_cli
from transport.client import open_client
from transport.errors import SilentAgentError

pytestmark = pytest.mark.usefixtures("warm_runs")

DEADLINE_S = 240


def environ_of(house: House) -> dict[str, str]:
    """An environment in which commands find this Agent's sockets."""
    return {
        **cli_environ(house.config.state_dir),
        "THREADGATE_RUNTIME_DIR": str(house.config.runtime_dir),
    }


async def test_lock_says_what_holds_and_unlock_ends_it(tmp_path: Path) -> None:
    with trio.fail_after(DEADLINE_S):
        async with open_agent(tmp_path) as house:
            environ = environ_of(house)
            device = await pair_device(house)
            locked = await run_cli("lock", environ=environ)
            assert (locked.code, locked.err) == (0, "")
            assert locked.out.startswith("Locked: no device has a session")
            status = await run_cli("status", environ=environ)
            assert status.out.startswith("Read-only: its owner has locked it")
            try:
                async with open_client(house.target(device), client_info()):
                    raise AssertionError("a device was let in")
            except SilentAgentError:
                pass
            unlocked = await run_cli("unlock", "--json", environ=environ)
            assert json.loads(unlocked.out)["running"] is True
            async with open_client(house.target(device), client_info()):
                pass


async def test_without_an_agent_the_next_one_starts_locked(tmp_path: Path) -> None:
    with trio.fail_after(DEADLINE_S):
        state = tmp_path / "state"
        environ = {
            **cli_environ(state),
            "THREADGATE_RUNTIME_DIR": str(tmp_path / "run"),
        }
        ran = await run_cli("lock", environ=environ)
        assert (ran.code, ran.out) == (
            0,
            "No Agent runs here. The next Agent starts locked.\n",
        )
        async with open_agent(tmp_path) as house:
            status = await run_cli("status", environ=environ_of(house))
            assert "locked" in status.out
        ran = await run_cli("unlock", "--json", environ=environ)
        assert json.loads(ran.out) == {"running": False, "locked": False}
        async with open_agent(tmp_path) as house:
            status = await run_cli("status", environ=environ_of(house))
            assert status.out.startswith("Open")


async def test_a_command_without_the_login_session_s_folder_finds_the_agent(
    tmp_path: Path,
) -> None:
    environ = {**cli_environ(tmp_path), "XDG_STATE_HOME": str(tmp_path / "xdg")}
    del environ["THREADGATE_STATE_DIR"]
    state = tmp_path / "xdg" / "threadgate"
    with trio.fail_after(DEADLINE_S):
        async with open_agent(tmp_path, state_dir=state, runtime_dir=state / "run"):
            environ["XDG_RUNTIME_DIR"] = str(tmp_path / "session")
            ran = await run_cli("status", environ=environ)  # of no other Agent
        assert (ran.code, ran.err) == (0, "")
        assert "bench" in ran.out
