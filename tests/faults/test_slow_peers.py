"""Devices that do not read, are gone without a word, or come back while still here."""

import gc
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from agent.edge_limits import READS_AT_ONCE, UNSENT_A_DEVICE
from agent.events.journal import Journal
from agent.sessions.router import Call
from tests.support.agents import House, open_agent, open_owner, pair_device
from tests.support.edge import Bench, Peer, make_rights, open_params
from tests.support.peak_memory import measured
from tests.support.raw_devices import WIDE_DOORS, raw_devices
from transport.client import Client
from transport.errors import CloseCode, PeerClosedError, TransportError
from transport.limits import SESSION_LIMITS
from transport.protocol import turns
from transport.protocol.base import WireModel
from transport.protocol.gateway import GatewayStatus, GatewayStatusParams
from transport.protocol.items import AgentMessage, ItemStatus
from transport.protocol.methods import GATEWAY_STATUS, TURN_START

RING = 512 * 1024
CROWD = 16  # devices that take nothing
SOME_ANSWERS = 8 * 1024 * 1024  # in place of 64 MiB


def turn_params(key: str = "k" * 32) -> dict[str, Any]:
    text = {"type": "text", "text": "go on"}
    return {"threadId": "thr_1", "input": [text], "requestKey": key}


async def status(client: Client) -> GatewayStatus:
    return await client.call(GATEWAY_STATUS, GatewayStatusParams())


async def start_turn(owner: Client) -> str:
    params = turns.TurnStartParams.model_validate(turn_params())
    return (await owner.call(TURN_START, params)).sent.id


def deltas_in(frame: dict[str, Any]) -> list[list[Any]]:
    return [frame["d"]] if "d" in frame else frame.get("ds", [])


class Flood:
    """Says much in one item that stays open. `said`: how many characters so far."""

    def __init__(self, house: House, turn_id: str) -> None:
        self._writer = house.runtime.writers[0]
        self.said = 0
        message = AgentMessage(
            id="m", turn_id=turn_id, status=ItemStatus.IN_PROGRESS, text=""
        )
        self._writer.begin_item(message)

    def say(self, times: int, text: str) -> None:
        for _ in range(times):
            self._writer.delta("m", text)
        self.said += times * len(text)


