"""A sub-agent of a real codex, as devices see it: under its root, question and all."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from clients.cli.scripted_answers import Rule
from tests.support.agents import client_info, open_owner, pair_device
from tests.support.codex import codex_binaries, each_version, open_codex_home
from tests.support.foreign import open_foreign
from tests.support.real_agent import open_real_agent, send_params
from transport.client import Client, EventSeen, Resumed, open_client
from transport.errors import NotFound
from transport.protocol import admin, approvals, threads
from transport.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    ThreadStarted,
    TurnCompleted,
)
from transport.protocol.methods import (
    APPROVAL_ANSWER,
    APPROVAL_LIST,
    DEVICE_REVOKE,
    THREAD_LIST,
    THREAD_READ,
    TURN_START,
)
from transport.protocol.threads import ThreadStatus
from transport.protocol.turns import TurnStatus

pytestmark = pytest.mark.codex


def call(name: str, namespace: str | None = None, **args: Any) -> dict[str, Any]:
    action: dict[str, Any] = {"call": name, "args": args}
    return action if namespace is None else {**action, "namespace": namespace}


ASKS = call(
    "exec_command",
    cmd="echo risen",
    sandbox_permissions="require_escalated",
    justification="the child wants it",
)
RULES = (
    Rule("Watch the dough.", [[ASKS], [{"msg": "It has risen."}]]),
    Rule(
        "Bake a loaf.",
        [
            [call("spawn_agent", "multi_agent_v1", message="Watch the dough.")],
            [{"hold": "root"}, {"msg": "The child watches."}],
        ],
    ),
)
WORKS_ON = (
    Rule("Knead the dough.", [[{"hold": "kid"}]]),
    Rule(
        "Bake on.",
        [
            [call("spawn_agent", "multi_agent_v1", message="Knead the dough.")],
            [{"msg": "The child kneads."}],
        ],
    ),
)


async def first(events: AsyncIterator[object], kind: type[Any]) -> EventSeen:
    """Return the next event whose data is of this kind."""
    async for event in events:
        if isinstance(event, EventSeen) and isinstance(event.data, kind):
            return event
    raise AssertionError("the subscription ended")


async def waiting(
    client: Client, thread_id: str | None = None
) -> list[approvals.Approval]:
    params = approvals.ApprovalListParams(thread_id=thread_id)
    return (await client.call(APPROVAL_LIST, params)).approvals


@each_version
async def test_a_sub_agent_asks_who_sees_its_root_and_nobody_else(version: str) -> None:
    with trio.fail_after(240):
        async with open_codex_home(*RULES) as home:
            async with open_foreign(codex_binaries()[version], home.environ) as other:
                root = await other.start_thread(home.workspace, "hello")
            elsewhere = home.home.parent / "elsewhere"
            elsewhere.mkdir()
            async with open_real_agent(home, version=version) as house:
                phone = await pair_device(
                    house,
                    scopes=("read", "write", "approve"),
                    only=[home.workspace],
                    name="phone",
                )
                blind = await pair_device(
                    house, scopes=("read", "approve"), only=[elsewhere], name="blind"
                )
                async with (
                    open_client(house.target(phone), client_info()) as client,
                    open_client(
                        house.target(blind), client_info("blind", "b" * 32)
                    ) as stranger,
                    client.subscribe([root], deltas=False) as events,
                ):
                    async for event in events:
                        if isinstance(event, Resumed):
                            break
                    send = send_params(root, "Bake a loaf.", key="b", wait_ms=60_000)
                    await client.call(TURN_START, send, timeout_s=90)
                    born = await first(events, ThreadStarted)
                    assert born.root_thread_id == root
                    seen = await first(events, ApprovalRequested)
                    assert isinstance(seen.data, ApprovalRequested)
                    asked = seen.data.approval
                    assert (asked.root_thread_id, seen.root_thread_id) == (root, root)
                    assert asked.thread_id == born.thread_id != root
                    assert asked.detail.reason == "the child wants it"
                    assert await waiting(client, thread_id=root) == [asked]
                    assert await waiting(client, thread_id=asked.thread_id) == [asked]
                    child = threads.ThreadReadParams(thread_id=asked.thread_id)
                    shown = (await client.call(THREAD_READ, child)).thread
                    assert shown.parent_id == root
                    assert shown.status is ThreadStatus.WAITING_ON_APPROVAL
                    assert shown.last_turn_id == asked.turn_id
                    below = threads.ThreadListParams(parent_id=root)
                    rows = (await client.call(THREAD_LIST, below)).threads
                    assert [(row.id, row.status) for row in rows] == [
                        (asked.thread_id, ThreadStatus.WAITING_ON_APPROVAL)
                    ]

                    yes = approvals.ApprovalAnswerParams(
                        approval_id=asked.id, digest=asked.digest, choice="allow"
                    )
                    assert await waiting(stranger) == []
                    with pytest.raises(NotFound):
                        await stranger.call(APPROVAL_ANSWER, yes)
                    with pytest.raises(NotFound):
                        await stranger.call(THREAD_READ, child)
                    await client.call(APPROVAL_ANSWER, yes, timeout_s=30)
                    await first(events, ApprovalResolved)
                    ended = await first(events, TurnCompleted)
                    assert ended.thread_id == asked.thread_id
                    read = await client.call(THREAD_READ, child)
                    texts = [item.wire() for item in read.turns[0].items or ()]
                    assert any(one.get("output") == "risen\n" for one in texts)
                    home.model.release("root")
                    ended = await first(events, TurnCompleted)
                    assert ended.thread_id == root


@each_version
async def test_a_sub_agent_that_works_on_alone_is_stopped_with_its_device(
    version: str,
) -> None:
    """The turn in which the device had it begin has ended by then."""
    with trio.fail_after(240):
        async with open_codex_home(*WORKS_ON) as home:
            async with open_foreign(codex_binaries()[version], home.environ) as other:
                root = await other.start_thread(home.workspace, "hello")
            async with open_real_agent(home, version=version) as house:
                device = await pair_device(
                    house, scopes=("read", "write"), only=[home.workspace]
                )
                async with (
                    open_owner(house) as owner,
                    owner.subscribe([root], deltas=False) as events,
                ):
                    async for event in events:
                        if isinstance(event, Resumed):
                            break
                    async with open_client(house.target(device), client_info()) as one:
                        send = send_params(root, "Bake on.", key="b", wait_ms=60_000)
                        await one.call(TURN_START, send, timeout_s=90)
                    await home.model.wait_held("kid")
                    assert (await first(events, TurnCompleted)).thread_id == root
                    put_out = admin.DeviceRevokeParams(device_id=device.id, stop=True)
                    await owner.call(DEVICE_REVOKE, put_out, timeout_s=110)
                    ended = (await first(events, TurnCompleted)).data
                    assert isinstance(ended, TurnCompleted)
                    assert ended.turn.thread_id != root
                    assert ended.turn.status is TurnStatus.INTERRUPTED
