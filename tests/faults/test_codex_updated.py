"""Codex is updated under a running Agent: in its place, or into another folder."""

import os
from pathlib import Path
from typing import Final

import pytest
import trio

from adapter.calls.versions import PINNED
from clients.cli.scripted_model import Rule
from tests.support.codex import (
    BUNDLED,
    WITHOUT_LOCK,
    CodexHome,
    codex_binaries,
    locking_versions,
    open_codex_home,
)
from tests.support.faulty_codex import (
    ENDS,
    STARTED,
    open_faulty,
    send,
)
from tests.support.foreign import open_foreign
from tests.support.other_codexes import installed
from tests.support.real_agent import send_params, send_to_end, status, wait_lease
from tests.support.served_agent import app_servers, open_owner_of, open_served_agent
from transport.client import Client
from transport.errors import CodexUnavailable, Refusal, ThreadOwnedElsewhere
from transport.protocol import threads
from transport.protocol.events import TurnCompleted
from transport.protocol.gateway import GateReason, LeaseState, RuntimePhase
from transport.protocol.methods import THREAD_LIST, THREAD_START, TURN_START
from transport.protocol.turns import TextInput, TurnStatus

OLDEST: Final = locking_versions()[0]
NEWEST: Final = locking_versions()[-1]
HELD: Final = Rule("there", [[{"partial": "words"}, {"hold": "theirs"}]])
PATIENT_MS: Final = 30_000
needs_lockless: Final = pytest.mark.skipif(
    WITHOUT_LOCK not in codex_binaries(), reason="no codex without locks is here"
)
needs_two: Final = pytest.mark.skipif(OLDEST == NEWEST, reason="one version is here")


async def test_a_writer_that_is_another_codex_than_the_reader_is_not_used() -> None:
    with trio.fail_after(240):
        async with open_faulty() as run:
            (reader,) = app_servers(os.getpid())
            run.play(version="0.163.0", turn__start=[[*STARTED, *ENDS]])
            with pytest.raises(CodexUnavailable, match="updated") as refusal:
                await run.client.call(TURN_START, send(), timeout_s=20)
            assert refusal.value.retryable
            assert run.sent("thread/resume") == 0
            patient = send().model_copy(update={"wait_ms": PATIENT_MS})
            await run.client.call(TURN_START, patient, timeout_s=60)
            await run.ear.first(TurnCompleted)
            assert (await status(run.client)).runtime.version == "0.163.0"
            assert reader not in app_servers(os.getpid())
            assert run.sent("turn/start") == 1


async def test_a_codex_that_works_on_another_home_is_refused() -> None:
    hello = {
        "userAgent": f"threadgate/{PINNED} (Debian 12; x86_64) fake",
        "codexHome": "/somewhere/else",
        "platformFamily": "unix",
        "platformOs": "linux",
    }
    with trio.fail_after(240):
        async with open_faulty(initialize=[[{"result": hello}]]) as run:
            told = await status(run.client)
            assert told.runtime.state is not RuntimePhase.READY
            assert "/somewhere/else" in (told.runtime.error or "")
            assert told.gate.reason is GateReason.RUNTIME_DOWN
            with pytest.raises(Refusal):
                await run.client.call(THREAD_LIST, threads.ThreadListParams())
            with pytest.raises(CodexUnavailable):
                await run.client.call(TURN_START, send(), timeout_s=20)
            assert run.sent("thread/list") == run.sent("thread/resume") == 0
            run.play()
            while (await status(run.client)).runtime.state is not RuntimePhase.READY:
                pass  # each is a round trip


def put(version: str, folder: Path, name: str = "bin/codex") -> Path:
    """Put a codex of that version to where it is looked for; others go."""
    new = installed(codex_binaries()[version], folder, f"{version}/{name}")
    link = folder / "codex"
    link.with_suffix(".new").symlink_to(new)
    link.with_suffix(".new").replace(link)
    return link


def put_over(version: str, path: Path) -> None:
    """Replace a codex in its place, as a package manager does."""
    staged = installed(codex_binaries()[version], path.parent, f"staged-{version}/it")
    staged.replace(path)


def remove(version: str, folder: Path) -> None:
    """Take a version away."""
    (folder / version / "bin" / "codex").unlink()
    (folder / version / "bin").rmdir()
    (folder / version).rmdir()


async def new_thread(client: Client, home: CodexHome) -> str:
    """Make a thread, and return when its writer has ended."""
    params = threads.ThreadStartParams(
        cwd=str(home.workspace),
        input=[TextInput(type="text", text="hello")],
        request_key="n" * 32,
        wait_ms=PATIENT_MS,
    )
    thread = (await client.call(THREAD_START, params, timeout_s=60)).thread.id
    await wait_lease(client, thread, LeaseState.NONE)
    return thread


