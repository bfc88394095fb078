"""Somebody opens Codex desktop while a turn of ours runs, at each of its stages.

The turn is ours and runs to its end, whatever the desktop does meanwhile; nothing further
starts; and then the thread is theirs at once: another codex loads it, runs a turn in it,
and the model is sent what we had added.
"""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.support.codex import (
    BUNDLED,
    WITHOUT_LOCK,
    codex_binaries,
    locking_versions,
    open_codex_home,
)
from tests.support.foreign import ForeignCodex, open_foreign
from tests.support.other_codexes import open_desktop, resume_when_free
from tests.support.real_agent import (
    open_local,
    open_real_agent,
    status,
    wait_gate,
)
from tests.support.served_agent import app_servers
from tests.support.stages import RULES, STAGES, Course, Running
from transport.client import Client
from transport.errors import CodexUnavailable
from transport.protocol import threads
from transport.protocol.gateway import GatePosition
from transport.protocol.items import UserMessage
from transport.protocol.methods import THREAD_READ, THREAD_START
from transport.protocol.turns import TextInput, TurnStatus

pytestmark = pytest.mark.codex
NEWEST = locking_versions()[-1]


@asynccontextmanager
async def open_course(version: str) -> AsyncGenerator[tuple[Course, ForeignCodex]]:
    """An Agent beside another codex that has made a thread and let go of it."""
    codex = codex_binaries()[version]
    async with open_codex_home(*RULES) as home:
        async with open_foreign(codex, home.environ) as first:
            thread = await first.start_thread(home.workspace, "theirs")
        async with (
            open_real_agent(home, version=version) as house,
            open_local(house) as client,
            open_foreign(codex, home.environ) as other,
        ):
            others = frozenset(app_servers(os.getpid()))
            course = Course(home=home, client=client, thread=thread, others=others)
            yield course, other


async def nothing_further_starts(course: Course) -> None:
    """In no thread; in this one a message would wait for the turn's outcome."""
    params = threads.ThreadStartParams(
        cwd=str(course.home.workspace),
        input=[TextInput(type="text", text="more")],
        request_key="m" * 32,
    )
    with pytest.raises(CodexUnavailable):
        await course.client.call(THREAD_START, params)


async def texts_of(client: Client, thread: str) -> list[str]:
    """What people said in a thread, newest turn first."""
    read = threads.ThreadReadParams(thread_id=thread, turns=20)
    turns = (await client.call(THREAD_READ, read)).turns
    items = [item for turn in turns for item in turn.items or ()]
    return [item.text for item in items if isinstance(item, UserMessage)]


async def the_thread_is_theirs(
    course: Course, other: ForeignCodex, running: Running
) -> None:
    """The turn has ended well, and the other codex goes on with all of it."""
    turn = await running.ended()
    assert turn.status is TurnStatus.COMPLETED
    await resume_when_free(other, course.thread)
    await other.turn(course.thread, "theirs again")
    said = course.home.model.requests[-1].user_texts
    assert running.text in said
    assert said[-1] == "theirs again"
    texts = await texts_of(course.client, course.thread)
    assert texts.count(running.text) == 1, "once, and not lost"
    assert (await status(course.client)).leases == []
    left = {path.name for path in course.home.workspace.iterdir()}
    assert not left & {".git", ".codex", ".agents", ".aws"}, "no command was cut short"


@pytest.mark.parametrize("stage", STAGES)
async def test_a_desktop_that_opens_closes_and_opens_again_lets_the_turn_end_and_gets_the_thread(
    stage: str, tmp_path: Path
) -> None:
    with trio.fail_after(240):
        async with (
            open_course(BUNDLED) as (course, other),
            STAGES[stage](course) as running,
        ):
            async with open_desktop(course.home, tmp_path):
                await wait_gate(course.client, GatePosition.READ_ONLY)
            async with open_desktop(course.home, tmp_path):  # within a second
                await wait_gate(course.client, GatePosition.READ_ONLY)
                await nothing_further_starts(course)
                await running.go_on()
                await the_thread_is_theirs(course, other, running)
                gate = (await status(course.client)).gate
                assert gate.state is GatePosition.READ_ONLY


@pytest.mark.long
@pytest.mark.parametrize("version", sorted({BUNDLED, NEWEST}))
@pytest.mark.parametrize("stage", STAGES)
async def test_a_desktop_that_only_opens_gets_the_thread_after_the_turn(
    stage: str, version: str, tmp_path: Path
) -> None:
    with trio.fail_after(240):
        async with (
            open_course(version) as (course, other),
            STAGES[stage](course) as running,
            open_desktop(course.home, tmp_path),
        ):
            await wait_gate(course.client, GatePosition.READ_ONLY)
            await nothing_further_starts(course)
            await running.go_on()
            await the_thread_is_theirs(course, other, running)


@pytest.mark.long
@pytest.mark.skipif(
    WITHOUT_LOCK not in codex_binaries(), reason=f"codex {WITHOUT_LOCK} is not here"
)
@pytest.mark.parametrize("stage", STAGES)
async def test_a_codex_without_locks_that_comes_lets_the_turn_end_and_gets_the_thread(
    stage: str,
) -> None:
    """No lock keeps it out; what it adds once the thread is free, everybody has."""
    old = codex_binaries()[WITHOUT_LOCK]
    with trio.fail_after(240):
        async with (
            open_course(BUNDLED) as (course, other),
            STAGES[stage](course) as running,
            open_foreign(old, course.home.environ),
        ):
            await wait_gate(course.client, GatePosition.READ_ONLY)
            await nothing_further_starts(course)
            await running.go_on()
            await the_thread_is_theirs(course, other, running)
