"""A whole Agent on real sockets with a runtime that the test plays."""

import json
import os
import signal
import socket
import stat
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from agent.lockfile import FolderInUseError
from agent.records.audit import Audit
from tests.support.agents import (
    Device,
    House,
    client_info,
    open_agent,
    open_owner,
    pair_device,
)
from tests.support.edge import Peer, open_params
from tests.support.fake_runtime import FakeRuntime
from transport.carriers import unix
from transport.channel import Mode, connect_channel
from transport.client import Client, DeltaSeen, EventSeen, Resumed, open_client
from transport.errors import (
    CloseCode,
    CodexUnavailable,
    Forbidden,
    NotFound,
    SilentAgentError,
)
from transport.identities import PrivateKey
from transport.keys import write_secret_file
from transport.protocol import admin, gateway, threads, turns
from transport.protocol.events import ItemCompleted, TurnCompleted
from transport.protocol.items import AgentMessage, ItemStatus
from transport.protocol.methods import (
    AUDIT_LIST,
    DEVICE_GRANT,
    DEVICE_LIST,
    DEVICE_REVOKE,
    GATEWAY_STATUS,
    PAIR_OPEN,
    THREAD_LIST,
    THREAD_READ,
    TURN_START,
)

KEY = "k" * 32


def turn_params(text: str, key: str = KEY) -> turns.TurnStartParams:
    return turns.TurnStartParams(
        thread_id="thr_1",
        input=[turns.TextInput(type="text", text=text)],
        request_key=key,
    )


