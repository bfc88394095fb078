"""Steering, queueing and what goes with a turn, on real codex through a whole Agent."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from clients.cli.scripted_answers import Rule
from tests.support.codex import (
    CodexHome,
    each_version,
    open_codex_home,
)
from tests.support.door import DESKTOP, FakeWatch
from tests.support.real_agent import (
    lock_files,
    open_local,
    open_real_agent,
    send_params,
)
from transport.client import Client, EventSeen, Resumed
from transport.errors import CodexUnavailable, Conflict
from transport.protocol import background, goals, queue, threads, turns
from transport.protocol import methods as rows
from transport.protocol.events import Notice
from transport.protocol.gateway import GatewayStatusParams
from transport.protocol.goals import GoalStatus
from transport.protocol.items import Command, UserMessage
from transport.protocol.turns import InputPart, TextInput, Turn, TurnStatus

pytestmark = pytest.mark.codex
STATUS = GatewayStatusParams()
OVER = (TurnStatus.COMPLETED, TurnStatus.INTERRUPTED, TurnStatus.FAILED)


def command(seconds: int, yield_ms: int = 30_000) -> dict[str, object]:
    args = {"cmd": f"sleep {seconds}; echo over", "yield_time_ms": yield_ms}
    return {"call": "exec_command", "args": args}


RULES = (
    Rule("short sleep", [[command(2)]]),
    Rule("long sleep", [[command(600)]]),
    Rule("left behind", [[command(600, 500)], [{"msg": "it runs on"}]]),
    Rule("wait for me", [[{"hold": "me"}, {"msg": "thanks"}]]),
)


def words(text: str) -> list[InputPart]:
    return [TextInput(type="text", text=text)]


async def new_thread(client: Client, home: CodexHome) -> str:
    params = threads.ThreadStartParams(
        cwd=str(home.workspace), input=words("hello"), request_key="n" * 32
    )
    started = await client.call(rows.THREAD_START, params, timeout_s=60)
    await ended(client, started.thread.id, 1)
    return started.thread.id


@asynccontextmanager
async def open_thread(
    version: str, watch: FakeWatch | None = None
) -> AsyncGenerator[tuple[CodexHome, Client, str]]:
    """A whole Agent on a real codex, its owner's client, and a thread with one turn."""
    async with (
        open_codex_home(*RULES) as home,
        open_real_agent(home, version=version, watch=watch or FakeWatch()) as house,
        open_local(house) as client,
    ):
        yield home, client, await new_thread(client, home)


async def ended(client: Client, thread_id: str, count: int) -> list[Turn]:
    """Return the turns, oldest first, when there are so many and the last one ended."""
    while True:
        params = threads.ThreadReadParams(thread_id=thread_id)
        read = await client.call(rows.THREAD_READ, params)
        last = read.turns[0] if read.turns else None
        if len(read.turns) >= count and last and last.status in OVER:
            return read.turns[::-1]
        await trio.sleep(0.05)


async def command_runs(client: Client, thread_id: str) -> None:
    while True:
        params = threads.ThreadReadParams(thread_id=thread_id)
        turn = (await client.call(rows.THREAD_READ, params)).turns[0]
        if any(isinstance(one, Command) for one in turn.items or ()):
            return
        await trio.sleep(0.05)


def messages(turn: Turn) -> list[str]:
    return [one.text for one in turn.items or () if isinstance(one, UserMessage)]


async def start(client: Client, thread_id: str, text: str, **more: Any) -> Turn:
    params = send_params(thread_id, text, key=text.replace(" ", "-"), **more)
    return (await client.call(rows.TURN_START, params, timeout_s=60)).sent


async def waiting(client: Client) -> Sequence[queue.QueuedMessage]:
    return (await client.call(rows.QUEUE_LIST, queue.QueueListParams())).queue


def steer(thread_id: str, turn_id: str, text: str) -> turns.TurnSteerParams:
    return turns.TurnSteerParams(
        thread_id=thread_id,
        turn_id=turn_id,
        input=words(text),
        request_key=text.replace(" ", "-").ljust(32, "-"),
    )


@each_version
async def test_the_model_sees_a_steered_message_in_the_same_turn(version: str) -> None:
    with trio.fail_after(240):
        async with open_thread(version) as (home, client, thread_id):
            turn = await start(client, thread_id, "short sleep")
            params = steer(thread_id, turn.id, "and be brief")
            result = await client.call(rows.TURN_STEER, params, timeout_s=60)
            assert result.turn.id == turn.id
            assert result.pending is None
            last = (await ended(client, thread_id, 2))[-1]
            assert messages(last) == ["short sleep", "and be brief"]
            assert home.model.requests[-1].user_texts[-1] == "and be brief"
            with pytest.raises(Conflict):
                late = steer(thread_id, turn.id, "too late for this")
                await client.call(rows.TURN_STEER, late)


