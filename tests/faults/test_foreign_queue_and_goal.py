"""Another program fills Codex's own queue of a thread, or gives it a goal.

Both begin turns by themselves, in whatever process has the thread loaded: also in a
writer of ours, and just when that ends or a message of ours comes.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from clients.cli.scripted_model import Rule
from tests.support.codex import (
    BUNDLED,
    CodexHome,
    codex_binaries,
    locking_versions,
    open_codex_home,
)
from tests.support.foreign import ForeignCodex, open_foreign
from tests.support.other_codexes import GIVEN_BACK_S, open_desktop
from tests.support.real_agent import (
    open_local,
    open_real_agent,
    send_params,
    send_to_end,
    wait_gate,
    wait_lease,
)
from transport.client import Client, ClientEvent, EventSeen, Resumed
from transport.errors import Conflict
from transport.protocol.events import TurnCompleted
from transport.protocol.gateway import GatePosition, LeaseState
from transport.protocol.methods import TURN_START
from transport.protocol.turns import TurnStatus

pytestmark = pytest.mark.codex
QUEUEING = [  # 0.147 has no queue to list
    BUNDLED,
    *(
        pytest.param(version, marks=pytest.mark.long)
        for version in locking_versions()[-1:]
        if version != BUNDLED
    ),
]
HELD = Rule("ours", [[{"partial": "words"}, {"hold": "ours"}]])
HELD_TOO = Rule("queued", [[{"partial": "words"}, {"hold": "queued"}]])


async def queue(foreign: ForeignCodex, thread: str, text: str) -> None:
    given = [{"type": "text", "text": text}]
    params = {"threadId": thread, "input": given, "clientUserMessageId": f"id {text}"}
    await foreign.request("thread/queue/add", params)


async def queued(foreign: ForeignCodex, thread: str) -> list[str]:
    answer = await foreign.request("thread/queue/list", {"threadId": thread})
    return [row["input"][0]["text"] for row in answer["data"]]


async def turns(foreign: ForeignCodex, thread: str) -> dict[str, str]:
    """What was said, with its turn's status, oldest first."""
    params = {"threadId": thread, "sortDirection": "asc"}
    answer = await foreign.request("thread/turns/list", params)
    return {
        item["content"][0]["text"]: turn["status"]
        for turn in answer["data"]
        for item in turn["items"]
        if item["type"] == "userMessage"
    }


def ended(event: ClientEvent) -> bool:
    return isinstance(event, EventSeen) and isinstance(event.data, TurnCompleted)


@asynccontextmanager
async def open_both(
    version: str, *rules: Rule
) -> AsyncGenerator[tuple[CodexHome, Client, ForeignCodex, str]]:
    """An Agent and another codex on one home; a thread that nobody has loaded."""
    codex = codex_binaries()[version]
    async with open_codex_home(*rules) as home:
        async with open_foreign(codex, home.environ) as first:
            thread = await first.start_thread(home.workspace, "theirs")
        async with (
            open_real_agent(home, version=version) as house,
            open_local(house) as client,
            open_foreign(codex, home.environ) as foreign,
        ):
            yield home, client, foreign, thread


@pytest.mark.parametrize("version", QUEUEING)
async def test_what_others_queued_is_answered_before_our_writer_gives_the_thread_back(
    version: str, tmp_path: Path
) -> None:
    """Codex takes the next message some ms after a turn: a process that ends in that
    moment would have taken it, and nobody would answer it."""
    with trio.fail_after(240):
        async with open_both(version, HELD) as (home, client, foreign, thread):
            params = send_params(thread, "ours", key="ours")
            await client.call(TURN_START, params, timeout_s=60)
            await home.model.wait_held("ours")
            await queue(foreign, thread, "queued one")
            await queue(foreign, thread, "queued two")
            async with open_desktop(home, tmp_path):
                await wait_gate(client, GatePosition.READ_ONLY)
                home.model.release("ours")
                with trio.fail_after(GIVEN_BACK_S):
                    await wait_lease(client, thread, LeaseState.NONE)
                assert await turns(foreign, thread) == dict.fromkeys(
                    ["theirs", "ours", "queued one", "queued two"], "completed"
                )
                assert await queued(foreign, thread) == []
                await foreign.resume(thread)
                await foreign.turn(thread, "theirs again")
                assert "You said: queued two" in home.model.requests[-1].texts


