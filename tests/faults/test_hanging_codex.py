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


READS = ("thread/read", "thread/turns/list", "thread/loaded/list")


def wait_for_reads(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Wait so long for an answer of Codex to each read."""
    for method in READS:
        monkeypatch.setitem(vars(commands)["DEADLINES"], method, seconds)


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


async def test_a_reader_that_hangs_is_replaced_and_reads_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with trio.fail_after(240):
        async with (
            open_codex_home() as home,
            open_real_agent(home, version=NEWEST) as house,
            open_local(house) as client,
        ):
            (reader,) = app_servers(os.getpid())
            thread = await new_thread(client, str(home.workspace))
            await freeze(reader)
            read = threads.ThreadReadParams(thread_id=thread)
            wait_for_reads(monkeypatch, 0.5)
            with pytest.raises(CodexUnavailable) as refusal:
                await client.call(THREAD_READ, read)
            monkeypatch.undo()
            assert refusal.value.data["gate"]["reason"] == "runtimeDown"
            while (await status(client)).runtime.state is not RuntimePhase.READY:
                assert not is_alive(reader)
            assert (await client.call(THREAD_READ, read)).thread.id == thread
            turn = await send_to_end(client, thread, "go on", key="next")
            assert turn.status is TurnStatus.COMPLETED


async def test_an_interrupt_ends_a_writer_that_hangs_and_frees_its_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with trio.fail_after(240):
        async with (
            open_codex_home(HELD) as home,
            open_real_agent(home, version=NEWEST, idle_s=1) as house,
            open_local(house) as client,
        ):
            (reader,) = app_servers(os.getpid())
            thread = await new_thread(client, str(home.workspace))
            params = send_params(thread, "this never ends", key="stuck")
            started = await client.call(TURN_START, params)
            await home.model.wait_held("the answer")
            (writer,) = set(app_servers(os.getpid())) - {reader}
            await freeze(writer)
            wait_for_reads(monkeypatch, 0.5)
            stop = turns.TurnInterruptParams(
                thread_id=thread, turn_id=started.sent.id, request_key="i" * 32
            )
            stopped = await client.call(TURN_INTERRUPT, stop, timeout_s=60)
            monkeypatch.undo()
            assert stopped.turn.status is TurnStatus.INTERRUPTED
            assert not is_alive(writer)
            assert not lock_files(home.home)
            turn = await send_to_end(client, thread, "go on", key="next")
            assert turn.status is TurnStatus.COMPLETED
            assert "this never ends" in home.model.requests[-1].texts


async def test_reads_that_wait_for_a_reader_that_dies_are_answered_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not at their deadlines, which are longer than this test; and the next one serves."""
    wait_for_reads(monkeypatch, 600)
    with trio.fail_after(240):
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
                    await client.call(THREAD_READ, read, timeout_s=300)
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
