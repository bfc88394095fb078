"""A paired device that tries to get at more than it was given.

Each runs a whole Agent on real sockets; its runtime is played by the test.
"""

from pathlib import Path
from typing import Any

import pytest
import trio

from adapter.errors import CodexRefusedError
from tests.support.agents import Device, House, open_agent, open_owner, pair_device
from tests.support.edge import Peer
from tests.support.raw_devices import open_peer
from transport.client import Client
from transport.protocol import admin, turns
from transport.protocol.methods import DEVICE_GRANT, TURN_START

START: dict[str, Any] = {
    "input": [{"type": "text", "text": "x"}],
    "requestKey": "k" * 16,
}


@pytest.fixture
def rooms(tmp_path: Path) -> tuple[Path, Path]:
    """Return the device's own folder and one that is not for it."""
    mine, other = tmp_path / "mine", tmp_path / "other"
    mine.mkdir()
    other.mkdir()
    return mine, other


async def grant(owner: Client, device: Device, **named: Any) -> None:
    params = admin.DeviceGrantParams(device_id=device.id, **named)
    await owner.call(DEVICE_GRANT, params)


def hold(house: House, step: str) -> tuple[trio.Event, trio.Event]:
    """Stop the runtime at a step; return `reached` and `go_on`."""
    reached, go_on = trio.Event(), trio.Event()

    async def wait() -> None:
        reached.set()
        await go_on.wait()

    house.runtime.at(step, wait)
    return reached, go_on


async def listed(peer: Peer, **params: object) -> dict[str, Any]:
    result: dict[str, Any] = (await peer.call("thread/list", params))["result"]
    return result


# folders


@pytest.mark.parametrize(
    "tail",
    ["\0", "x\0/..", "a" * 300, "a/" * 1_500, "../other", "link", "loop", "file"],
)
async def test_a_folder_that_cannot_be_used_is_refused_and_is_no_fault_of_ours(
    tmp_path: Path, rooms: tuple[Path, Path], tail: str
) -> None:
    mine, other = rooms
    (mine / "link").symlink_to(other)
    (mine / "loop").symlink_to(mine / "loop")
    (mine / "file").touch()
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            device = await pair_device(house, only=[mine], scopes=["read", "write"])
            async with open_peer(house, device) as peer:
                answer = await peer.call(
                    "thread/start", {**START, "cwd": f"{mine}/{tail}"}
                )
            assert answer["error"]["code"] in {"invalidParams", "forbidden"}
            assert house.runtime.writers == []


@pytest.mark.parametrize("sibling", ["mine2", "min", "mine/../other"])
async def test_a_folder_whose_name_begins_like_a_root_is_outside_of_it(
    tmp_path: Path, rooms: tuple[Path, Path], sibling: str
) -> None:
    (tmp_path / "mine2").mkdir()
    (tmp_path / "min").mkdir()
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            device = await pair_device(house, only=[rooms[0]], scopes=["read", "write"])
            async with open_peer(house, device) as peer:
                params = {**START, "cwd": str(tmp_path / sibling)}
                answer = await peer.call("thread/start", params)
            assert answer["error"]["code"] == "forbidden"
            assert house.runtime.writers == []


async def test_a_folder_swapped_for_a_link_between_check_and_use_starts_no_turn(
    tmp_path: Path, rooms: tuple[Path, Path]
) -> None:
    mine, other = rooms
    (mine / "sub").mkdir()

    def swap() -> None:
        (mine / "sub").rmdir()
        (mine / "sub").symlink_to(other)

    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            device = await pair_device(house, only=[mine], scopes=["read", "write"])
            house.runtime.at("start_thread", swap)
            async with open_peer(house, device) as peer:
                params = {**START, "cwd": str(mine / "sub")}
                answer = await peer.call("thread/start", params)
            assert answer["error"]["code"] == "forbidden"
            assert "start_turn" not in house.runtime.log
            assert house.runtime.live == []