@pytest.mark.parametrize("version", QUEUEING)
async def test_a_message_that_comes_as_a_queued_one_begins_goes_into_no_other_turn(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with open_both(version, HELD, HELD_TOO) as (
            home,
            client,
            foreign,
            thread,
        ):
            async with client.subscribe("all", deltas=False) as events:
                async for event in events:
                    if isinstance(event, Resumed):
                        params = send_params(thread, "ours", key="ours")
                        await client.call(TURN_START, params, timeout_s=60)
                        await home.model.wait_held("ours")
                        await queue(foreign, thread, "queued")
                        home.model.release("ours")
                    if ended(event):
                        break
            with pytest.raises(Conflict) as refusal:
                await client.call(TURN_START, send_params(thread, "mine", key="mine"))
            assert refusal.value.data["what"] == "running"
            await home.model.wait_held("queued")
            assert "mine" not in home.model.requests[-1].user_texts
            home.model.release("queued")
            while (await turns(foreign, thread)).get("queued") != "completed":
                pass  # each is a round trip
            turn = await send_to_end(client, thread, "mine", key="mine")
            assert turn.status is TurnStatus.COMPLETED
            assert home.model.requests[-1].user_texts[-1] == "mine"


@pytest.mark.parametrize("version", QUEUEING)
async def test_what_others_queued_is_a_conflict_and_stays_theirs_until_it_is_wanted(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with open_both(version, HELD_TOO) as (home, client, foreign, thread):
            await queue(foreign, thread, "queued")
            asked = len(home.model.requests)
            with pytest.raises(Conflict) as refusal:
                params = send_params(thread, "mine", key="mine")
                await client.call(TURN_START, params)
            assert refusal.value.data["queue"] == ["queued"]
            assert await queued(foreign, thread) == ["queued"]
            assert len(home.model.requests) == asked
            wanted = send_params(thread, "mine", key="now", allow_pending=True)
            with pytest.raises(Conflict) as refusal:  # theirs goes first, alone
                await client.call(TURN_START, wanted, timeout_s=60)
            assert refusal.value.data["what"] == "running"
            home.model.release("queued")
            while (await turns(foreign, thread)).get("queued") != "completed":
                pass  # each is a round trip
            await send_to_end(client, thread, "mine", key="later")
            assert await turns(foreign, thread) == dict.fromkeys(
                ["theirs", "queued", "mine"], "completed"
            )


@pytest.mark.parametrize("version", QUEUEING)
async def test_a_goal_that_others_set_under_our_writer_does_not_keep_the_thread(
    version: str, tmp_path: Path
) -> None:
    with trio.fail_after(240):
        async with open_both(version, HELD) as (home, client, foreign, thread):
            params = send_params(thread, "ours", key="ours")
            await client.call(TURN_START, params, timeout_s=60)
            await home.model.wait_held("ours")
            goal = {"threadId": thread, "objective": "go on for ever"}
            await foreign.request("thread/goal/set", goal)
            home.model.release("ours")
            while len(home.model.requests) < 4:
                await trio.lowlevel.checkpoint()  # its turns begin by themselves
            async with open_desktop(home, tmp_path):
                await wait_gate(client, GatePosition.READ_ONLY)
                with trio.fail_after(GIVEN_BACK_S):
                    await wait_lease(client, thread, LeaseState.NONE)
                answer = await foreign.request("thread/goal/get", {"threadId": thread})
                assert answer["goal"]["status"] == "paused"
                await foreign.resume(thread)
                await foreign.turn(thread, "theirs again")
