"""The client over real carriers: TCP, agent.sock, admin.sock; pairing over TCP."""

import socket
from pathlib import Path

import pytest
import trio

from tests.support.network_agent import NetworkAgent, on_admin, on_tcp, on_unix
from transport.client import AdminTarget, Resumed, Target, open_client, pair
from transport.errors import (
    CloseCode,
    Forbidden,
    PairingTextError,
    PeerClosedError,
    SilentAgentError,
    UnreachableError,
)
from transport.identities import PrivateKey, Secret
from transport.pairing import PairingText
from transport.protocol.gateway import GatewayStatusParams
from transport.protocol.methods import GATEWAY_STATUS
from transport.protocol.session import ClientInfo

INFO = ClientInfo(name="test", version="1.0", platform="linux", instance="f" * 32)
PSK = Secret(bytes(range(32)))


def paired_agent() -> tuple[NetworkAgent, PrivateKey]:
    device = PrivateKey.generate()
    return NetworkAgent(psks={device.public: PSK.reveal()}), device


def target(agent: NetworkAgent, device: PrivateKey, url: str) -> Target:
    return Target(url=url, agent_key=agent.identity.public, identity=device, psk=PSK)


async def use(door: Target | AdminTarget) -> None:
    """Open, call, subscribe."""
    async with open_client(door, INFO) as client:
        assert client.opened.agent.name == "workstation"
        status = await client.call(GATEWAY_STATUS, GatewayStatusParams())
        assert status.sessions == 1
        async with client.subscribe("all") as events:
            assert isinstance(await anext(events), Resumed)


async def test_a_paired_device_works_over_tcp() -> None:
    agent, device = paired_agent()
    with trio.fail_after(240):
        async with on_tcp(agent) as url:
            await use(target(agent, device, url))


async def test_a_paired_device_works_over_agent_sock(tmp_path: Path) -> None:
    agent, device = paired_agent()
    with trio.fail_after(240):
        async with on_unix(agent, tmp_path / "run" / "agent.sock") as url:
            await use(target(agent, device, url))


async def test_the_owner_works_over_admin_sock_without_keys(tmp_path: Path) -> None:
    agent = NetworkAgent()
    with trio.fail_after(240):
        async with on_admin(agent, tmp_path / "run" / "admin.sock") as path:
            await use(AdminTarget(path=path))


async def test_a_client_comes_back_over_tcp_and_asks_again() -> None:
    agent, device = paired_agent()
    with trio.fail_after(240):
        async with (
            on_tcp(agent) as url,
            open_client(target(agent, device, url), INFO) as client,
        ):
            await agent.channels[0].aclose(CloseCode.RENEW)
            await client.call(GATEWAY_STATUS, GatewayStatusParams())
    assert len(agent.channels) == 2


async def test_a_revoked_client_learns_it_over_tcp() -> None:
    agent, device = paired_agent()
    with trio.fail_after(240):
        async with (
            on_tcp(agent) as url,
            open_client(target(agent, device, url), INFO) as client,
        ):
            await agent.channels[0].aclose(CloseCode.REVOKED)
            with pytest.raises(PeerClosedError) as caught:
                await client.call(GATEWAY_STATUS, GatewayStatusParams())
    assert caught.value.code is CloseCode.REVOKED


async def test_a_stranger_is_told_that_the_agent_hangs_up() -> None:
    agent, _ = paired_agent()
    with trio.fail_after(240):
        async with on_tcp(agent) as url:
            with pytest.raises(SilentAgentError, match="does not answer this device"):
                await use(target(agent, PrivateKey.generate(), url))
    assert agent.refused == 1


@pytest.mark.parametrize(
    "url",
    [
        "wss://host/c",
        "tcp://host",
        "tcp://host:x",
        "tcp://[::1",
        "ssh://[::1",
        "unix://host/path",
        "x",
    ],
)
async def test_an_address_that_cannot_be_dialled_is_said(url: str) -> None:
    agent, device = paired_agent()
    with trio.fail_after(240), pytest.raises(UnreachableError, match="cannot dial"):
        await use(target(agent, device, url))


