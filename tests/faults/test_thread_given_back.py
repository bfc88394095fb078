"""However a turn of ours ends, its thread is free for another codex within its time.

And what Codex is known to do at such moments (a kill that hides a turn, a request to a
process that is ending, many starts on a fresh home, a read while somebody archives) costs
nobody anything.
"""

import os
import signal
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
import trio

from clients.cli.scripted_model import Rule
from tests.support.codex import (
    BUNDLED,
    codex_binaries,
    locking_versions,
    open_codex_home,
)
from tests.support.foreign import ForeignCodex, open_foreign
from tests.support.other_codexes import resume_when_free
from tests.support.real_agent import (
    open_local,
    open_real_agent,
    send_params,
    status,
    thread_ids,
)
from tests.support.served_agent import app_servers
from tests.support.stages import RULES, STAGES, Course, Running, approval_unanswered
from transport.client import Client, DeltaSeen, EventSeen, Resumed
from transport.errors import NotFound
from transport.protocol import admin, threads, turns
from transport.protocol.events import ThreadChanged, ThreadRemoved, TurnCompleted
from transport.protocol.gateway import LeaseState
from transport.protocol.methods import (
    GATEWAY_LOCK,
    THREAD_READ,
    THREAD_START,
    TURN_INTERRUPT,
    TURN_LIST,
    TURN_START,
)
from transport.protocol.turns import TextInput, TurnStatus

pytestmark = pytest.mark.codex
IDLE_S = 1
FLOOD = {"flood": 400_000, "size": 60}  # 24 MB, and as much again as JSON
APPROVAL_MS = 10_000  # the least that may be set


async def completed(course: Course, running: Running) -> None:
    await running.go_on()
    assert (await running.ended()).status is TurnStatus.COMPLETED


async def interrupted(course: Course, running: Running) -> None:
    read = threads.ThreadReadParams(thread_id=course.thread, turns=1)
    (turn,) = (await course.client.call(THREAD_READ, read)).turns
    params = turns.TurnInterruptParams(
        thread_id=course.thread, turn_id=turn.id, request_key="i" * 32
    )
    await course.client.call(TURN_INTERRUPT, params)


async def killed(course: Course, running: Running) -> None:
    os.kill(course.writer_pid(), signal.SIGKILL)
    assert (await running.ended()).status is TurnStatus.INTERRUPTED


async def locked(course: Course, running: Running) -> None:
    await course.client.call(GATEWAY_LOCK, admin.GatewayLockParams())
    await completed(course, running)


async def unanswered(course: Course, running: Running) -> None:
    await running.ended()  # the deadline says no


Way = Callable[[Course, Running], Awaitable[None]]
WAYS: dict[str, tuple[str, Way]] = {
    "its turn is completed": ("after turn/started", completed),
    "its turn is interrupted": ("mid-delta", interrupted),
    "its writer is killed": ("mid-delta", killed),
    "the owner locks the Agent": ("before turn/completed", locked),
    "nobody answers its question": ("approval unanswered", unanswered),
}


@pytest.mark.parametrize(
    "way",
    [
        "its writer is killed",
        *(
            pytest.param(way, marks=pytest.mark.long)
            for way in WAYS
            if way != "its writer is killed"
        ),
    ],
)
async def test_another_codex_has_the_thread_within_its_time(way: str) -> None:
    stages = {**STAGES, "approval unanswered": approval_unanswered}
    stage, end = WAYS[way]
    with trio.fail_after(240):
        async with open_codex_home(*RULES) as home:
            codex = codex_binaries()[BUNDLED]
            async with open_foreign(codex, home.environ) as first:
                thread = await first.start_thread(home.workspace, "theirs")
            async with (
                open_real_agent(home, idle_s=IDLE_S, approval_ms=APPROVAL_MS) as house,
                open_local(house) as client,
                open_foreign(codex, home.environ) as other,
            ):
                course = Course(
                    home=home,
                    client=client,
                    thread=thread,
                    others=frozenset(app_servers(os.getpid())),
                )
                async with stages[stage](course) as running:
                    await end(course, running)
                    await resume_when_free(other, thread)
                    await other.turn(thread, "theirs again")
                    said = home.model.requests[-1].user_texts
                    assert running.text in said
                    assert (await status(client)).leases == []


async def interrupts(client: Client, turn: turns.Turn) -> None:
    params = turns.TurnInterruptParams(
        thread_id=turn.thread_id, turn_id=turn.id, request_key="i" * 32
    )
    await client.call(TURN_INTERRUPT, params)


async def leaves(client: Client, turn: turns.Turn) -> None:
    """Then the block is left, and the Agent with it."""


@pytest.mark.parametrize("end", [interrupts, leaves])
async def test_a_writer_that_talks_without_pause_gives_the_thread_back(
    end: Callable[[Client, turns.Turn], Awaitable[None]],
) -> None:
    """A codex whose output nobody reads does not end with its input."""
    with trio.fail_after(240):
        async with (
            open_codex_home(Rule("for ever", [[FLOOD], [{"msg": "done"}]])) as home,
            open_foreign(codex_binaries()[BUNDLED], home.environ) as other,
        ):
            async with (
                open_real_agent(home, idle_s=IDLE_S) as house,
                open_local(house) as client,
                client.subscribe("all") as events,
            ):
                params = start(str(home.workspace), 0, text="for ever")
                made = await client.call(THREAD_START, params, timeout_s=120)
                heard = 0
                async for event in events:
                    heard += isinstance(event, DeltaSeen)
                    if heard == 20:
                        break
                await end(client, made.turn)
            await resume_when_free(other, made.thread.id)


