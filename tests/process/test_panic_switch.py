"""`gateway/lock`: no device is let in, nothing begun goes on, also over a restart."""

import json
from pathlib import Path

import pytest
import trio

from agent.errors import StoreUnavailableError
from agent.gate.panic import LockFile
from agent.queue.queue_table import QueueTable
from agent.records.store import Store
from tests.support.agents import (
    Device,
    House,
    client_info,
    open_agent,
    open_owner,
    pair_device,
)
from tests.support.door import DESKTOP
from transport.client import Client, open_client
from transport.errors import (
    CodexUnavailable,
    Internal,
    SilentAgentError,
)
from transport.protocol import admin, gateway, turns
from transport.protocol.gateway import GateReason, GateState
from transport.protocol.methods import (
    GATEWAY_LOCK,
    GATEWAY_STATUS,
    GATEWAY_UNLOCK,
    PAIR_AWAIT,
    PAIR_OPEN,
    TURN_START,
)


async def lock(owner: Client, *, stop: bool = False) -> GateState:
    params = admin.GatewayLockParams(stop=stop)
    return (await owner.call(GATEWAY_LOCK, params)).gate


async def unlock(owner: Client) -> GateState:
    return (await owner.call(GATEWAY_UNLOCK, admin.GatewayUnlockParams())).gate


async def status(client: Client) -> gateway.GatewayStatus:
    return await client.call(GATEWAY_STATUS, gateway.GatewayStatusParams())


def turn_params(*, wait_ms: int = 0) -> turns.TurnStartParams:
    return turns.TurnStartParams(
        thread_id="thr_1",
        input=[turns.TextInput(type="text", text="go on")],
        request_key="k" * 32,
        wait_ms=wait_ms,
    )


async def is_silent(house: House, device: Device, carrier: str) -> bool:
    try:
        async with open_client(house.target(device, carrier=carrier), client_info()):
            return False
    except SilentAgentError:
        return True


async def test_a_locked_agent_hangs_up_on_devices_and_meets_them_with_silence(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            device = await pair_device(house)
            losses: list[str] = []
            back = trio.Event()

            def on_link(link: object) -> None:
                losses.append(str(link))
                if len(losses) > 1 and "up=True" in str(link):
                    back.set()

            target = house.target(device)
            async with open_client(target, client_info(), on_link=on_link) as client:
                await status(client)
                assert (await lock(owner)).reason is GateReason.LOCKED
                assert (await status(owner)).sessions == 1  # the owner's own
                assert await is_silent(house, device, "tcp")
                assert await is_silent(house, device, "unix")
                await unlock(owner)
                await back.wait()  # the device comes back by itself
                await status(client)
            assert "stopped or locked" in losses[1]


async def test_a_lock_survives_a_restart_of_the_agent(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            device = await pair_device(house)
            await lock(owner)
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            assert (await status(owner)).gate.reason is GateReason.LOCKED
            assert await is_silent(house, device, "unix")
            await unlock(owner)
            assert not await is_silent(house, device, "unix")
        async with open_agent(tmp_path) as house:
            assert not await is_silent(house, device, "unix")
    log = (tmp_path / "state" / "audit.jsonl").read_text().splitlines()
    events = [json.loads(line)["event"] for line in log]
    assert [name for name in events if name.startswith("gateway/")] == [
        "gateway/lock",
        "gateway/unlock",
    ]


async def test_a_lock_ends_the_open_pairing_and_lets_none_begin(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with (
            open_agent(tmp_path) as house,
            open_owner(house) as owner,
            open_client(house.admin, client_info("o2", "2" * 32)) as other,
        ):
            await owner.call(PAIR_OPEN, admin.PairOpenParams())
            await lock(other)
            ended = await owner.call(PAIR_AWAIT, admin.PairAwaitParams())
            assert (ended.outcome, ended.why) == ("ended", "The gate was locked.")
            with pytest.raises(CodexUnavailable, match="unlock"):
                await owner.call(PAIR_OPEN, admin.PairOpenParams())


async def test_what_a_device_waited_for_is_not_done_after_an_unlock(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            house.runtime.add("thr_1", "t1")
            device = await pair_device(house, scopes=("read", "write"))
            house.watch.foreign.append(DESKTOP)
            async with trio.open_nursery() as nursery:

                async def wait_and_send() -> None:
                    target = house.target(device)
                    async with open_client(target, client_info()) as client:
                        await status(client)
                        asked.set()
                        await client.call(TURN_START, turn_params(wait_ms=60_000))

                asked = trio.Event()
                nursery.start_soon(wait_and_send)
                await asked.wait()
                while (await status(owner)).gate.reason is not (
                    GateReason.DESKTOP_ACTIVE
                ):
                    await trio.lowlevel.checkpoint()
                await lock(owner)
                nursery.cancel_scope.cancel(reason="the device stays away")
            house.watch.foreign.clear()
            await unlock(owner)
            assert not house.runtime.writers


async def test_while_locked_the_owner_too_only_reads(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            house.runtime.add("thr_1", "t1")
            await lock(owner)
            with pytest.raises(CodexUnavailable) as refused:
                await owner.call(TURN_START, turn_params())
            assert not refused.value.retryable
            assert not house.runtime.writers


async def test_with_stop_the_turns_that_devices_started_are_interrupted(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            house.runtime.add("thr_1", "t1")
            device = await pair_device(house, scopes=("read", "write"))
            async with open_client(house.target(device), client_info()) as client:
                await client.call(TURN_START, turn_params())
                await lock(owner, stop=True)
            assert any("interrupt" in str(line) for line in house.runtime.log)


async def test_what_the_disk_still_has_of_devices_is_gone_before_an_unlock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else an Agent that is killed then would send it: its successor is not locked."""
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            house.runtime.add("thr_1", "t1")
            device = await pair_device(house, scopes=("read", "write"))
            house.watch.foreign.append(DESKTOP)
            async with open_client(house.target(device), client_info()) as client:
                waits = turn_params().model_copy(update={"delivery": "queue"})
                await client.call(TURN_START, waits)
            with monkeypatch.context() as patched:
                patched.setattr(QueueTable, "remove", refuse)
                await lock(owner)
                with pytest.raises(Internal) as refused:
                    await unlock(owner)
                assert refused.value.retryable
                assert (await status(owner)).gate.reason is GateReason.LOCKED
            await unlock(owner)
            store = Store.open(house.config.state_dir / "ledger.sqlite")
            assert QueueTable(store).load() == []
            store.close()


def refuse(*_: object) -> None:
    raise StoreUnavailableError("no room")


async def test_a_lock_that_cannot_be_written_holds_and_says_so(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            device = await pair_device(house)
            (house.config.state_dir / "locked").mkdir()
            with pytest.raises(Internal, match="locked now"):
                await lock(owner)
            assert await is_silent(house, device, "unix")


def test_a_lock_file_of_any_kind_means_locked(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    file = LockFile(tmp_path)
    assert not file.is_there()
    (tmp_path / "locked").symlink_to("/nowhere")
    assert file.is_there()
    file.remove()
    file.remove()
    assert not file.is_there()
