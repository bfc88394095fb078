"""Real TCP on loopback."""

import socket

import pytest
import trio

from transport.carriers import tcp
from transport.errors import UnreachableError


def no_delay(stream: trio.SocketStream) -> bool:
    return bool(stream.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_bytes_go_both_ways_without_delay(host: str) -> None:
    with trio.fail_after(240):
        try:
            (listener,) = await tcp.listen(host, 0)
        except OSError:
            pytest.skip(f"this machine has no {host}")
        async with listener:
            url = tcp.address(listener)
            assert url.startswith("tcp://[::1]:" if ":" in host else "tcp://127.0.0.1:")
            client = await tcp.connect(host, int(url.rpartition(":")[2]))
            agent = await listener.accept()
            assert tcp.peer_host(agent) == host
            assert no_delay(client)
            assert no_delay(agent)
            await client.send_all(b"there")
            assert await agent.receive_some() == b"there"
            await client.aclose()
            await agent.aclose()


async def test_it_listens_where_it_was_told_and_nowhere_else() -> None:
    with trio.fail_after(240):
        (listener,) = await tcp.listen("127.0.0.1", 0)
        async with listener:
            assert listener.socket.getsockname()[0] == "127.0.0.1"


async def test_an_address_that_is_taken_is_said() -> None:
    with trio.fail_after(240):
        (listener,) = await tcp.listen("127.0.0.1", 0)
        async with listener:
            port = listener.socket.getsockname()[1]
            with pytest.raises(OSError, match=f"127.0.0.1:{port}: Address already"):
                await tcp.listen("127.0.0.1", port)


async def test_nobody_answering_is_said_with_the_address() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with (
            trio.fail_after(240),
            pytest.raises(UnreachableError, match=f"127.0.0.1:{port}"),
        ):
            await tcp.connect("127.0.0.1", port)


@pytest.mark.parametrize("host", ["a..b", "x" * 70])
async def test_a_name_that_no_host_can_have_is_one_that_nobody_answers_at(
    host: str,
) -> None:
    with pytest.raises(UnreachableError, match="nobody answers"):
        await tcp.connect(host, 1)
