"""`lock` and `revoke` while the terminal is closed on them, Codex hangs, or no Agent runs."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from secrets import token_hex

import pytest
import trio

from tests.support.agents import (
    Device,
    House,
    client_info,
    open_agent,
    open_owner,
    pair_device,
)
from tests.support.cli_runs import cli_environ, run_cli
from tests.support.edge import OPEN
from tests.support.fake_runtime import FakeRuntime
from transport.client import Client, open_client
from transport.codec import pack
from transport.errors import PeerClosedError
from transport.plain_channel import PlainChannel
from transport.protocol import admin, gateway, queue, turns
from transport.protocol.gateway import GateReason, GateState
from transport.protocol.methods import (
    DEVICE_REVOKE,
    GATEWAY_LOCK,
    GATEWAY_STATUS,
    GATEWAY_UNLOCK,
    QUEUE_LIST,
    TURN_START,
)

WRITES = ("read", "write")


def message(
    thread_id: str, text: str, *, queued: bool = False
) -> turns.TurnStartParams:
    return turns.TurnStartParams(
        thread_id=thread_id,
        input=[turns.TextInput(type="text", text=text)],
        request_key=text.replace(" ", "-").ljust(32, "-"),
        delivery="queue" if queued else "start",
    )


async def waiting(owner: Client) -> list[str]:
    listed = await owner.call(QUEUE_LIST, queue.QueueListParams())
    return [one.preview for one in listed.queue]


async def gate(owner: Client) -> GateState:
    return (await owner.call(GATEWAY_STATUS, gateway.GatewayStatusParams())).gate


async def unlock(owner: Client) -> GateState:
    return (await owner.call(GATEWAY_UNLOCK, admin.GatewayUnlockParams())).gate


async def lock(house: House, *, stop: bool = False) -> None:
    """Lock as a command does: a connection of its own, its own patience."""
    async with open_client(house.admin, client_info("lock", token_hex(16))) as client:
        await client.call(GATEWAY_LOCK, admin.GatewayLockParams(stop=stop))


async def revoke(house: House, device: Device) -> None:
    async with open_client(house.admin, client_info("revoke", "r" * 32)) as client:
        params = admin.DeviceRevokeParams(device_id=device.id, stop=True)
        await client.call(DEVICE_REVOKE, params)


async def ask_and_hang_up(house: House, method: str, params: dict[str, object]) -> None:
    """Ask at the owner's door, and end the connection right behind the request."""
    channel = PlainChannel(await trio.open_unix_socket(str(house.running.admin_path)))
    info = {**OPEN, "client": {**OPEN["client"], "instance": "x" * 32}}
    opening = {"id": 1, "method": "session/open", "params": info}
    asking = {"id": 2, "method": method, "params": params}
    await channel.send([pack(opening), pack(asking)])
    await channel.aclose()


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    while not await condition():
        await trio.lowlevel.checkpoint()


def audited(state: Path, event: str) -> list[dict[str, object]]:
    log = (state / "audit.jsonl").read_text().splitlines()
    return [one for one in map(json.loads, log) if one["event"] == event]


def sent(house: House) -> list[str]:
    """Return what has reached the model."""
    return [text for writer in house.runtime.writers for text, _ in writer.sent]


def with_threads() -> FakeRuntime:
    runtime = FakeRuntime()
    runtime.add("thr_1", "t1")
    runtime.add("thr_2", "t1")
    return runtime


@asynccontextmanager
async def open_busy(
    folder: Path, *, devices: int = 1
) -> AsyncGenerator[tuple[House, Client]]:
    """An Agent in which a turn of the workstation's runs. A message of each device waits
    for its end, and one of the workstation's."""
    async with (
        open_agent(folder, runtime=with_threads()) as house,
        open_owner(house) as owner,
    ):
        await owner.call(TURN_START, message("thr_1", "busy"))
        for number in range(devices):
            device = await pair_device(house, scopes=WRITES, name=f"d{number}")
            async with open_client(house.target(device), client_info()) as phone:
                words = message("thr_1", f"of device {number}", queued=True)
                await phone.call(TURN_START, words)
        await owner.call(TURN_START, message("thr_1", "the owner's", queued=True))
        yield house, owner