@each_version
async def test_a_steer_that_the_model_never_took_is_told(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapter.servers.steering.PROOF_S", 0.5)
    with trio.fail_after(240):
        async with open_thread(version) as (_, client, thread_id):
            turn = await start(client, thread_id, "long sleep")
            await command_runs(client, thread_id)
            params = steer(thread_id, turn.id, "never taken")
            result = await client.call(rows.TURN_STEER, params, timeout_s=60)
            assert result.pending is True
            async with client.subscribe("all", deltas=False) as events:
                async for event in events:
                    if isinstance(event, Resumed):
                        break
                stop = turns.TurnInterruptParams(
                    thread_id=thread_id,
                    turn_id=turn.id,
                    background=True,
                    request_key="i" * 32,
                )
                await client.call(rows.TURN_INTERRUPT, stop, timeout_s=60)
                async for event in events:
                    match event:
                        case EventSeen(data=Notice(code="steerLost")):
                            break
                        case _:
                            pass
            left = background.BackgroundListParams(thread_id=thread_id)
            assert (await client.call(rows.BACKGROUND_LIST, left)).commands == []


@each_version
async def test_a_queued_message_goes_when_the_turn_ends_and_when_the_desktop_closes(
    version: str,
) -> None:
    watch = FakeWatch()
    with trio.fail_after(240):
        async with open_thread(version, watch) as (home, client, thread_id):
            turn = await start(client, thread_id, "wait for me")
            params = send_params(thread_id, "then this", key="q1", delivery="queue")
            first = await client.call(rows.TURN_START, params)
            assert first.delivery == "queued"
            (row,) = await waiting(client)
            assert row.preview == "then this"
            home.model.release("me")
            after = await ended(client, thread_id, 3)
            assert [one.id for one in after].index(turn.id) == 1
            assert messages(after[2]) == ["then this"]
            assert await waiting(client) == []

            watch.foreign.append(DESKTOP)
            await client.call(
                rows.TURN_START,
                send_params(thread_id, "when it is shut", key="q2", delivery="queue"),
            )
            await trio.sleep(2)
            assert len(await waiting(client)) == 1
            watch.foreign.clear()
            while (await client.call(rows.GATEWAY_STATUS, STATUS)).gate.reason:
                await trio.sleep(0.1)
                with pytest.raises((Conflict, CodexUnavailable)):  # it looks anew
                    await client.call(rows.TURN_STEER, steer(thread_id, "x", "look"))
            after = await ended(client, thread_id, 4)
            assert messages(after[3]) == ["when it is shut"]


@each_version
async def test_a_queued_message_survives_a_restart_of_the_agent(version: str) -> None:
    with trio.fail_after(240):
        async with open_codex_home(*RULES) as home:
            shut = FakeWatch()
            async with (
                open_real_agent(home, version=version, watch=shut) as house,
                open_local(house) as client,
            ):
                thread_id = await new_thread(client, home)
                shut.foreign.append(DESKTOP)
                params = send_params(thread_id, "later", key="q", delivery="queue")
                await client.call(rows.TURN_START, params)
            before = len(home.model.requests)
            async with (
                open_real_agent(home, version=version, watch=FakeWatch()) as house,
                open_local(house) as client,
            ):
                turn = (await ended(client, thread_id, 2))[-1]
                assert messages(turn) == ["later"]
                assert len(home.model.requests) == before + 1


@each_version
async def test_what_goes_with_a_turn_is_sticky_and_shown(version: str) -> None:
    with trio.fail_after(240):
        async with open_thread(version) as (home, client, thread_id):
            folder = home.workspace / "sub"
            folder.mkdir()
            schema = {"type": "object", "properties": {"a": {"type": "string"}}}
            await start(
                client,
                thread_id,
                "with all",
                model="gpt-5.4",
                effort="low",
                mode="plan",
                cwd=str(folder),
                output_schema=schema,
            )
            await ended(client, thread_id, 2)
            body = home.model.requests[-1].body
            assert body["model"] == "gpt-5.4"
            assert body["reasoning"]["effort"] == "low"
            assert body["text"]["format"]["schema"] == schema
            read = await client.call(
                rows.THREAD_READ, threads.ThreadReadParams(thread_id=thread_id)
            )
            shown = read.thread.settings
            assert shown is not None
            assert (shown.model, shown.effort, shown.mode, shown.cwd) == (
                "gpt-5.4",
                "low",
                "plan",
                str(folder),
            )
            await start(client, thread_id, "and again")
            await ended(client, thread_id, 3)
            body = home.model.requests[-1].body
            assert body["model"] == "gpt-5.4"
            assert "format" not in body.get("text", {})
            changed = await client.call(
                rows.THREAD_SETTINGS,
                threads.ThreadSettingsParams(
                    thread_id=thread_id,
                    mode="default",
                    effort="high",
                    sandbox="read-only",
                    approval_policy="untrusted",
                    request_key="t" * 32,
                ),
                timeout_s=60,
            )
            now = changed.thread.settings
            assert now is not None
            assert (now.model, now.effort, now.mode) == ("gpt-5.4", "high", "default")
            assert (now.sandbox, now.approval_policy) == ("read-only", "untrusted")


@each_version
async def test_background_commands_are_listed_and_ended(version: str) -> None:
    with trio.fail_after(240):
        async with open_thread(version) as (_, client, thread_id):
            await start(client, thread_id, "left behind")
            await ended(client, thread_id, 2)
            asked = background.BackgroundListParams(thread_id=thread_id)
            (one,) = (await client.call(rows.BACKGROUND_LIST, asked)).commands
            assert "sleep 600" in one.command
            assert one.started_at is not None
            stop = background.BackgroundStopParams(
                thread_id=thread_id, item_id=one.item_id, request_key="b" * 32
            )
            await client.call(rows.BACKGROUND_STOP, stop, timeout_s=60)
            assert (await client.call(rows.BACKGROUND_LIST, asked)).commands == []


@each_version
async def test_a_goal_is_set_paused_and_cleared(version: str) -> None:
    with trio.fail_after(240):
        async with (
            open_codex_home(*RULES) as home,
            open_real_agent(
                home, version=version, watch=FakeWatch(), idle_s=1.0
            ) as house,
            open_local(house) as client,
        ):
            thread_id = await new_thread(client, home)
            asked = goals.GoalGetParams(thread_id=thread_id)
            assert (await client.call(rows.GOAL_GET, asked)).goal is None
            wish = goals.GoalSetParams(
                thread_id=thread_id, objective="all green", request_key="g" * 32
            )
            goal = (await client.call(rows.GOAL_SET, wish, timeout_s=60)).goal
            assert goal is not None
            assert goal.status is GoalStatus.ACTIVE
            while len(home.model.requests) < 3:  # noqa: ASYNC110 - the model is in this process, but tells nobody
                await trio.sleep(0.05)  # turns come by themselves
            pause = goals.GoalPauseParams(thread_id=thread_id, request_key="p" * 32)
            goal = (await client.call(rows.GOAL_PAUSE, pause, timeout_s=60)).goal
            assert goal is not None
            assert goal.status is GoalStatus.PAUSED
            while lock_files(home.home):  # noqa: ASYNC110 - nothing tells of a lock
                await trio.sleep(0.1)  # a paused goal holds no lease
            clear = goals.GoalClearParams(thread_id=thread_id, request_key="c" * 32)
            assert (await client.call(rows.GOAL_CLEAR, clear)).goal is None
            assert (await client.call(rows.GOAL_GET, asked)).goal is None


@each_version
async def test_a_goal_is_paused_and_its_thread_given_back_when_a_desktop_opens(
    version: str,
) -> None:
    watch = FakeWatch()
    with trio.fail_after(240):
        async with open_thread(version, watch) as (home, client, thread_id):
            wish = goals.GoalSetParams(
                thread_id=thread_id, objective="all green", request_key="g" * 32
            )
            await client.call(rows.GOAL_SET, wish, timeout_s=60)
            while len(home.model.requests) < 3:  # noqa: ASYNC110 - the model is in this process, but tells nobody
                await trio.sleep(0.05)
            watch.foreign.append(DESKTOP)
            with pytest.raises((Conflict, CodexUnavailable)):  # it looks
                await client.call(rows.TURN_STEER, steer(thread_id, "x", "look"))
            while lock_files(home.home):  # noqa: ASYNC110 - nothing tells of a lock
                await trio.sleep(0.1)
            asked = goals.GoalGetParams(thread_id=thread_id)
            goal = (await client.call(rows.GOAL_GET, asked)).goal
            assert goal is not None
            assert goal.status is GoalStatus.PAUSED
