"""Where a pairing text sends devices."""

import platform
from pathlib import Path

from agent.reach import reachable

SOCKET = Path("/run/user/1000/threadgate/agent.sock")


def test_addresses_that_can_be_dialled_stay() -> None:
    assert reachable(["tcp://192.0.2.7:4100"], SOCKET) == ("tcp://192.0.2.7:4100",)


def test_every_interface_becomes_the_machines_name_once() -> None:
    urls = ["tcp://0.0.0.0:4100", "tcp://[::]:4100"]
    assert reachable(urls, SOCKET) == (f"tcp://{platform.node()}:4100",)


def test_without_a_network_the_socket_is_told() -> None:
    assert reachable([], SOCKET) == (f"unix://{SOCKET}",)
