"""Attacks and abuse at the Agent's doors. The numbers are those of SECURITY.md's cases.

Each runs a whole Agent on real sockets; its runtime is played by the test, so that it can
be shown that nothing reached it.
"""

import os
import stat
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from agent.events.journal import Journal
from agent.pairing.device_records import DevicesFileError
from tests.support.agents import (
    Device,
    House,
    client_info,
    open_agent,
    open_owner,
    pair_device,
)
from tests.support.edge import Peer, open_params
from tests.support.measures import in_time
from transport.carriers import tcp
from transport.channel import Channel, connect_channel
from transport.client import Client, DeltaSeen, Resumed, open_client, pair
from transport.connection import DeviceConnection, Mode
from transport.errors import (
    CloseCode,
    Forbidden,
    HandshakeError,
    KeyFileError,
    PeerClosedError,
    Refusal,
    TransportError,
    UnreachableError,
)
from transport.identities import PrivateKey, Secret
from transport.pairing import PairingText, pairing_psk, parse_pairing_text
from transport.protocol import admin, gateway, threads, turns
from transport.protocol.items import AgentMessage, ItemStatus
from transport.protocol.methods import (
    DEVICE_GRANT,
    DEVICE_LIST,
    DEVICE_REVOKE,
    GATEWAY_STATUS,
    METHODS,
    PAIR_AWAIT,
    PAIR_DECIDE,
    PAIR_OPEN,
    THREAD_READ,
    TURN_START,
    Access,
)

PARAMS: dict[str, dict[str, Any]] = {
    "thread/start": {
        "cwd": "/work/app",
        "input": [{"type": "text", "text": "x"}],
        "requestKey": "k" * 16,
    },
    "turn/start": {
        "threadId": "thr_1",
        "input": [{"type": "text", "text": "x"}],
        "requestKey": "k" * 16,
    },
    "turn/interrupt": {"threadId": "thr_1", "turnId": "t1", "requestKey": "k" * 16},
    "approval/answer": {"approvalId": "apr_1", "digest": "d", "choice": "accept"},
    "blob/begin": {
        "name": "a",
        "size": 9,
        "sha256": "0" * 64,
        "mediaType": "text/plain",
    },
    "blob/chunk": {"uploadId": "0" * 32, "offset": 0, "bytes": b"x"},
    "blob/commit": {"uploadId": "0" * 32},
    "turn/steer": {
        "threadId": "thr_1",
        "turnId": "t1",
        "input": [{"type": "text", "text": "x"}],
        "requestKey": "k" * 16,
    },
    "thread/settings": {
        "threadId": "thr_1",
        "model": "m",
        "requestKey": "k" * 16,
    },
    "thread/fork": {
        "threadId": "thr_1",
        "input": [{"type": "text", "text": "x"}],
        "requestKey": "k" * 16,
    },
    "thread/rename": {"threadId": "thr_1", "name": "x", "requestKey": "k" * 16},
    "thread/archive": {"threadId": "thr_1", "requestKey": "k" * 16},
    "thread/unarchive": {"threadId": "thr_1", "requestKey": "k" * 16},
    "thread/delete": {"threadId": "thr_1", "requestKey": "k" * 16},
    "queue/delete": {"queueId": "q1", "requestKey": "k" * 16},
    "background/stop": {"threadId": "thr_1", "itemId": "i1", "requestKey": "k" * 16},
    "thread/goal/set": {
        "threadId": "thr_1",
        "objective": "x",
        "requestKey": "k" * 16,
    },
    "thread/goal/pause": {"threadId": "thr_1", "requestKey": "k" * 16},
    "thread/goal/clear": {"threadId": "thr_1", "requestKey": "k" * 16},
    "thread/compact": {"threadId": "thr_1", "requestKey": "k" * 16},
    "thread/revert": {
        "threadId": "thr_1",
        "beforeTurnId": "t2",
        "requestKey": "k" * 16,
    },
    "review/start": {
        "threadId": "thr_1",
        "target": {"type": "uncommitted"},
        "requestKey": "k" * 16,
    },
}
OWNERS_PARAMS: dict[str, dict[str, Any]] = {
    "device/grant": {"deviceId": "0" * 16, "scopes": ["write"]},
    "device/revoke": {"deviceId": "0" * 16},
    "pair/decide": {"accept": True, "check": "000000"},
}