# hidden threads


async def test_no_page_tells_that_there_are_threads_which_are_not_for_the_device(
    tmp_path: Path, rooms: tuple[Path, Path]
) -> None:
    mine, other = rooms
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            device = await pair_device(house, only=[mine])
            for number in range(130):
                house.runtime.add(f"hid_{number}", cwd=str(other))
            async with open_peer(house, device) as peer:
                for limit in (1, 2, 100):
                    page = await listed(peer, limit=limit)
                    assert page["threads"] == []
                    assert "nextCursor" not in page, "a hole in the list"


async def test_threads_between_hidden_ones_come_in_full_pages_each_once(
    tmp_path: Path, rooms: tuple[Path, Path]
) -> None:
    mine, other = rooms
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            device = await pair_device(house, only=[mine])
            for number in range(130):
                ours = number in {3, 40, 41, 99, 100, 128}
                house.runtime.add(f"t_{number}", cwd=str(mine if ours else other))
            async with open_peer(house, device) as peer:
                pages: list[list[str]] = []
                more: dict[str, str] = {}
                while True:
                    page = await listed(peer, limit=2, **more)
                    pages.append([row["id"] for row in page["threads"]])
                    if "nextCursor" not in page:
                        break
                    more = {"cursor": page["nextCursor"]}
            assert pages == [["t_3", "t_40"], ["t_41", "t_99"], ["t_100", "t_128"]]


async def test_what_codex_says_of_a_damaged_thread_is_not_told_to_who_may_not_see_it(
    tmp_path: Path, rooms: tuple[Path, Path]
) -> None:
    mine, other = rooms

    def damaged() -> None:
        raise CodexRefusedError("thread/read", -32603, f"bad rollout in {other}")

    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            house.runtime.add("hidden", "t1", cwd=str(other))
            house.runtime.add("seen", "t2", cwd=str(mine))
            device = await pair_device(house, only=[mine])
            async with open_peer(house, device) as peer:
                await listed(peer)
                codes: list[str] = []
                for thread_id in ("hidden", "absent", "seen"):
                    house.runtime.at("read_thread", damaged)
                    answer = await peer.call("thread/read", {"threadId": thread_id})
                    codes.append(answer["error"]["code"])
            assert codes == ["notFound", "notFound", "runtimeError"]


# rights that are taken away while a request is under way


async def test_a_subscription_is_not_begun_with_a_scope_that_was_just_taken_away(
    tmp_path: Path, rooms: tuple[Path, Path]
) -> None:
    mine, _ = rooms
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            house.runtime.add("thr_1", "t1", cwd=str(mine))
            device = await pair_device(house, only=[mine], scopes=["read", "write"])
            reached, go_on = hold(house, "read_thread")
            async with open_peer(house, device) as peer:
                number = await peer.ask("events/subscribe", {"threads": ["thr_1"]})
                await reached.wait()
                await grant(owner, device, scopes=["write"])
                go_on.set()
                assert (await peer.answer(number))["error"]["code"] == "forbidden"
                start = {**START, "threadId": "thr_1"}
                assert "result" in await peer.call("turn/start", start)
                house.runtime.writers[0].say("a secret plan")
                await peer.send({"ping": 1})
                while (await peer.receive()).get("pong") is None:
                    pass
                assert not any("seq" in frame for frame in peer.others)


async def test_an_answer_that_was_read_with_wider_rights_is_not_given(
    tmp_path: Path, rooms: tuple[Path, Path]
) -> None:
    mine, other = rooms
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            house.runtime.add("thr_1", "t1", cwd=str(other))
            device = await pair_device(house, only=[mine, other])
            async with open_peer(house, device) as peer:
                for method in ("thread/read", "turn/list"):
                    await grant(owner, device, roots=[str(mine), str(other)])
                    reached, go_on = hold(house, "list_turns")
                    number = await peer.ask(method, {"threadId": "thr_1"})
                    await reached.wait()
                    await grant(owner, device, roots=[str(mine)])
                    go_on.set()
                    answer = await peer.answer(number)
                    assert answer["error"]["code"] == "forbidden"
                    assert "question of t1" not in str([answer, *peer.others])