@pytest.mark.long
@pytest.mark.parametrize("version", locking_versions())
async def test_a_message_that_comes_while_the_thread_is_given_back_is_sent(
    version: str,
) -> None:
    """Never to the process that is ending: Codex would hang on it."""
    with trio.fail_after(240):
        async with (
            open_codex_home() as home,
            open_real_agent(home, version=version, idle_s=IDLE_S) as house,
            open_local(house) as client,
        ):
            new = await client.call(THREAD_START, start(str(home.workspace), 0))
            async with client.subscribe("all", deltas=False) as events:
                sent = 0
                running: str | None = new.turn.id
                async for event in events:
                    if is_end_of(event, running):
                        running = None
                    if running is None and is_releasing(event):
                        sent += 1
                        params = send_params(new.thread.id, f"{sent}", key=f"k{sent}")
                        result = await client.call(TURN_START, params, timeout_s=60)
                        running = result.sent.id
                    if sent == 3:
                        break
            read = threads.ThreadReadParams(thread_id=new.thread.id, turns=10)
            while True:
                ended = (await client.call(THREAD_READ, read)).turns
                if ended[0].status is not TurnStatus.IN_PROGRESS:
                    break
            assert [turn.status for turn in ended] == [TurnStatus.COMPLETED] * 4


def is_end_of(event: object, turn_id: str | None) -> bool:
    return (
        isinstance(event, EventSeen)
        and isinstance(event.data, TurnCompleted)
        and event.data.turn.id == turn_id
    )


def is_releasing(event: object) -> bool:
    return (
        isinstance(event, EventSeen)
        and isinstance(event.data, ThreadChanged)
        and event.data.thread.lease is LeaseState.RELEASING
    )


def start(cwd: str, number: int, *, text: str = "hello") -> threads.ThreadStartParams:
    return threads.ThreadStartParams(
        cwd=cwd,
        input=[TextInput(type="text", text=text)],
        request_key=f"start-{number}".ljust(32, "-"),
        wait_ms=20_000,  # another codex may just say its version
    )


@pytest.mark.long
@pytest.mark.parametrize("version", locking_versions())
async def test_on_a_fresh_home_many_starts_at_once_kill_no_process(
    version: str,
) -> None:
    """Processes of codex <= 0.163 that meet on an empty home die: the reader is first."""
    with trio.fail_after(240):
        async with (
            open_codex_home() as home,
            open_real_agent(home, version=version) as house,
            open_local(house) as client,
        ):
            made: set[str] = set()

            async def one(number: int) -> None:
                params = start(str(home.workspace), number)
                result = await client.call(THREAD_START, params, timeout_s=90)
                made.add(result.thread.id)

            async with trio.open_nursery() as nursery:
                for number in range(4):
                    nursery.start_soon(one, number)
            assert len(made) == 4
            while len(home.model.requests) < 4:
                await status(client)


def reason_of(event: EventSeen) -> list[str]:
    data = event.data
    return [data.reason] if isinstance(data, ThreadRemoved) else []


async def archive_and_back(foreign: ForeignCodex, thread: str, times: int) -> None:
    for _ in range(times):
        await foreign.request("thread/archive", {"threadId": thread})
        await foreign.request("thread/unarchive", {"threadId": thread})


async def keep_reading(client: Client, thread: str, reads: list[int]) -> None:
    while True:
        read = threads.ThreadReadParams(thread_id=thread)
        assert (await client.call(THREAD_READ, read)).thread.id == thread
        page = await client.call(TURN_LIST, turns.TurnListParams(thread_id=thread))
        assert len(page.turns) == 1
        reads.append(1)


@pytest.mark.long
@pytest.mark.parametrize("version", sorted({BUNDLED, locking_versions()[-1]}))
async def test_a_thread_that_is_archived_and_brought_back_is_never_called_deleted(
    version: str,
) -> None:
    codex = codex_binaries()[version]
    with trio.fail_after(240):
        async with (
            open_codex_home() as home,
            open_foreign(codex, home.environ) as foreign,
            open_real_agent(home, version=version) as house,
            open_local(house) as client,
        ):
            thread = await foreign.start_thread(home.workspace, "theirs")
            await foreign.request("thread/unsubscribe", {"threadId": thread})
            removed: list[str] = []
            reads: list[int] = []

            async def listen(*, task_status: trio.TaskStatus[None]) -> None:
                async with client.subscribe([thread]) as events:
                    async for event in events:
                        if isinstance(event, Resumed):
                            task_status.started()
                        elif isinstance(event, EventSeen):
                            removed.extend(reason_of(event))

            async with trio.open_nursery() as nursery:
                await nursery.start(listen)
                nursery.start_soon(partial(keep_reading, client, thread, reads))
                await archive_and_back(foreign, thread, 40)
                while thread not in await thread_ids(client):
                    pass
                nursery.cancel_scope.cancel(reason="seen enough")
            assert reads
            assert set(removed) <= {"archived"}
            read = threads.ThreadReadParams(thread_id=thread)
            assert (await client.call(THREAD_READ, read)).turns
            with pytest.raises(NotFound):  # what is not there is still told
                other = threads.ThreadReadParams(thread_id="0" * 32)
                await client.call(THREAD_READ, other)