def turn_params(key: str = "k" * 32) -> turns.TurnStartParams:
    return turns.TurnStartParams(
        thread_id="thr_1",
        input=[turns.TextInput(type="text", text="go on")],
        request_key=key,
    )


async def connect(house: House, device: Device) -> Channel:
    host, port = house.running.tcp[0].removeprefix("tcp://").rsplit(":", 1)
    return await connect_channel(
        await tcp.connect(host, int(port)),
        mode=Mode.SESSION,
        agent_key=house.running.agent_key,
        identity=device.identity,
        psk=device.paired.psk.reveal(),
        padded=True,
    )


@asynccontextmanager
async def open_peer(house: House, device: Device) -> AsyncGenerator[Peer]:
    peer = Peer(await connect(house, device))
    try:
        assert "result" in await peer.call("session/open", open_params())
        yield peer
    finally:
        await peer.channel.aclose()


async def raw_tcp(house: House) -> trio.SocketStream:
    host, port = house.running.tcp[0].removeprefix("tcp://").rsplit(":", 1)
    return await trio.open_tcp_stream(host, int(port))


async def end_of(stream: trio.SocketStream) -> bytes:
    """Return all that the Agent says until it hangs up."""
    said = b""
    async with stream:
        with suppress(trio.BrokenResourceError):
            async for data in stream:
                said += data
    return said


# 9, 13 to 15: handshakes


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
                assert 4 < trio.current_time() - began < in_time(7)
                await client.call(GATEWAY_STATUS, gateway.GatewayStatusParams())


