"""Those that knock, flood or stop reading: they get nothing, and nobody waits for them.

The numbers are those of
SECURITY.md's cases. A whole Agent on real sockets; its runtime is played by the test, so
that it can be shown that nothing reached it.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import trio

from agent.events.journal import Journal
from tests.support.act_params import turn_params
from tests.support.agents import (
    House,
    client_info,
    open_agent,
    open_owner,
    pair_device,
)
from tests.support.channels import say_half
from tests.support.peak_memory import measured
from tests.support.raw_devices import (
    WIDE_DOORS,
    end_of,
    open_peer,
    raw_devices,
    raw_tcp,
)
from transport.client import DeltaSeen, Resumed, open_client
from transport.connection import DeviceConnection, Mode
from transport.errors import HandshakeError, TruncatedError
from transport.identities import PrivateKey
from transport.protocol import admin, gateway
from transport.protocol.items import AgentMessage, ItemStatus
from transport.protocol.methods import (
    DEVICE_LIST,
    GATEWAY_STATUS,
    TURN_START,
)


async def test_9_a_replayed_message_1_changes_nothing_and_frees_its_slot(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            device = await pair_device(house)
            async with open_client(house.target(device), client_info()) as client:
                await client.call(GATEWAY_STATUS, gateway.GatewayStatusParams())
                rows = await owner.call(DEVICE_LIST, admin.DeviceListParams())
                before = rows.devices[0]
                recorded = DeviceConnection(
                    mode=Mode.SESSION,
                    agent_key=house.running.agent_key,
                    identity=device.identity,
                    ephemeral=PrivateKey.generate(),
                    psk=device.paired.psk.reveal(),
                    padded=True,
                ).first_bytes
                stream = await raw_tcp(house)
                await stream.send_all(recorded)
                began = trio.current_time()
                assert await stream.receive_some(1_000), "the Agent cannot know yet"
                status = await client.call(
                    GATEWAY_STATUS, gateway.GatewayStatusParams()
                )
                assert status.sessions == 2, "the client's and the owner's"
                rows = await owner.call(DEVICE_LIST, admin.DeviceListParams())
                assert rows.devices[0] == before
                assert await end_of(stream) == b""
                assert trio.current_time() - began > 4
                await client.call(GATEWAY_STATUS, gateway.GatewayStatusParams())


async def test_13_a_connection_that_says_nothing_is_closed_after_two_seconds(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            stream = await raw_tcp(house)
            began = trio.current_time()
            assert await end_of(stream) == b""
            assert trio.current_time() - began > 1.5


async def test_15_a_flood_from_one_source_holds_eight_slots_and_hurts_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Those that are let in have two seconds: here the test has all the time it needs.
    monkeypatch.setattr("transport.channel.FIRST_UNIT_S", 300.0)
    monkeypatch.setattr("transport.channel.HANDSHAKE_S", 300.0)
    monkeypatch.setattr("agent.sessions.serve.HANDSHAKE_S", 300.0)
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            device = await pair_device(house)
            async with open_client(house.target(device), client_info()) as client:
                held = [await raw_tcp(house) for _ in range(200)]
                hung_up: list[trio.SocketStream] = []
                all_but_eight = trio.Event()

                async def watch(stream: trio.SocketStream) -> None:
                    assert await end_of(stream) == b""
                    hung_up.append(stream)
                    if len(hung_up) == 192:
                        all_but_eight.set()

                async with trio.open_nursery() as nursery:
                    for stream in held:
                        nursery.start_soon(watch, stream)
                    await all_but_eight.wait()
                    await client.call(GATEWAY_STATUS, gateway.GatewayStatusParams())
                    assert len(hung_up) == 192
                    nursery.cancel_scope.cancel(reason="seen enough")


async def test_a_device_that_never_ends_its_first_frame_keeps_its_slot_and_is_cut_off(
    tmp_path: Path,
) -> None:
    doors = {**WIDE_DOORS, "half_open_per_source": 3}
    with trio.fail_after(240):
        async with open_agent(tmp_path, doors=doors) as house:
            device = await pair_device(house)
            with raw_devices(house) as raw:
                begun = [await raw.dial(device) for _ in range(3)]
                for peer in begun:
                    await say_half(peer.channel)
                with pytest.raises(HandshakeError):  # no slot is left
                    await raw.dial(device)
                for peer in begun:  # and none of them is a session that counts
                    with pytest.raises(TruncatedError):
                        await peer.receive()
            async with open_client(house.target(device), client_info()) as client:
                await client.call(GATEWAY_STATUS, gateway.GatewayStatusParams())


async def test_84_a_reader_that_stops_costs_no_memory_and_nobody_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small: Callable[[], Journal] = partial(Journal, max_bytes=4 * 1024 * 1024)
    monkeypatch.setattr("agent.app.Journal", small)
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            house.runtime.add("thr_1", "t1")
            device = await pair_device(house)
            started = await owner.call(TURN_START, turn_params())
            async with open_peer(house, device) as stalled:
                await stalled.subscribe()
                async with owner.subscribe("all") as events:
                    await anext(events)
                    with measured() as peak:
                        for number in range(50):
                            said = flood(house, f"m{number}", started.sent.id)
                            while said:
                                event = await anext(events)
                                assert not isinstance(event, Resumed), "it never lags"
                                if isinstance(event, DeltaSeen):
                                    said -= len(event.text)
                        assert peak() < 20, "the ring's 4 MB, and what is on its way"


def flood(house: House, item_id: str, turn_id: str) -> int:
    """Say a megabyte in one item; return how many characters."""
    writer = house.runtime.writers[0]
    item = AgentMessage(
        id=item_id, turn_id=turn_id, status=ItemStatus.IN_PROGRESS, text=""
    )
    writer.begin_item(item)
    for _ in range(100):
        writer.delta(item_id, "x" * 10_000)
    writer.end_item(item)
    return 1_000_000
