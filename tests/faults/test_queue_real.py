"""Messages that wait, on a real codex, over what an Agent and its owner's files go through."""

import shutil
import signal
import sqlite3
from pathlib import Path

import pytest
import trio

from clients.cli.scripted_model import Rule
from tests.faults.test_killed_agent import new_thread
from tests.support.codex import CodexHome, locking_versions, open_codex_home
from tests.support.real_agent import send_params, status
from tests.support.served_agent import (
    ServedAgent,
    open_owner_of,
    open_served_agent,
    wait_gone,
)
from transport.client import Client
from transport.protocol import admin, queue, threads
from transport.protocol import methods as rows
from transport.protocol.queue import QueueListResult, WaitsFor
from transport.protocol.threads import ThreadStatus

pytestmark = pytest.mark.codex
NEWEST_FIRST = [
    locking_versions()[-1],
    *(
        pytest.param(version, marks=pytest.mark.long)
        for version in locking_versions()[-2:-1]
    ),
]
RULES = (Rule("in the middle", [[{"msg": "said"}, {"hold": "the rest"}]]),)


async def waiting(client: Client) -> QueueListResult:
    return await client.call(rows.QUEUE_LIST, queue.QueueListParams())


async def queue_behind_a_turn(client: Client, thread: str) -> None:
    busy = send_params(thread, "in the middle", key="busy")
    await client.call(rows.TURN_START, busy, timeout_s=60)
    later = send_params(thread, "pay the bill", key="later", delivery="queue")
    await client.call(rows.TURN_START, later)


async def end(agent: ServedAgent, number: signal.Signals) -> None:
    left = agent.app_servers()
    agent.signal(number)
    await agent.wait()
    await wait_gone(left)


def times_sent(home: CodexHome) -> int:
    return sum(
        "pay the bill" in request.user_texts[-1] for request in home.model.requests
    )


async def test_one_that_got_too_old_while_no_agent_ran_is_told_to_who_comes_later() -> (
    None
):
    version = locking_versions()[-1]
    with trio.fail_after(240):
        async with open_codex_home(*RULES) as home:
            async with (
                open_served_agent(home, version=version) as agent,
                open_owner_of(agent) as client,
            ):
                thread = await new_thread(client, home)
                await queue_behind_a_turn(client, thread)
                await end(agent, signal.SIGKILL)
            with sqlite3.connect(agent.state / "ledger.sqlite") as db:
                db.execute("UPDATE queue SET until = 1")
            db.close()
            async with (
                open_served_agent(home, version=version) as agent,
                open_owner_of(agent) as client,  # who comes now has missed the notice
            ):
                while (found := await waiting(client)).queue:
                    pass  # each is a round trip
                (told,) = found.dropped
                assert (told.code, told.preview) == ("queueExpired", "pay the bill")
                log = await client.call(rows.AUDIT_LIST, admin.AuditListParams())
                assert "message/dropped" in [one.event for one in log.entries]
            assert times_sent(home) == 0


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_a_config_that_is_being_edited_is_waited_for(version: str) -> None:
    with trio.fail_after(240):
        async with open_codex_home(*RULES) as home:
            async with (
                open_served_agent(home, version=version) as agent,
                open_owner_of(agent) as client,
            ):
                thread = await new_thread(client, home)
                await end(agent, signal.SIGTERM)
            async with (
                open_served_agent(home, version=version) as agent,
                open_owner_of(agent) as client,
            ):
                await status(client)  # Codex has started; the thread is loaded nowhere
                config = home.home / "config.toml"
                whole = config.read_text()
                config.write_text(f"{whole}\nhalf = [\n")
                later = send_params(thread, "pay the bill", key="q", delivery="queue")
                await client.call(rows.TURN_START, later)
                while (row := (await waiting(client)).queue[0]).waits_for is None:
                    pass  # each is a round trip
                assert row.waits_for is WaitsFor.CODEX
                assert "config" in (row.waits_message or "")
                config.write_text(whole)
                while (await waiting(client)).queue:
                    pass  # each is a round trip
                read = threads.ThreadReadParams(thread_id=thread)
                while (
                    await client.call(rows.THREAD_READ, read)
                ).thread.status is ThreadStatus.RUNNING:
                    pass  # each is a round trip
                assert times_sent(home) == 1
                assert (await waiting(client)).dropped == []


@pytest.mark.parametrize("version", NEWEST_FIRST)
async def test_a_backup_that_is_put_back_sends_nothing_twice(version: str) -> None:
    with trio.fail_after(240):
        async with open_codex_home(*RULES) as home:
            async with (
                open_served_agent(home, version=version) as agent,
                open_owner_of(agent) as client,
            ):
                thread = await new_thread(client, home)
                await queue_behind_a_turn(client, thread)
                await end(agent, signal.SIGTERM)
            backup = _copied(agent.state, agent.state.with_name("backup"))
            async with (
                open_served_agent(home, version=version) as agent,
                open_owner_of(agent) as client,
            ):
                while (await waiting(client)).queue or not times_sent(home):
                    pass  # each is a round trip
                await end(agent, signal.SIGTERM)
            shutil.rmtree(agent.state)
            _copied(backup, agent.state)
            async with (
                open_served_agent(home, version=version) as agent,
                open_owner_of(agent) as client,
            ):
                while (found := await waiting(client)).queue:
                    pass  # each is a round trip
                assert [one.code for one in found.dropped] == ["queueSent"]
            assert times_sent(home) == 1


def _copied(folder: Path, to: Path) -> Path:
    shutil.copytree(folder, to, ignore=shutil.ignore_patterns("run", "*.sock"))
    return to
