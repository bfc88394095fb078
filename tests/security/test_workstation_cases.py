"""Other users of the workstation, and its files. The numbers are those of SECURITY.md's cases."""

import os
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import trio

from agent.pairing.device_records import DevicesFileError
from tests.support.agents import (
    open_agent,
    pair_device,
)
from transport.errors import (
    KeyFileError,
)


async def test_71_a_missing_identity_with_paired_devices_stops_the_agent(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            await pair_device(house)
            identity = house.config.state_dir / "identity.key"
        identity.unlink()
        with pytest.raises(KeyFileError, match="missing"):
            async with open_agent(tmp_path):
                pass
        assert not identity.exists(), "no new one was made"


@pytest.mark.parametrize("name", ["devices.json", "identity.key"])
async def test_71_a_file_that_others_can_read_or_that_is_damaged_stops_the_agent(
    tmp_path: Path, name: str
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            await pair_device(house)
            path = house.config.state_dir / name
        path.chmod(0o644)
        with pytest.raises(KeyFileError, match="chmod 600"):
            async with open_agent(tmp_path):
                pass
        path.chmod(0o600)
        path.write_bytes(path.read_bytes()[:-5])
        with pytest.raises((KeyFileError, DevicesFileError)):
            async with open_agent(tmp_path):
                pass


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
@pytest.mark.parametrize("socket", ["admin_path", "agent_path"])
async def test_75_another_user_is_turned_away_whatever_the_modes_say(
    tmp_path: Path, socket: str
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            path: Path = getattr(house.running, socket)
            for folder in (path.parent, *path.parent.parents):
                if stat.S_IMODE(folder.stat().st_mode) & 0o011 == 0:
                    folder.chmod(0o755)
            path.chmod(0o777)
            script = (
                "import os, socket, sys\n"
                "os.setuid(65534)\n"
                "s = socket.socket(socket.AF_UNIX)\n"
                "s.connect(sys.argv[1])\n"
                "s.settimeout(1)\n"
                "try: print(len(s.recv(10)))\n"
                "except ConnectionResetError: print(0)\n"
            )
            run = partial(
                subprocess.run,
                [sys.executable, "-c", script, str(path)],
                capture_output=True,
                text=True,
                check=False,
            )
            ended = await trio.to_thread.run_sync(run)
            assert ended.stdout == "0\n", ended.stderr