async def test_a_paired_device_reads_writes_and_follows_over_tcp(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            house.runtime.add("thr_1", "t1")
            device = await pair_device(house, scopes=["read", "write"])
            async with open_client(house.target(device), client_info()) as client:
                assert client.opened.device.id == device.id
                listed = await client.call(THREAD_LIST, threads.ThreadListParams())
                assert [row.id for row in listed.threads] == ["thr_1"]
                await follow_one_turn(client, house.runtime)


async def test_an_address_that_is_named_twice_is_listened_at_once(
    tmp_path: Path,
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    with trio.fail_after(240):
        async with open_agent(tmp_path, listen=[address, address]) as house:
            assert house.running.tcp == (f"tcp://{address}",)


async def test_an_agent_whose_codex_takes_long_to_start_serves_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.app.FIRST_START_S", 0.1)
    runtime = FakeRuntime()
    filled = trio.Event()
    runtime.at("reader.open", filled.wait)
    with trio.fail_after(240):
        async with open_agent(tmp_path, runtime=runtime) as house:
            assert house.running.runtime.state is gateway.RuntimePhase.STARTING
            async with open_owner(house) as owner:
                params = threads.ThreadListParams()
                with pytest.raises(CodexUnavailable) as caught:
                    await owner.call(THREAD_LIST, params)
                assert caught.value.retryable
                filled.set()
                asked = gateway.GatewayStatusParams()
                while (
                    await owner.call(GATEWAY_STATUS, asked)
                ).runtime.state is not gateway.RuntimePhase.READY:
                    pass  # each look is a round trip
                assert (await owner.call(THREAD_LIST, params)).threads == []


async def follow_one_turn(client: Client, runtime: FakeRuntime) -> None:
    seen: list[str] = []
    async with client.subscribe("all") as events:
        first = await anext(events)
        assert isinstance(first, Resumed)
        started = await client.call(TURN_START, turn_params("go on"))
        writer = runtime.writers[0]
        item = AgentMessage(
            id="m1", turn_id=started.sent.id, status=ItemStatus.IN_PROGRESS, text=""
        )
        writer.begin_item(item)
        for text in ("Hel", "lo"):
            writer.delta("m1", text)
        writer.end_item(
            item.model_copy(update={"status": ItemStatus.COMPLETED, "text": "Hello"})
        )
        writer.finish_turn()
        text = ""
        async for event in events:
            match event:
                case DeltaSeen():
                    text += event.text
                case EventSeen(data=ItemCompleted(item=AgentMessage() as done)):
                    seen.append(done.text)
                case EventSeen(data=TurnCompleted()):
                    break
                case _:
                    pass
        assert text == "Hello"
        assert seen == ["Hello"]


async def test_the_same_device_may_come_over_the_unix_socket(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path, listen=[]) as house:
            device = await pair_device(house)
            target = house.target(device, carrier="unix")
            async with open_client(target, client_info()) as client:
                status = await client.call(
                    GATEWAY_STATUS, gateway.GatewayStatusParams()
                )
    assert status.agent.name == "bench"
    assert status.gate.state == "open"
    assert status.sessions == 1


async def test_sockets_and_files_are_the_owners_alone(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            await pair_device(house)
            for path in (house.running.admin_path, house.running.agent_path):
                assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(house.config.runtime_dir.stat().st_mode) == 0o700
            state = house.config.state_dir
            assert stat.S_IMODE(state.stat().st_mode) == 0o700
            for file in state.iterdir():
                assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file


async def test_a_device_survives_a_restart_of_the_agent_in_a_new_epoch(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            device = await pair_device(house)
            key = house.running.agent_key
            async with open_client(house.target(device), client_info()) as client:
                first = client.opened.epoch
        async with open_agent(tmp_path) as house:
            assert house.running.agent_key == key
            async with open_client(house.target(device), client_info()) as client:
                assert client.opened.epoch != first


async def test_no_key_stays_in_a_draft_of_an_agent_that_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even one of a device that is revoked by then."""
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            await pair_device(house)
        state = house.config.state_dir
        with monkeypatch.context() as killed:
            for step in ("replace", "unlink"):
                killed.setattr(Path, step, _stop_here)
            for name in ("devices.json", "identity.key"):
                with pytest.raises(KeyboardInterrupt):
                    write_secret_file(state / name, b"a key")
        assert len(drafts(state)) == 2
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            assert drafts(state) == []
            listed = await owner.call(DEVICE_LIST, admin.DeviceListParams())
            assert len(listed.devices) == 1


def drafts(folder: Path) -> list[Path]:
    return [one for one in folder.iterdir() if one.name.startswith(".")]


def _stop_here(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


async def test_two_agents_do_not_share_a_state_folder(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path):
            holder = rf"process {os.getpid()}, since 2\d{{3}}-\d\d-\d\d \d\d:\d\d"
            with pytest.raises(FolderInUseError, match=holder):
                async with open_agent(tmp_path):
                    pass


async def test_the_first_signal_closes_and_tells_the_clients(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            device = await pair_device(house)
            async with open_client(house.target(device), client_info()) as client:
                await client.call(GATEWAY_STATUS, gateway.GatewayStatusParams())
                os.kill(os.getpid(), signal.SIGTERM)
                while house.running.admin_path.exists():
                    await trio.lowlevel.checkpoint()


async def test_a_closed_gate_is_told_and_refuses_with_the_writers_name(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path, read_only=True) as house:
            house.runtime.add("thr_1", "t1")
            device = await pair_device(house, scopes=["read", "write"])
            async with open_client(house.target(device), client_info()) as client:
                assert client.opened.gate.reason == "configured"
                with pytest.raises(CodexUnavailable):
                    await client.call(TURN_START, turn_params("go on"))
                read = threads.ThreadReadParams(thread_id="thr_1")
                assert (await client.call(THREAD_READ, read)).thread.id == "thr_1"


async def test_a_grant_reaches_a_live_session_at_once(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            house.runtime.add("thr_1", "t1")
            device = await pair_device(house)
            async with (
                open_owner(house) as owner,
                open_client(house.target(device), client_info()) as client,
            ):
                with pytest.raises(Forbidden):
                    await client.call(TURN_START, turn_params("go on"))
                grant = admin.DeviceGrantParams(
                    device_id=device.id, scopes=["read", "write"]
                )
                await owner.call(DEVICE_GRANT, grant)
                started = await client.call(TURN_START, turn_params("go on"))
                assert started.delivery == "started"
                grant = admin.DeviceGrantParams(device_id=device.id, scopes=["read"])
                await owner.call(DEVICE_GRANT, grant)
                with pytest.raises(Forbidden):
                    await client.call(TURN_START, turn_params("more", "m" * 32))


async def test_a_device_sees_only_threads_inside_its_roots(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    mine.mkdir()
    other.mkdir()
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            house.runtime.add("thr_1", "t1", cwd=str(mine))
            house.runtime.add("thr_2", "t2", cwd=str(other))
            device = await pair_device(house, only=[mine])
            async with open_client(house.target(device), client_info()) as client:
                listed = await client.call(THREAD_LIST, threads.ThreadListParams())
                assert [row.id for row in listed.threads] == ["thr_1"]
                for thread_id in ("thr_2", "thr_0"):
                    with pytest.raises(NotFound):
                        await client.call(
                            THREAD_READ, threads.ThreadReadParams(thread_id=thread_id)
                        )
                with pytest.raises(NotFound):
                    async with client.subscribe(["thr_2"]) as events:
                        await anext(events)


async def test_the_owner_lists_devices_and_a_revoked_one_stays_as_a_name(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            device = await pair_device(house, name="kitchen tablet")
            await owner.call(
                DEVICE_REVOKE, admin.DeviceRevokeParams(device_id=device.id)
            )
            rows = await owner.call(DEVICE_LIST, admin.DeviceListParams())
    (row,) = rows.devices
    assert (row.name, row.revoked, row.scopes) == ("kitchen tablet", True, [])


async def test_who_has_the_folders_of_all_threads_is_told_from_who_has_some(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            (tmp_path / "one").mkdir()
            await pair_device(house, name="all")
            some = await pair_device(house, name="some", only=[tmp_path / "one"])
            rows = await owner.call(DEVICE_LIST, admin.DeviceListParams())
            async with open_client(house.target(some), client_info()) as client:
                assert client.opened.device.follows_threads is False
    assert {row.name: row.follows_threads for row in rows.devices} == {
        "all": True,
        "some": False,
    }


async def test_an_offer_dies_with_the_window_that_opened_it(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            async with open_owner(house) as owner:
                await owner.call(PAIR_OPEN, admin.PairOpenParams())
            await pair_device(house)


async def test_every_method_of_the_protocol_answers_on_the_owners_door(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            assert owner.opened.device.id == "local"
            assert owner.opened.device.ceiling is None
            house.runtime.add("thr_1", "t1")
            started = await owner.call(TURN_START, turn_params("go on"))
            assert started.delivery == "started"


async def test_a_reader_that_dies_is_started_again_and_told(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            async with owner.subscribe("all") as events:
                await anext(events)
                house.runtime.readers[0].die()
                seen: list[str] = []
                async for event in events:
                    if isinstance(event, EventSeen) and event.data.event in (
                        "runtime/changed",
                        "gate/changed",
                    ):
                        seen.append(event.data.event)
                    if seen.count("gate/changed") == 2:
                        break
            assert "runtime/changed" in seen


async def test_leaving_ends_every_writer(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            house.runtime.add("thr_1", "t1")
            await owner.call(TURN_START, turn_params("go on"))
            assert len(house.runtime.live) == 1
            runtime = house.runtime
    assert runtime.live == []


async def test_a_session_hears_that_the_agent_goes_away(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            device = await pair_device(house)
            async with open_raw(house, device) as peer:
                house.running.stop()
                assert (await peer.closed()).code is CloseCode.GOING_AWAY
                closing = peer.others[-1]
    assert closing["event"] == "session/closing"
    assert closing["data"]["code"] == "goingAway"
    assert closing["data"]["retryAfterMs"] > 0


async def test_the_audit_names_who_did_what_and_quotes_nothing(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            house.runtime.add("thr_1", "t1")
            writer = await pair_device(house, scopes=["read", "write"])
            reader = await pair_device(house, name="secret name")
            async with open_client(house.target(writer), client_info()) as client:
                await client.call(TURN_START, turn_params("a secret plan"))
            async with open_client(house.target(reader), client_info()) as client:
                for _ in range(5):
                    with pytest.raises(Forbidden):
                        await client.call(TURN_START, turn_params("a secret plan"))
        audit = (house.config.state_dir / "audit.jsonl").read_text()
    entries = [json.loads(line) for line in audit.splitlines()]
    events = [entry["event"] for entry in entries]
    for name in (
        "start",
        "pair.offered",
        "pair.accepted",
        "session/open",
        "turn/start",
    ):
        assert name in events
    denied = [entry for entry in entries if entry["event"] == "denied"]
    assert [entry["device"] for entry in denied] == [reader.id], "once a minute"
    assert "secret" not in audit


async def test_who_knocks_comes_in_or_is_denied_makes_nobody_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_the_way: list[str] = []
    write = Audit._write  # pyright: ignore[reportPrivateUsage]

    def watched(audit: Audit, line: bytes) -> None:
        if threading.current_thread() is threading.main_thread():
            in_the_way.append(json.loads(line)["event"])
        write(audit, line)

    monkeypatch.setattr(Audit, "_write", watched)
    incidents = ["handshake/refused", "session/open", "denied"]
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            device = await pair_device(house, scopes=["read"])
            stranger = replace(device, identity=PrivateKey.generate())
            with pytest.raises(SilentAgentError):
                async with open_client(house.target(stranger), client_info()):
                    pass
            async with open_client(house.target(device), client_info()) as client:
                with pytest.raises(Forbidden):
                    await client.call(TURN_START, turn_params("no"))
            listed = await owner.call(AUDIT_LIST, admin.AuditListParams(limit=100))
            assert not set(in_the_way) & set(incidents)
    told = [one.event for one in reversed(listed.entries)]
    assert [event for event in told if event in incidents] == incidents


@asynccontextmanager
async def open_raw(house: House, device: Device) -> AsyncGenerator[Peer]:
    channel = await connect_channel(
        await unix.connect(house.running.agent_path),
        mode=Mode.SESSION,
        agent_key=house.running.agent_key,
        identity=device.identity,
        psk=device.paired.psk.reveal(),
        padded=False,
    )
    peer = Peer(channel)
    try:
        await peer.call("session/open", open_params())
        yield peer
    finally:
        await channel.aclose()
