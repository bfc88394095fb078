"""A device that is revoked, or loses a scope, in the middle of what it does.

The numbers are those of
SECURITY.md's cases. A whole Agent on real sockets; its runtime is played by the test, so
that it can be shown that nothing reached it.
"""

from pathlib import Path

import pytest
import trio

from tests.support.act_params import ACT_PARAMS
from tests.support.agents import (
    Device,
    client_info,
    open_agent,
    open_owner,
    pair_device,
)
from tests.support.measures import in_time
from tests.support.raw_devices import connect_device, open_peer
from transport.client import Client, open_client
from transport.errors import (
    CloseCode,
    HandshakeError,
    TransportError,
    UnreachableError,
)
from transport.protocol import admin, threads
from transport.protocol.goals import GoalStatus
from transport.protocol.methods import (
    DEVICE_GRANT,
    DEVICE_REVOKE,
    THREAD_READ,
)


async def revoke(owner: Client, device: Device, *, stop: bool = False) -> None:
    await owner.call(
        DEVICE_REVOKE, admin.DeviceRevokeParams(device_id=device.id, stop=stop)
    )


async def test_43_an_idle_session_is_closed_within_100_ms_of_its_revocation(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            took: list[float] = []
            for _ in range(5):  # one of them meets nothing else that runs here
                device = await pair_device(house)
                async with open_peer(house, device) as peer:
                    began = trio.current_time()
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(revoke, owner, device)
                        close = await peer.closed()
                        took.append(trio.current_time() - began)
                    assert close.code is CloseCode.REVOKED
            assert min(took) < in_time(0.1)


async def test_44_a_mutation_that_was_under_way_has_no_effect_after_the_revocation(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            house.runtime.add("thr_1", "t1")
            device = await pair_device(house, scopes=["read", "write"])
            began = trio.Event()

            async def hold() -> None:
                began.set()
                await trio.sleep_forever()

            house.runtime.at("resume", hold)
            async with open_peer(house, device) as peer:
                await peer.ask("turn/start", ACT_PARAMS["turn/start"])
                await began.wait()
                await revoke(owner, device)
                assert house.runtime.live == [], "its writer has gone with it"
                assert "start_turn" not in house.runtime.log
                assert (await peer.closed()).code is CloseCode.REVOKED
                read = await owner.call(
                    THREAD_READ, threads.ThreadReadParams(thread_id="thr_1")
                )
                assert [turn.id for turn in read.turns] == ["t1"]


async def test_a_goal_of_a_revoked_device_begins_no_further_turn(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            house.runtime.add("thr_1", "t1")
            device = await pair_device(house, scopes=["read", "write"])
            async with open_peer(house, device) as peer:
                params = {
                    "threadId": "thr_1",
                    "objective": "all",
                    "requestKey": "g" * 16,
                }
                assert "result" in await peer.call("thread/goal/set", params)
                await revoke(owner, device)
            goal = house.runtime.threads["thr_1"].goal
            assert goal is not None
            assert goal.status is GoalStatus.PAUSED


async def test_45_a_scope_that_is_taken_away_is_gone_and_reading_goes_on(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            house.runtime.add("thr_1", "t1")
            device = await pair_device(house, scopes=["read", "write"])
            async with open_peer(house, device) as peer:
                await peer.subscribe()
                assert "result" in await peer.call(
                    "turn/start", ACT_PARAMS["turn/start"]
                )
                turn = house.runtime.writers[0].running_turn_id
                await owner.call(
                    DEVICE_GRANT,
                    admin.DeviceGrantParams(device_id=device.id, scopes=["read"]),
                )
                params = {"threadId": "thr_1", "turnId": turn, "requestKey": "z" * 16}
                error = (await peer.call("turn/interrupt", params))["error"]
                assert error["code"] == "forbidden"
                assert error["data"] == {"scope": "write"}
                assert "session/changed" in str(peer.others)
                house.runtime.writers[0].say("still readable")
                while "still readable" not in str(peer.others):
                    peer.others.append(await peer.receive())


async def test_46_a_revoked_device_meets_silence(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            device = await pair_device(house)
            await revoke(owner, device)
            with pytest.raises(HandshakeError):
                await connect_device(house, device)
            with pytest.raises((UnreachableError, TransportError)):
                async with open_client(house.target(device), client_info()):
                    pass