async def test_13_a_connection_that_says_nothing_is_closed_after_two_seconds(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            stream = await raw_tcp(house)
            began = trio.current_time()
            assert await end_of(stream) == b""
            assert 1.5 < trio.current_time() - began < in_time(3.5)


async def test_15_a_flood_from_one_source_holds_eight_slots_and_hurts_nobody(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            device = await pair_device(house)
            async with open_client(house.target(device), client_info()) as client:
                held = [await raw_tcp(house) for _ in range(200)]
                hung_up: list[trio.SocketStream] = []

                async def watch(stream: trio.SocketStream) -> None:
                    assert await end_of(stream) == b""
                    hung_up.append(stream)

                with trio.move_on_after(1):  # those that are let in have two seconds
                    async with trio.open_nursery() as nursery:
                        for stream in held:
                            nursery.start_soon(watch, stream)
                assert 192 <= len(hung_up) < 200
                began = trio.current_time()
                await client.call(GATEWAY_STATUS, gateway.GatewayStatusParams())
                assert trio.current_time() - began < in_time(1)


# 37 to 42: rights


@pytest.mark.parametrize(
    "name",
    [n for n, row in METHODS.items() if row.access in (Access.WRITE, Access.APPROVE)],
)
async def test_37_no_act_of_a_device_that_may_only_read_reaches_codex(
    tmp_path: Path, name: str
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            house.runtime.add("thr_1", "t1")
            device = await pair_device(house)
            async with open_peer(house, device) as peer:
                reached = list(house.runtime.log)
                error = (await peer.call(name, PARAMS[name]))["error"]
                assert error["code"] == "forbidden"
                assert house.runtime.log == reached


@pytest.mark.parametrize(
    ("scopes", "choice"),
    [
        (("read", "write"), "accept"),
        (("read", "write"), "decline"),
        (("read", "approve"), "acceptForSession"),
    ],
)
async def test_38_39_an_answer_that_a_device_may_not_give_leaves_the_approval_pending(
    tmp_path: Path, scopes: tuple[str, ...], choice: str
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            house.runtime.add("thr_1", "t1")
            device = await pair_device(house, scopes=scopes)
            await owner.call(TURN_START, turn_params())
            approval = house.runtime.writers[0].ask()
            async with open_peer(house, device) as peer:
                params = {
                    "approvalId": approval.id,
                    "digest": approval.digest,
                    "choice": choice,
                }
                error = (await peer.call("approval/answer", params))["error"]
                assert error["code"] == "forbidden"
                listed = (await peer.call("approval/list"))["result"]["approvals"]
                assert [row["state"] for row in listed] == ["pending"]
                assert "answer" not in house.runtime.log


@pytest.mark.parametrize(
    "name", [n for n, row in METHODS.items() if row.access is Access.ADMIN]
)
async def test_40_68_no_scope_opens_the_owners_methods_to_a_device(
    tmp_path: Path, name: str
) -> None:
    everything = ("read", "write", "approve", "approve.session")
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            device = await pair_device(house, scopes=everything)
            for carrier in ("tcp", "unix"):
                target = house.target(device, carrier=carrier)
                async with open_client(target, client_info()) as client:
                    link_error = await refusal_of(client, name)
                    assert isinstance(link_error, Forbidden)


async def refusal_of(client: Client, name: str) -> Refusal | None:
    row = METHODS[name]
    params = row.params.model_validate(OWNERS_PARAMS.get(name, {}))
    try:
        await client.call(row, params)
    except Refusal as refusal:
        return refusal
    return None


@pytest.mark.parametrize(
    "name", ["command/exec", "fs/readFile", "config/read", "account/login/start"]
)
async def test_41_codexs_own_methods_lead_nowhere(tmp_path: Path, name: str) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            device = await pair_device(house, scopes=("read", "write"))
            async with open_peer(house, device) as peer:
                reached = list(house.runtime.log)
                error = (await peer.call(name, {"command": ["id"]}))["error"]
                assert error["code"] == "methodNotFound"
                assert house.runtime.log == reached


async def test_42_a_thread_outside_the_roots_is_as_if_it_were_not_there(
    tmp_path: Path,
) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    mine.mkdir()
    other.mkdir()
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            house.runtime.add("thr_1", "t1", cwd=str(other))
            device = await pair_device(house, only=[mine], scopes=["read", "write"])
            async with open_peer(house, device) as peer:
                for method, params in (
                    ("thread/read", {}),
                    ("turn/list", {}),
                    ("turn/start", PARAMS["turn/start"]),
                ):
                    hidden = await peer.call(method, {**params, "threadId": "thr_1"})
                    absent = await peer.call(method, {**params, "threadId": "thr_0"})
                    assert hidden["error"]["code"] == "notFound"
                    told = str(hidden["error"]).replace("thr_1", "thr_0")
                    assert told == str(absent["error"]), "no oracle"
                for thread_id in ("thr_1", "thr_0"):
                    answer = await peer.call(
                        "events/subscribe", {"threads": [thread_id]}
                    )
                    assert answer["error"]["code"] == "notFound"
                await peer.subscribe()
                await owner.call(TURN_START, turn_params())
                house.runtime.writers[0].say("a secret plan")
                house.runtime.writers[0].finish_turn()
                await peer.send({"ping": 1})
                await peer.answer(await peer.ask("gateway/status"))
                assert "secret" not in str(peer.others)
                assert "thr_1" not in str(peer.others)


async def test_a_device_that_is_kept_to_a_folder_later_sees_no_other(
    tmp_path: Path,
) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    mine.mkdir()
    other.mkdir()
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            house.runtime.add("thr_1", "t1", cwd=str(other))
            device = await pair_device(house, scopes=["read"])
            async with open_peer(house, device) as peer:
                assert "result" in await peer.call("thread/read", {"threadId": "thr_1"})
                await owner.call(
                    DEVICE_GRANT,
                    admin.DeviceGrantParams(device_id=device.id, roots=[str(mine)]),
                )
            async with open_peer(house, device) as peer:
                hidden = await peer.call("thread/read", {"threadId": "thr_1"})
                assert hidden["error"]["code"] == "notFound"
                assert (await peer.call("thread/list"))["result"]["threads"] == []


# 43 to 47: revocation


async def revoke(owner: Client, device: Device, *, stop: bool = False) -> None:
    await owner.call(
        DEVICE_REVOKE, admin.DeviceRevokeParams(device_id=device.id, stop=stop)
    )


async def test_43_an_idle_session_is_closed_within_100_ms_of_its_revocation(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            device = await pair_device(house)
            async with open_peer(house, device) as peer:
                began = trio.current_time()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(revoke, owner, device)
                    close = await peer.closed()
                    took = trio.current_time() - began
                assert close.code is CloseCode.REVOKED
                assert took < in_time(0.1)


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
                await peer.ask("turn/start", PARAMS["turn/start"])
                await began.wait()
                await revoke(owner, device)
                assert house.runtime.live == [], "its writer has gone with it"
                assert "start_turn" not in house.runtime.log
                assert (await peer.closed()).code is CloseCode.REVOKED
                read = await owner.call(
                    THREAD_READ, threads.ThreadReadParams(thread_id="thr_1")
                )
                assert [turn.id for turn in read.turns] == ["t1"]


async def test_45_a_scope_that_is_taken_away_is_gone_and_reading_goes_on(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            house.runtime.add("thr_1", "t1")
            device = await pair_device(house, scopes=["read", "write"])
            async with open_peer(house, device) as peer:
                await peer.subscribe()
                assert "result" in await peer.call("turn/start", PARAMS["turn/start"])
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
                await connect(house, device)
            with pytest.raises((UnreachableError, TransportError)):
                async with open_client(house.target(device), client_info()):
                    pass


async def test_47_a_revoked_key_that_pairs_again_is_pointed_out(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            device = await pair_device(house)
            await revoke(owner, device)
            candidate = await candidate_of(house, owner, device.identity)
            assert candidate.known_revoked


# 61 to 69: pairing


async def take_part(
    text: PairingText,
    identity: PrivateKey,
    outcome: list[object],
    *,
    name: str = "phone",
    shown: list[str] | None = None,
) -> None:
    try:
        outcome.append(
            await pair(
                text,
                identity=identity,
                name=name,
                client=client_info(),
                on_check=(shown if shown is not None else []).append,
            )
        )
    except (Refusal, TransportError) as exc:
        outcome.append(exc)


async def open_offer(owner: Client, **params: object) -> PairingText:
    offer = await owner.call(PAIR_OPEN, admin.PairOpenParams.model_validate(params))
    return parse_pairing_text(offer.text)


async def candidate_of(
    house: House,
    owner: Client,
    identity: PrivateKey,
    *,
    name: str = "phone",
    accept: bool = False,
    outcome: list[object] | None = None,
) -> admin.PairCandidate:
    """Let a device come and be answered; return what the owner was shown."""
    del house
    text = await open_offer(owner)
    ends: list[object] = [] if outcome is None else outcome
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(take_part, text, identity, ends, name=name))
        seen = await owner.call(PAIR_AWAIT, admin.PairAwaitParams())
        assert seen.candidate is not None
        decide = admin.PairDecideParams(accept=accept, check=seen.candidate.check)
        with suppress(Refusal):
            await owner.call(PAIR_DECIDE, decide)
    return seen.candidate


async def devices_of(owner: Client) -> list[admin.DeviceRow]:
    return (await owner.call(DEVICE_LIST, admin.DeviceListParams())).devices


async def test_61_74_an_offer_ends_after_two_minutes_also_of_sleep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = 0.0
    monkeypatch.setattr("agent.edge.boot_s", lambda: trio.current_time() + slept)
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            text = await open_offer(owner)
            slept = 121.0
            outcome: list[object] = []
            await take_part(text, PrivateKey.generate(), outcome)
            assert isinstance(outcome[0], TransportError)
            seen = await owner.call(PAIR_AWAIT, admin.PairAwaitParams())
            assert (seen.outcome, await devices_of(owner)) == ("ended", [])
            assert "two minutes" in str(seen.why)


async def test_62_a_second_device_with_the_same_text_meets_silence(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            text = await open_offer(owner)
            first: list[object] = []
            second: list[object] = []
            async with trio.open_nursery() as nursery:
                nursery.start_soon(take_part, text, PrivateKey.generate(), first)
                seen = await owner.call(PAIR_AWAIT, admin.PairAwaitParams())
                assert seen.candidate is not None
                await take_part(text, PrivateKey.generate(), second)
                assert isinstance(second[0], TransportError)
                check = seen.candidate.check
                await owner.call(
                    PAIR_DECIDE, admin.PairDecideParams(accept=True, check=check)
                )
            assert len(await devices_of(owner)) == 1


async def test_63_three_wrong_secrets_close_the_offer_and_the_owner_is_told(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            text = await open_offer(owner)
            wrong = PairingText(
                agent_key=text.agent_key, secret=Secret(b"w" * 32), urls=text.urls
            )
            for _ in range(3):
                outcome: list[object] = []
                await take_part(wrong, PrivateKey.generate(), outcome)
                assert isinstance(outcome[0], TransportError)
            seen = await owner.call(PAIR_AWAIT, admin.PairAwaitParams())
            assert seen.outcome == "ended"
            assert "failed" in str(seen.why)
            right: list[object] = []
            await take_part(text, PrivateKey.generate(), right)
            assert isinstance(right[0], TransportError)


async def test_64_a_thief_of_the_text_shows_another_number_and_a_no_stores_nothing(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            text = await open_offer(owner)
            thief: list[object] = []
            shown: list[str] = []
            mine: list[object] = []
            async with trio.open_nursery() as nursery:
                nursery.start_soon(take_part, text, PrivateKey.generate(), thief)
                seen = await owner.call(PAIR_AWAIT, admin.PairAwaitParams())
                assert seen.candidate is not None
                take = partial(take_part, shown=shown)
                await take(text, PrivateKey.generate(), mine)
                assert shown == [], "the owner's device has no number to compare"
                no = admin.PairDecideParams(accept=False, check=seen.candidate.check)
                await owner.call(PAIR_DECIDE, no)
            assert isinstance(thief[0], Forbidden)
            assert await devices_of(owner) == []


async def test_65_no_answer_is_a_no(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.pairing.pairing_door.DECISION_S", 0.2)
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            text = await open_offer(owner)
            outcome: list[object] = []
            await take_part(text, PrivateKey.generate(), outcome)
            assert isinstance(outcome[0], Forbidden)
            assert await devices_of(owner) == []


async def test_65_a_prompt_that_dies_is_a_no(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            outcome: list[object] = []
            async with (
                trio.open_nursery() as nursery,
                open_client(house.admin, client_info()) as prompt,
            ):
                text = await open_offer(prompt)
                nursery.start_soon(take_part, text, PrivateKey.generate(), outcome)
                seen = await prompt.call(PAIR_AWAIT, admin.PairAwaitParams())
                assert seen.candidate is not None
            assert isinstance(outcome[0], Forbidden)
            assert await devices_of(owner) == []


async def test_a_yes_with_another_number_is_not_a_yes(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            text = await open_offer(owner)
            outcome: list[object] = []
            async with trio.open_nursery() as nursery:
                nursery.start_soon(take_part, text, PrivateKey.generate(), outcome)
                seen = await owner.call(PAIR_AWAIT, admin.PairAwaitParams())
                assert seen.candidate is not None
                other = f"{(int(seen.candidate.check) + 1) % 1_000_000:06d}"
                with pytest.raises(Refusal):
                    await owner.call(
                        PAIR_DECIDE, admin.PairDecideParams(accept=True, check=other)
                    )
                assert await devices_of(owner) == []
                no = admin.PairDecideParams(accept=False, check=seen.candidate.check)
                await owner.call(PAIR_DECIDE, no)
            assert isinstance(outcome[0], Forbidden)


async def test_66_a_devices_name_cannot_write_into_the_question(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            evil = "ok\x1b[2J\nScopes: read\u202e"
            candidate = await candidate_of(
                house, owner, PrivateKey.generate(), name=evil
            )
            assert candidate.name.isprintable()
            assert "\n" not in candidate.name


async def test_69_a_full_disk_pairs_nobody_and_burns_the_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:

            def full(*_: object) -> None:
                raise OSError(28, "No space left on device")

            monkeypatch.setattr("agent.pairing.devices.write_secret_file", full)
            outcome: list[object] = []
            await candidate_of(
                house, owner, PrivateKey.generate(), accept=True, outcome=outcome
            )
            monkeypatch.undo()
            assert isinstance(outcome[0], Refusal)
            assert await devices_of(owner) == []
            seen = await owner.call(PAIR_AWAIT, admin.PairAwaitParams())
            assert seen.outcome == "ended"
            files = {path.name for path in house.config.state_dir.iterdir()}
            assert "devices.json" not in files


async def test_pairing_without_a_question_gives_read_and_nothing_else(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            with pytest.raises(Refusal):
                await open_offer(owner, scopes=["read", "write"], unattended=True)
            text = await open_offer(owner, unattended=True)
            outcome: list[object] = []
            await take_part(text, PrivateKey.generate(), outcome)
            (row,) = await devices_of(owner)
            assert row.scopes == ["read"]
            assert not row.paired_by_check
            seen = await owner.call(PAIR_AWAIT, admin.PairAwaitParams())
            assert seen.outcome == "paired"


async def test_a_pairing_connection_can_do_nothing_but_pair(tmp_path: Path) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            text = await open_offer(owner)
            host, port = house.running.tcp[0].removeprefix("tcp://").rsplit(":", 1)
            channel = await connect_channel(
                await tcp.connect(host, int(port)),
                mode=Mode.PAIRING,
                agent_key=text.agent_key,
                identity=PrivateKey.generate(),
                psk=pairing_psk(text.secret),
                payload=b"phone",
                padded=True,
            )
            peer = Peer(channel)
            await peer.ask("session/open", open_params())
            with pytest.raises(PeerClosedError) as caught:
                await peer.receive()
            await channel.aclose()
            assert caught.value.code is CloseCode.PROTOCOL_ERROR
            assert await devices_of(owner) == []


# 71, 75, 84: files, other users, slow readers


async def test_71_a_missing_identity_with_paired_devices_stops_the_agent(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            await pair_device(house)
            identity = house.config.state_dir / "identity.key"
        identity.unlink()
        with pytest.raises(KeyFileError, match="missing"):
            async with open_agent(tmp_path):
                pass
        assert not identity.exists(), "no new one was made"


@pytest.mark.parametrize("name", ["devices.json", "identity.key"])
async def test_71_a_file_that_others_can_read_or_that_is_damaged_stops_the_agent(
    tmp_path: Path, name: str
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            await pair_device(house)
            path = house.config.state_dir / name
        path.chmod(0o644)
        with pytest.raises(KeyFileError, match="chmod 600"):
            async with open_agent(tmp_path):
                pass
        path.chmod(0o600)
        path.write_bytes(path.read_bytes()[:-5])
        with pytest.raises((KeyFileError, DevicesFileError)):
            async with open_agent(tmp_path):
                pass


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
@pytest.mark.parametrize("socket", ["admin_path", "agent_path"])
async def test_75_another_user_is_turned_away_whatever_the_modes_say(
    tmp_path: Path, socket: str
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            path: Path = getattr(house.running, socket)
            for folder in (path.parent, *path.parent.parents):
                if stat.S_IMODE(folder.stat().st_mode) & 0o011 == 0:
                    folder.chmod(0o755)
            path.chmod(0o777)
            script = (
                "import os, socket, sys\n"
                "os.setuid(65534)\n"
                "s = socket.socket(socket.AF_UNIX)\n"
                "s.connect(sys.argv[1])\n"
                "s.settimeout(1)\n"
                "try: print(len(s.recv(10)))\n"
                "except ConnectionResetError: print(0)\n"
            )
            run = partial(
                subprocess.run,
                [sys.executable, "-c", script, str(path)],
                capture_output=True,
                text=True,
                check=False,
            )
            ended = await trio.to_thread.run_sync(run)
            assert ended.stdout == "0\n", ended.stderr


def rss() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


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
                    before = rss()
                    for number in range(50):
                        said = flood(house, f"m{number}", started.sent.id)
                        while said:
                            event = await anext(events)
                            assert not isinstance(event, Resumed), "it never lags"
                            if isinstance(event, DeltaSeen):
                                said -= len(event.text)
                    assert rss() - before < 40 * 1024 * 1024


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


def test_every_act_has_params_here() -> None:
    acts = {n for n, r in METHODS.items() if r.access in (Access.WRITE, Access.APPROVE)}
    assert acts == set(PARAMS)