class Reader:
    """A device that reads all the time."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.heard = 0
        self.deltas = 0
        self.gaps = 0
        self.lowest = 0
        self._more = trio.Event()

    async def run(self) -> None:
        while True:
            frame = await self.peer.receive()
            if "ping" in frame:
                await self.peer.send({"pong": frame["ping"]})
            self.gaps += frame.get("event") == "gap"
            for seq, _, _, _, text in deltas_in(frame):
                assert seq > self.lowest, "in order, and once"
                self.lowest = seq
                self.heard += len(text)
                self.deltas += 1
            self._more.set()

    async def wait(self, characters: int) -> None:
        while self.heard < characters:
            self._more = trio.Event()
            await self._more.wait()


async def until_gap(peer: Peer) -> list[dict[str, Any]]:
    """Read until a gap is told; return all that was read."""
    frames = [await peer.receive()]
    while frames[-1].get("event") != "gap":
        frames.append(await peer.receive())
    return frames


async def test_a_stalled_device_costs_nine_others_nothing_and_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small: Callable[[], Journal] = partial(Journal, max_bytes=RING)
    monkeypatch.setattr("agent.app.Journal", small)
    with trio.fail_after(240):
        async with (
            open_agent(tmp_path, doors=WIDE_DOORS) as house,
            open_owner(house) as owner,
        ):
            with raw_devices(house) as raw:
                house.runtime.add("thr_1", "t1")
                device = await pair_device(house)
                lame = await pair_device(house, name="lame")
                stalled = await raw.session(lame, "stalled", unix=True)
                await stalled.subscribe()
                async with trio.open_nursery() as nursery:
                    readers: list[Reader] = []
                    for number in range(9):
                        peer = await raw.session(device, f"reader{number}")
                        await peer.subscribe()
                        readers.append(Reader(peer))
                        nursery.start_soon(readers[-1].run)
                    flood = Flood(house, await start_turn(owner))
                    flood.say(2_000, "x" * 40)
                    for reader in readers:
                        await reader.wait(flood.said)
                        assert reader.deltas < 200, "neighbouring deltas are merged"
                    kept, told = list[int](), list[dict[str, Any]]()
                    tracemalloc.start()
                    for _ in range(3):
                        for _ in range(8):  # 1.6 MB, three times the ring
                            flood.say(20, "y" * 10_000)
                            for reader in readers:
                                await reader.wait(flood.said)
                        told = await until_gap(stalled)
                        (opened,) = told[-1]["data"]["open"]
                        assert opened["item"]["text"].endswith("y" * 1_000)
                        gc.collect()
                        in_use, _ = tracemalloc.get_traced_memory()
                        kept.append(
                            in_use - 2 * flood.said
                        )  # the open item: two copies
                    tracemalloc.stop()
                    assert kept[-1] - kept[0] < 1_600_000, "not even one round of it"
                    assert not any(reader.gaps for reader in readers)
                    off = await stalled.receive()
                    assert (off["event"], off["data"]["code"]) == (
                        "notice",
                        "deltasOff",
                    )
                    flood.say(10, "z")
                    house.runtime.writers[0].say("whole")
                    for reader in readers:
                        await reader.wait(flood.said)
                    heard = [await stalled.receive(), await stalled.receive()]
                    assert [one["event"] for one in heard] == [
                        "item/started",
                        "item/completed",
                    ]
                    assert (await status(owner)).sessions == 11, "nobody was hung up on"
                    nursery.cancel_scope.cancel()


async def test_a_device_that_is_gone_without_a_word_is_let_go_in_its_stated_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same as in tests/shell/test_session_endings with 45 s, here over a real socket."""
    limits = SESSION_LIMITS.model_copy(update={"ping_ms": 200, "dead_ms": 2_000})
    monkeypatch.setattr("agent.edge.SESSION_LIMITS", limits)
    with trio.fail_after(240):
        async with (
            open_agent(tmp_path, doors=WIDE_DOORS) as house,
            open_owner(house) as owner,
        ):
            with raw_devices(house) as raw:
                device = await pair_device(house)
                lively = await raw.session(device, "lively")
                gone = await raw.session(device, "gone")
                since = trio.current_time()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(Reader(lively).run)
                    while (await status(owner)).sessions == 3:
                        pass  # each is a round trip
                    assert trio.current_time() - since > 1.9, "not before"
                    nursery.cancel_scope.cancel()
                assert (await status(owner)).sessions == 2, "the one that answers lives"
                with pytest.raises(TransportError):
                    while True:
                        await gone.receive()


