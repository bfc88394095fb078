"""A codex that lives and answers nothing (stopped, swapped out, stuck on a lock).

Nobody should have to log in at the workstation for that: who asks gets a typed answer,
the process is ended, and the next try works.
"""

import os
import signal

import pytest
import trio
import trio.testing

from adapter.calls import commands
from clients.cli.scripted_model import Rule
from tests.support.codex import locking_versions, open_codex_home
from tests.support.measures import in_time
from tests.support.real_agent import (
    lock_files,
    open_local,
    open_real_agent,
    send_params,
    send_to_end,
    status,
)
from tests.support.served_agent import app_servers, freeze, is_alive
from transport.client import Client
from transport.errors import CodexUnavailable
from transport.protocol import threads, turns
from transport.protocol.gateway import RuntimePhase
from transport.protocol.methods import (
    THREAD_READ,
    THREAD_START,
    TURN_INTERRUPT,
    TURN_START,
)
from transport.protocol.threads import ThreadStatus
from transport.protocol.turns import TextInput, TurnStatus

pytestmark = pytest.mark.codex
NEWEST = locking_versions()[-1]
HELD = Rule("never ends", [[{"hold": "the answer"}]])


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines of a second: enough for a codex that answers within milliseconds."""
    for method in ("thread/read", "thread/turns/list", "thread/loaded/list"):
        monkeypatch.setitem(vars(commands)["DEADLINES"], method, 1.0)


async def new_thread(client: Client, cwd: str) -> str:
    params = threads.ThreadStartParams(
        cwd=cwd,
        input=[TextInput(type="text", text="hello")],
        request_key="n" * 32,
        wait_ms=20_000,
    )
    started = await client.call(THREAD_START, params, timeout_s=60)
    read = threads.ThreadReadParams(thread_id=started.thread.id)
    while (await client.call(THREAD_READ, read)).thread.status is ThreadStatus.RUNNING:
        pass  # each read is a round trip
    return started.thread.id


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("version", locking_versions())
async def test_a_reader_that_hangs_is_replaced_and_reads_go_on(version: str) -> None:
    with trio.fail_after(240):
        async with (
            open_codex_home() as home,
            open_real_agent(home, version=version) as house,
            open_local(house) as client,
        ):
            (reader,) = app_servers(os.getpid())
            thread = await new_thread(client, str(home.workspace))
            await freeze(reader)
            read = threads.ThreadReadParams(thread_id=thread)
            with pytest.raises(CodexUnavailable) as refusal:
                await client.call(THREAD_READ, read)
            assert refusal.value.data["gate"]["reason"] == "runtimeDown"
            while (await status(client)).runtime.state is not RuntimePhase.READY:
                assert not is_alive(reader)
            assert (await client.call(THREAD_READ, read)).thread.id == thread
            turn = await send_to_end(client, thread, "go on", key="next")
            assert turn.status is TurnStatus.COMPLETED


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("version", locking_versions())
async def test_an_interrupt_ends_a_writer_that_hangs_and_frees_its_thread(
    version: str,
) -> None:
    with trio.fail_after(240):
        async with (
            open_codex_home(HELD) as home,
            open_real_agent(home, version=version, idle_s=1) as house,
            open_local(house) as client,
        ):
            (reader,) = app_servers(os.getpid())
            thread = await new_thread(client, str(home.workspace))
            params = send_params(thread, "this never ends", key="stuck", wait_ms=20_000)
            started = await client.call(TURN_START, params)
            await home.model.wait_held("the answer")
            (writer,) = set(app_servers(os.getpid())) - {reader}
            await freeze(writer)
            stop = turns.TurnInterruptParams(
                thread_id=thread, turn_id=started.sent.id, request_key="i" * 32
            )
            stopped = await client.call(TURN_INTERRUPT, stop, timeout_s=30)
            assert stopped.turn.status is TurnStatus.INTERRUPTED
            assert not is_alive(writer)
            assert not lock_files(home.home)
            turn = await send_to_end(client, thread, "go on", key="next")
            assert turn.status is TurnStatus.COMPLETED
            assert "this never ends" in home.model.requests[-1].texts


async def test_reads_that_wait_for_a_reader_that_dies_are_answered_at_once() -> None:
    """Long before their deadlines (10 s and 60 s), and the next reader serves."""
    with trio.fail_after(in_time(9)):
        async with (
            open_codex_home() as home,
            open_real_agent(home, version=NEWEST) as house,
            open_local(house) as client,
        ):
            (reader,) = app_servers(os.getpid())
            read = threads.ThreadReadParams(thread_id="thr_1")
            await freeze(reader)
            refused: list[bool] = []

            async def wait_for_it() -> None:
                with pytest.raises(CodexUnavailable) as refusal:
                    await client.call(THREAD_READ, read, timeout_s=30)
                assert refusal.value.data["gate"]["reason"] == "runtimeDown"
                refused.append(refusal.value.retryable)

            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(wait_for_it)
                await trio.testing.wait_all_tasks_blocked(0.05)
                os.kill(reader, signal.SIGKILL)
            assert refused == [True] * 3
            while (await status(client)).runtime.state is not RuntimePhase.READY:
                pass