# Pairing


def text(agent: NetworkAgent, secret: Secret, *urls: str) -> PairingText:
    return PairingText(agent_key=agent.identity.public, secret=secret, urls=urls)


async def test_a_device_pairs_and_then_connects_with_what_it_got() -> None:
    secret, device = Secret(bytes(32)), PrivateKey.generate()
    agent = NetworkAgent(offer=secret)
    shown: list[str] = []
    with trio.fail_after(240):
        async with on_tcp(agent) as url:
            paired = await pair(
                text(agent, secret, url),
                identity=device,
                name="phone",
                client=INFO,
                on_check=shown.append,
            )
            door = Target(
                url=paired.url,
                agent_key=agent.identity.public,
                identity=device,
                psk=paired.psk,
            )
            await use(door)
    assert shown == agent.checks
    assert agent.names == [b"phone"]
    assert (paired.device.name, paired.agent.name) == ("phone", "workstation")


async def attempt(agent: NetworkAgent, pairing: PairingText) -> None:
    await pair(
        pairing,
        identity=PrivateKey.generate(),
        name="phone",
        client=INFO,
        on_check=lambda _: None,
    )


async def test_a_no_at_the_workstation_is_forbidden() -> None:
    secret = Secret(bytes(32))
    agent = NetworkAgent(offer=secret, say_yes=False)
    with trio.fail_after(240):
        async with on_tcp(agent) as url:
            with pytest.raises(Forbidden, match="no"):
                await attempt(agent, text(agent, secret, url))
    assert not agent.psks


async def test_an_offer_that_has_ended_or_a_wrong_secret_is_silence() -> None:
    """Cases 61 to 63, as far as the device sees them."""
    agent = NetworkAgent(offer=Secret(bytes(32)))
    with trio.fail_after(240):
        async with on_tcp(agent) as url:
            wrong = text(agent, Secret(b"\1" * 32), url)
            with pytest.raises(SilentAgentError, match="does not take this"):
                await attempt(agent, wrong)
            agent.offer = None
            with pytest.raises(SilentAgentError):
                await attempt(agent, text(agent, Secret(bytes(32)), url))
    assert agent.refused == 2
    assert not agent.names


async def test_the_next_address_is_tried_where_somebody_else_listens_at_one() -> None:
    secret = Secret(bytes(32))
    agent, other = NetworkAgent(offer=secret), NetworkAgent(offer=Secret(b"\1" * 32))
    with trio.fail_after(240):
        async with on_tcp(agent) as url, on_tcp(other) as elsewhere:
            await attempt(agent, text(agent, secret, elsewhere, url))
            agent.offer = None
            with pytest.raises(SilentAgentError, match=elsewhere):
                await attempt(agent, text(agent, secret, elsewhere, url))
    assert len(agent.psks) == 1


async def test_the_next_address_is_tried_where_one_does_not_answer() -> None:
    secret = Secret(bytes(32))
    agent = NetworkAgent(offer=secret)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        dead = f"tcp://127.0.0.1:{unused.getsockname()[1]}"
        with trio.fail_after(240):
            async with on_tcp(agent) as url:
                await attempt(agent, text(agent, secret, dead, "wss://new/c", url))
            with pytest.raises(UnreachableError):
                await attempt(agent, text(agent, secret, dead))
    assert len(agent.psks) == 1


@pytest.mark.parametrize("name", ["", "x" * 101, "ü" * 51, "x" * 10_000])
async def test_a_name_that_is_too_long_does_not_leave_the_device(name: str) -> None:
    """Case 66, on the device."""
    agent = NetworkAgent()
    with pytest.raises(PairingTextError, match="100 bytes"):
        await pair(
            text(agent, Secret(bytes(32)), "tcp://127.0.0.1:1"),
            identity=PrivateKey.generate(),
            name=name,
            client=INFO,
            on_check=lambda _: None,
        )