async def test_a_lock_takes_every_waiting_message_back_though_its_terminal_is_closed(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_busy(tmp_path, devices=3) as (house, owner):
            assert len(await waiting(owner)) == 4
            await ask_and_hang_up(house, "gateway/lock", {})

            async def is_locked() -> bool:
                return (await gate(owner)).reason is GateReason.LOCKED

            await until(is_locked)
            assert await waiting(owner) == ["the owner's"], "no device's, at once"
            await unlock(owner)
            house.runtime.writers[0].finish_turn()
            while len(sent(house)) < 2:
                await trio.lowlevel.checkpoint()
            assert sent(house) == ["busy", "the owner's"]
            state = house.config.state_dir
            assert len(audited(state, "gateway/lock")) == 1
            dropped = audited(state, "queue/dropped")
            assert [one["count"] for one in dropped] == [1, 1, 1]


@pytest.mark.parametrize("what", ["gateway/lock", "device/revoke"])
async def test_turns_are_stopped_though_the_terminal_is_closed_on_it(
    what: str, tmp_path: Path
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            house.runtime.add("thr_1", "t1")
            device = await pair_device(house, scopes=WRITES)
            async with open_client(house.target(device), client_info()) as phone:
                await phone.call(TURN_START, message("thr_1", "go on"))
                await phone.call(TURN_START, message("thr_1", "and on", queued=True))
            named = {"deviceId": device.id} if what == "device/revoke" else {}
            await ask_and_hang_up(house, what, {**named, "stop": True})
            while house.runtime.writers[0].running_turn_id:
                await trio.lowlevel.checkpoint()
            assert await waiting(owner) == []


@pytest.mark.parametrize("what", ["lock", "revoke"])
async def test_turns_are_stopped_at_once_while_another_act_waits_for_a_codex_that_hangs(
    what: str, tmp_path: Path
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, trio.open_nursery() as nursery:
            house.runtime.add("thr_1", "t1")
            house.runtime.add("thr_2", "t1")
            device = await pair_device(house, scopes=WRITES)
            go_on, hanging = trio.Event(), trio.Event()

            async def hang() -> None:
                hanging.set()
                await go_on.wait()

            async def two_messages() -> None:
                async with open_client(house.target(device), client_info()) as phone:
                    await phone.call(TURN_START, message("thr_1", "first"))
                    house.runtime.at("start_turn:done", hang)
                    with suppress(PeerClosedError):
                        await phone.call(TURN_START, message("thr_2", "second"))

            async def act() -> None:
                if what == "lock":
                    await lock(house, stop=True)
                else:
                    await revoke(house, device)
                done.set()

            done = trio.Event()
            nursery.start_soon(two_messages)
            await hanging.wait()
            nursery.start_soon(act)
            while house.runtime.writers[0].running_turn_id:
                await trio.lowlevel.checkpoint()
            assert not done.is_set(), "what was handed to Codex is waited for"
            go_on.set()
            await done.wait()
            late = house.runtime.writers[1]
            assert late.sent, "it had been handed to Codex before"
            assert late.running_turn_id is None, "and was stopped as it began"
            nursery.cancel_scope.cancel(reason="the device stays away")


async def test_an_unlock_waits_until_a_lock_has_ended_all_and_a_later_lock_wins(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            house.runtime.add("thr_1", "t1")
            device = await pair_device(house, scopes=WRITES)
            go_on, hanging = trio.Event(), trio.Event()
            unlocked: list[GateState] = []

            async def hang() -> None:
                hanging.set()
                await go_on.wait()

            async def send() -> None:
                async with open_client(house.target(device), client_info()) as phone:
                    house.runtime.at("start_turn", hang)
                    await phone.call(TURN_START, message("thr_1", "go on"))

            async def open_again() -> None:
                unlocked.append(await unlock(owner))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(send)
                await hanging.wait()
                async with trio.open_nursery() as asked:
                    asked.start_soon(partial(lock, house))
                    while (await gate(owner)).reason is not GateReason.LOCKED:
                        pass  # each look is a round trip
                    asked.start_soon(open_again)
                    for _ in range(50):
                        assert (await gate(owner)).reason is GateReason.LOCKED
                    asked.start_soon(partial(lock, house, stop=True))
                    while len(audited(house.config.state_dir, "gateway/lock")) < 2:
                        assert not unlocked
                        assert (await gate(owner)).reason is GateReason.LOCKED
                    go_on.set()
                nursery.cancel_scope.cancel(reason="the device stays away")
            assert [one.reason for one in unlocked] == [GateReason.LOCKED]
            assert (house.config.state_dir / "locked").exists()
            assert (await unlock(owner)).state == "open"


async def test_what_waits_is_dropped_by_a_start_that_finds_the_gate_locked(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_busy(tmp_path):
            pass
        (tmp_path / "state" / "locked").touch(mode=0o600)  # killed right behind this
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            assert await waiting(owner) == ["the owner's"]
            assert len(audited(house.config.state_dir, "queue/dropped")) == 1
        (tmp_path / "state" / "locked").unlink()
        async with open_agent(tmp_path, runtime=with_threads()) as house:
            while not sent(house):
                await trio.lowlevel.checkpoint()
            assert sent(house) == ["the owner's"]


@pytest.mark.parametrize("starts_between", [True, False])
async def test_what_waits_is_not_sent_after_a_lock_and_an_unlock_without_an_agent(
    starts_between: bool, tmp_path: Path
) -> None:
    environ = {
        **cli_environ(tmp_path / "state"),
        "THREADGATE_RUNTIME_DIR": str(tmp_path / "run"),
    }
    with trio.fail_after(240):
        async with open_busy(tmp_path):
            pass
        assert (await run_cli("lock", environ=environ)).code == 0
        if starts_between:
            async with open_agent(tmp_path) as house, open_owner(house) as owner:
                assert (await gate(owner)).reason is GateReason.LOCKED
                assert await waiting(owner) == ["the owner's"]
        assert (await run_cli("unlock", environ=environ)).code == 0
        async with open_agent(tmp_path, runtime=with_threads()) as house:
            while not sent(house):
                await trio.lowlevel.checkpoint()
            assert sent(house) == ["the owner's"], "and not what stood before it"
        state = tmp_path / "state"
        assert [one["count"] for one in audited(state, "queue/dropped")] == [1]
        assert len(audited(state, "gateway/lock")) == 1
        assert len(audited(state, "gateway/unlock")) == 1