def hasty(home: CodexHome) -> None:
    """Give threads back at once."""
    config = home.home.parent / "threadgate.toml"
    config.write_text(
        f'roots = ["{home.workspace}"]\nlisten = ["127.0.0.1:0"]\nidle_s = 1\n'
    )


@pytest.mark.codex
@needs_lockless
async def test_nothing_is_written_beside_another_codex_by_one_that_takes_no_locks() -> (
    None
):
    with trio.fail_after(240):
        async with open_codex_home(HELD) as home:
            mine = installed(codex_binaries()[NEWEST], home.home.parent, "mine/codex")
            async with (
                open_served_agent(home, codex=mine) as agent,
                open_owner_of(agent) as client,
                open_foreign(codex_binaries()[NEWEST], home.environ) as other,
            ):
                thread = await other.start_thread(home.workspace, "theirs")
                params = send_params(thread, "ours", key="ours", wait_ms=PATIENT_MS)
                put_over(WITHOUT_LOCK, mine)
                await other.begin_turn(thread, "there")
                await home.model.wait_held("theirs")
                hurried = params.model_copy(update={"wait_ms": 0})
                for _ in range(3):
                    with pytest.raises(Refusal) as refusal:
                        await client.call(TURN_START, hurried, timeout_s=60)
                    assert refusal.value.retryable
                    assert isinstance(
                        refusal.value, CodexUnavailable | ThreadOwnedElsewhere
                    )
                with pytest.raises(Refusal):
                    short = params.model_copy(update={"wait_ms": 3_000})
                    await client.call(TURN_START, short, timeout_s=60)
                told = await status(client)
                assert told.runtime.version == WITHOUT_LOCK
                assert told.gate.reason is GateReason.WRITER_WITHOUT_LOCK
                assert not any("ours" in one.texts for one in home.model.requests)
                home.model.release("theirs")


@pytest.mark.codex
@needs_two
async def test_a_codex_that_is_updated_in_its_place_goes_on_with_the_same_request() -> (
    None
):
    with trio.fail_after(240):
        async with open_codex_home() as home:
            hasty(home)
            mine = installed(codex_binaries()[OLDEST], home.home.parent, "mine/codex")
            async with (
                open_served_agent(home, codex=mine) as agent,
                open_owner_of(agent) as client,
            ):
                thread = await new_thread(client, home)
                put_over(NEWEST, mine)
                with pytest.raises(CodexUnavailable, match="updated"):
                    params = send_params(thread, "on", key="on", wait_ms=0)
                    await client.call(TURN_START, params)
                turn = await send_to_end(client, thread, "on", key="on")
                assert turn.status is TurnStatus.COMPLETED
                assert (await status(client)).runtime.version == NEWEST


@pytest.mark.codex
@needs_two
async def test_a_codex_that_an_update_has_moved_is_found_again() -> None:
    with trio.fail_after(240):
        async with open_codex_home() as home:
            hasty(home)
            folder = home.home.parent / "opt"
            async with (
                open_served_agent(home, codex=put(OLDEST, folder)) as agent,
                open_owner_of(agent) as client,
            ):
                thread = await new_thread(client, home)
                put(NEWEST, folder)
                remove(OLDEST, folder)
                turn = await send_to_end(client, thread, "on", key="on", wait_ms=60_000)
                assert turn.status is TurnStatus.COMPLETED
                assert (await status(client)).runtime.version == NEWEST


@pytest.mark.codex
async def test_a_codex_that_is_not_there_any_more_is_said_to_be_gone() -> None:
    with trio.fail_after(240):
        async with open_codex_home() as home:
            hasty(home)
            folder = home.home.parent / "opt"
            async with (
                open_served_agent(home, codex=put(BUNDLED, folder)) as agent,
                open_owner_of(agent) as client,
            ):
                thread = await new_thread(client, home)
                remove(BUNDLED, folder)
                (folder / "codex").unlink()
                for _ in range(2):
                    with pytest.raises(
                        CodexUnavailable, match="not there any more"
                    ) as no:
                        params = send_params(thread, "on", key="on", wait_ms=0)
                        await client.call(TURN_START, params, timeout_s=60)
                    assert no.value.retryable
                page = await client.call(THREAD_LIST, threads.ThreadListParams())
                assert [one.id for one in page.threads] == [thread]
                put(BUNDLED, folder)
                turn = await send_to_end(client, thread, "on", key="on")
                assert turn.status is TurnStatus.COMPLETED
