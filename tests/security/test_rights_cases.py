"""What a device may not do: acts outside its scopes, the owner's methods, Codex's own, other folders.

The numbers are those of
SECURITY.md's cases. A whole Agent on real sockets; its runtime is played by the test, so
that it can be shown that nothing reached it.
"""

from pathlib import Path
from typing import Any

import pytest
import trio

from tests.support.act_params import ACT_PARAMS, turn_params
from tests.support.agents import (
    client_info,
    open_agent,
    open_owner,
    pair_device,
)
from tests.support.raw_devices import open_peer
from transport.client import Client, open_client
from transport.errors import (
    Forbidden,
    Refusal,
)
from transport.protocol import admin
from transport.protocol.methods import (
    DEVICE_GRANT,
    METHODS,
    TURN_START,
    Access,
)

OWNERS_PARAMS: dict[str, dict[str, Any]] = {
    "device/grant": {"deviceId": "0" * 16, "scopes": ["write"]},
    "device/revoke": {"deviceId": "0" * 16},
    "pair/decide": {"accept": True, "check": "000000"},
}


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
                error = (await peer.call(name, ACT_PARAMS[name]))["error"]
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
                    ("turn/start", ACT_PARAMS["turn/start"]),
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


def test_every_act_has_params_here() -> None:
    acts = {n for n, r in METHODS.items() if r.access in (Access.WRITE, Access.APPROVE)}
    assert acts == set(ACT_PARAMS)