async def test_who_is_busy_is_told_only_of_threads_that_are_for_the_device(
    tmp_path: Path, rooms: tuple[Path, Path]
) -> None:
    mine, other = rooms
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            for number, cwd in enumerate((other, other, other, mine, mine)):
                house.runtime.add(f"thr_{number}", "t1", cwd=str(cwd))
            scopes = ["read", "write"]
            device = await pair_device(house, only=[mine], scopes=scopes)
            neighbour = await pair_device(house, only=[other], scopes=scopes)
            async with open_peer(house, device) as peer:
                async with open_peer(house, neighbour) as beside:
                    for number, one in enumerate((beside, beside, beside, peer)):
                        params = {
                            **START,
                            "threadId": f"thr_{number}",
                            "requestKey": f"k{number:016d}",
                        }
                        assert "result" in await one.call("turn/start", params)
                answer = await peer.call("turn/start", {**START, "threadId": "thr_4"})
                error = answer["error"]
                assert error["code"] == "overloaded"
                assert error["data"] == {"limit": 4, "threads": ["thr_3"]}


async def test_an_approval_of_a_hidden_thread_is_as_if_it_were_not_there(
    tmp_path: Path, rooms: tuple[Path, Path]
) -> None:
    mine, other = rooms
    scopes = ["read", "write", "approve", "approve.session"]
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            house.runtime.add("hidden", "t1", cwd=str(other))
            device = await pair_device(house, only=[mine], scopes=scopes)
            text: turns.TurnInput = [turns.TextInput(type="text", text="x")]
            params = turns.TurnStartParams(
                thread_id="hidden", input=text, request_key="k" * 16
            )
            await owner.call(TURN_START, params)
            asked = house.runtime.writers[0].ask()
            async with open_peer(house, device) as peer:
                for shown in ({}, {"threadId": "hidden"}):
                    page = (await peer.call("approval/list", shown))["result"]
                    assert page["approvals"] == []
                answers = [
                    await peer.call(
                        "approval/answer",
                        {"approvalId": name, "digest": asked.digest, "choice": choice},
                    )
                    for name in (asked.id, "apr_guessed")
                    for choice in ("accept", "decline", "what")
                ]
                told = {
                    str(one["error"]).replace(asked.id, "apr_guessed")
                    for one in answers
                }
                assert len(told) == 1, "no oracle"
            assert "answer" not in house.runtime.log
            assert house.runtime.writers[0].approvals() == [asked]


@pytest.mark.parametrize("again", ["approval/answer", "turn/start"])
async def test_what_one_device_did_is_not_repeated_or_taken_over_by_another(
    tmp_path: Path, rooms: tuple[Path, Path], again: str
) -> None:
    mine, _ = rooms
    scopes = ["read", "write", "approve"]
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            house.runtime.add("thr_1", "t1", cwd=str(mine))
            first = await pair_device(house, only=[mine], scopes=scopes)
            second = await pair_device(house, only=[mine], scopes=scopes)
            async with open_peer(house, first) as one, open_peer(house, second) as two:
                start = {**START, "threadId": "thr_1"}
                assert "result" in await one.call("turn/start", start)
                asked = house.runtime.writers[0].ask()
                yes = {"approvalId": asked.id, "digest": asked.digest}
                yes["choice"] = "accept"
                assert "result" in await one.call("approval/answer", yes)
                params = start if again == "turn/start" else yes
                assert "result" in await one.call(again, params), "the same answer"
                code = (await two.call(again, params))["error"]["code"]
                assert code == {"turn/start": "conflict"}.get(again, "approvalClosed")
            assert house.runtime.log.count("start_turn") == 1
            assert house.runtime.log.count("answer") == 1
