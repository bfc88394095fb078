"""What docs/USING.md says to type for a VPN's address works; a second loopback address is the VPN."""

import re
import socket
from pathlib import Path
from typing import Final

import pytest
import trio

from clients.cli.demo_stage import open_stage
from clients.cli.exits import ExitCode
from clients.cli.service_files import Service, unit_text
from tests.support.cli_runs import paper

ROOT: Final = Path(__file__).parents[2]
TAILNET: Final = re.compile(r"^desk  \$ threadgate (serve --tcp 100\S+)", re.MULTILINE)
VPN: Final = "127.0.0.2"
NOT_HERE: Final = "192.0.2.1"  # an address for documentation: no machine has it
LIMIT_S: Final = 240

pytestmark = pytest.mark.codex


def free_port() -> int:
    with socket.create_server((VPN, 0)) as probe:
        return int(probe.getsockname()[1])


async def test_an_agent_at_a_vpn_s_address_is_reached_there_and_nowhere_else() -> None:
    port = free_port()
    (told,) = TAILNET.findall((ROOT / "docs" / "USING.md").read_text())
    serve = re.sub(r"100\.[\d.]+:7130", f"{VPN}:{port}", told).split()
    with trio.fail_after(LIMIT_S):
        async with open_stage(paper(), []) as stage, stage.desk.start(*serve) as agent:
            ready = await agent.wait_line("^ready.*")
            assert f"tcp://{VPN}:{port}" in ready[0]
            async with stage.desk.start("pair", "--yes") as offering:
                text = (await offering.wait_line("^TGATE:.*"))[0]
                await stage.phone.run("connect", stdin=text.encode())
                await offering.end()
            hosts = await stage.phone.run("hosts", "list")
            assert f"tcp://{VPN}:{port}" in hosts
            assert "Open" in await stage.phone.run("status")
            with pytest.raises(OSError, match=r"refused|failed"):
                await trio.open_tcp_stream("127.0.0.1", port)


async def test_an_address_that_is_not_there_yet_ends_the_agent_for_systemd_to_retry() -> (
    None
):
    with trio.fail_after(LIMIT_S):
        async with open_stage(paper(), []) as stage:
            said = await stage.desk.run(
                "serve", "--tcp", f"{NOT_HERE}:7130", expect=ExitCode.FAILED
            )
    assert said.startswith("threadgate: the Agent cannot start: ")
    assert said.count("\n") == 1
    assert "RestartSec" in unit_text(Service(argv=["/x/threadgate", "serve"]))
