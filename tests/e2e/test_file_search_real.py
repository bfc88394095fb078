"""Files of a folder, found by words through a real codex, and none outside of it."""

import os
from pathlib import Path

import pytest
import trio

from tests.support.agents import client_info, pair_device
from tests.support.codex import codex_binaries, open_codex_home
from tests.support.door import FakeWatch
from tests.support.real_agent import open_local, open_real_agent
from transport.client import open_client
from transport.errors import Forbidden
from transport.protocol.capabilities import CapabilitiesParams, CapabilityStatus
from transport.protocol.files import FileSearchParams
from transport.protocol.methods import FILE_SEARCH, GATEWAY_CAPABILITIES

pytestmark = pytest.mark.codex
DEADLINE_S = 240
VERSIONS = sorted(codex_binaries())


def furnish(folder: Path) -> None:
    """Files, and every way that leads out of the folder."""
    inside = ("harbour.md", "src/harbour_map.py", "ignored/harbour.log")
    for name in inside:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x")
    outer = folder.parent / "out"
    outer.mkdir()
    (outer / "harbour_secret.txt").write_text("x")
    (folder / "harbour_link.txt").symlink_to(outer / "harbour_secret.txt")
    (folder / "linked").symlink_to(outer)
    (folder / "up").symlink_to("..")
    (folder / "harbour").mkdir()
    os.mkfifo(folder / "harbour.fifo")
    (folder / ".git").mkdir()
    (folder / ".gitignore").write_text("ignored/\n")


@pytest.mark.parametrize("version", VERSIONS)
async def test_files_are_found_and_none_outside_on_a_real_codex(version: str) -> None:
    with trio.fail_after(DEADLINE_S):
        async with (
            open_codex_home() as home,
            open_real_agent(home, version=version, watch=FakeWatch()) as built,
            open_local(built) as owner,
        ):
            furnish(home.workspace)
            rows = (await owner.call(GATEWAY_CAPABILITIES, CapabilitiesParams())).rows
            (row,) = [row for row in rows if row.feature == "file/search"]
            assert row.status is CapabilityStatus.SUPPORTED
            phone = await pair_device(built, only=[home.workspace])
            async with open_client(built.target(phone), client_info()) as client:
                params = FileSearchParams(cwd=str(home.workspace), query="harbour")
                found = await client.call(FILE_SEARCH, params)
                assert {*found.paths} == {"harbour.md", "src/harbour_map.py"}
                assert not found.truncated
                params = FileSearchParams(cwd=str(home.workspace), query="src hbr")
                found = await client.call(FILE_SEARCH, params)
                assert found.paths == ["src/harbour_map.py"]
                with pytest.raises(Forbidden):
                    outside = FileSearchParams(cwd=str(home.home), query="config")
                    await client.call(FILE_SEARCH, outside)