async def test_a_device_that_comes_back_beside_its_own_ghost_loses_nothing(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with (
            open_agent(tmp_path, doors=WIDE_DOORS) as house,
            open_owner(house) as owner,
        ):
            with raw_devices(house) as raw:
                house.runtime.add("thr_1", "t1")
                device = await pair_device(house, scopes=("read", "write"))
                ghost = await raw.session(device, "phone")
                place = await ghost.subscribe()
                go_on = trio.Event()
                house.runtime.at("start_turn", go_on.wait)
                await ghost.ask("turn/start", turn_params())
                while "start_turn" not in house.runtime.log:
                    await status(owner)
                back = await raw.dial(device)
                assert (await status(owner)).sessions == 2, "not before it has opened"
                await back.call("session/open", open_params("phone"))
                assert (await status(owner)).sessions == 2
                with pytest.raises(PeerClosedError) as closed:
                    while True:
                        await ghost.receive()
                assert closed.value.code is CloseCode.REPLACED
                resume = {"epoch": place["epoch"], "seq": place["head"]}
                assert (await back.subscribe(resume=resume))["verdict"] == "ok"
                again = await back.ask("turn/start", turn_params())
                go_on.set()
                turn = (await back.answer(again))["result"]["turn"]
                assert house.runtime.log.count("start_turn") == 1
                house.runtime.writers[0].finish_turn()
                seen = [*back.others]
                while not seen or seen[-1].get("event") != "turn/completed":
                    seen.append(await back.receive())
                started = [one for one in seen if one.get("event") == "turn/started"]
                assert [one["data"]["turn"]["id"] for one in started] == [turn["id"]]
                seqs = [one["seq"] for one in seen if "seq" in one]
                assert seqs == sorted(set(seqs))


async def test_sixteen_devices_have_256_sessions_and_the_next_is_told_no(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with (
            open_agent(tmp_path, doors=WIDE_DOORS) as house,
            open_owner(house) as owner,
        ):
            with raw_devices(house) as raw:
                house.runtime.add("thr_1", "t1")
                devices = [await pair_device(house, name=f"d{n}") for n in range(17)]
                peers: list[Peer] = []
                with measured() as peak:
                    for device in devices[:16]:
                        for number in range(16):
                            peer = await raw.session(device, f"i{number}")
                            await peer.subscribe()
                            peers.append(peer)
                    assert peak() / 256 < 0.1, "MB of each session, both ends"
                assert (await status(owner)).sessions == 257, "the owner is one more"
                for device, limit in ((devices[0], 16), (devices[16], 256)):
                    refused = await raw.dial(device)
                    answer = await refused.call("session/open", open_params("more"))
                    assert answer["error"]["code"] == "overloaded"
                    assert answer["error"]["retryable"]
                    assert answer["error"]["data"]["limit"] == limit
                    assert (await refused.closed()).code is CloseCode.OVERLOADED
                await start_turn(owner)
                for peer in peers:
                    while (await peer.receive()).get("event") != "turn/started":
                        pass
                await peers[0].channel.aclose()
                while (await status(owner)).sessions == 257:
                    pass
                await raw.session(devices[16], "in")


class Large(WireModel):
    """Nearly as large as a page may be."""

    text: str = "x" * 250_000
    more: str = "y" * 250_000


async def test_devices_that_take_nothing_hold_so_much_together_and_the_rest_is_answered(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.app_servers.reads.UNSENT_ALL", SOME_ANSWERS)
    bench, all_asked = Bench(nursery, sessions=CROWD + 1), trio.Event()

    async def read(_call: Call, _params: Any) -> WireModel:
        await all_asked.wait()
        return Large()

    async def connect(name: str, *, lame: bool) -> Peer:
        streams = trio.testing.lockstep_stream_pair() if lame else None
        rights = make_rights(device_id=name.ljust(16, "0"))
        return await bench.connect(rights, streams=streams)

    def held() -> int:
        return sum(bench.edge.reads.unsent(one.device_id) for one in bench.table)

    bench.handlers["thread/read"] = read
    with trio.fail_after(240):
        crowd = [await connect(f"{number:02}", lame=True) for number in range(CROWD)]
        for peer in crowd:
            for _ in range(16):
                await peer.ask("thread/read", {"threadId": "t"})
        all_asked.set()
        await trio.testing.wait_all_tasks_blocked()
        # A read that had begun, and one of each that had nothing yet.
        most = SOME_ANSWERS + (READS_AT_ONCE + len(crowd)) * 512 * 1024
        assert SOME_ANSWERS < held() <= most < CROWD * UNSENT_A_DEVICE
        honest = await connect("ff", lame=False)
        for _ in range(5):
            assert "result" in await honest.call("thread/read", {"threadId": "t"})
        assert held() <= most
        for peer in crowd:
            for _ in range(16):
                assert "result" in await peer.receive()
        await trio.testing.wait_all_tasks_blocked()
        assert held() == 0
