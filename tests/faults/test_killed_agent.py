"""An Agent that is killed at a bad moment, and the next one on the same state folder."""

import signal
import sqlite3
from collections.abc import Callable
from itertools import product

import pytest
import trio

from agent.records.key_row import digest
from clients.cli.scripted_model import Rule
from tests.support.codex import CodexHome, locking_versions, open_codex_home
from tests.support.leftovers import marked_processes
from tests.support.real_agent import lock_files, send_params, send_to_end, wait_gate
from tests.support.served_agent import (
    ServedAgent,
    open_owner_of,
    open_served_agent,
    wait_gone,
)
from transport.client import Client, ClientEvent, DeltaSeen, EventSeen, Resumed
from transport.errors import OutcomeUnknown
from transport.protocol import approvals, threads
from transport.protocol.events import (
    ApprovalRequested,
    ItemCompleted,
    ItemStarted,
    TurnStarted,
)
from transport.protocol.gateway import GatePosition
from transport.protocol.items import AgentMessage, Command
from transport.protocol.methods import (
    APPROVAL_LIST,
    QUEUE_LIST,
    THREAD_READ,
    THREAD_START,
    TURN_START,
)
from transport.protocol.queue import QueueListParams
from transport.protocol.threads import ThreadStatus
from transport.protocol.turns import TextInput, TurnStartParams, TurnStatus

pytestmark = pytest.mark.codex
VERSIONS = locking_versions()[-2:]
SECONDS = 977  # of a command that must not outlive anybody


def command(**more: object) -> dict[str, object]:
    args = {"cmd": f"sleep {SECONDS}", "yield_time_ms": 30_000, **more}
    return {"call": "exec_command", "args": args}


ASKING = command(sandbox_permissions="require_escalated", justification="why")
RULES = (
    Rule("in the middle", [[{"partial": "some words that"}, {"hold": "the rest"}]]),
    Rule("needs a yes", [[ASKING]]),
    Rule("runs long", [[command()]]),
    Rule("says nothing", [[{"hold": "all"}]]),
    Rule("nearly done", [[{"msg": "all of it"}, {"hold": "the end"}]]),
)


def is_delta(event: ClientEvent) -> bool:
    return isinstance(event, DeltaSeen)


def is_question(event: ClientEvent) -> bool:
    return isinstance(event, EventSeen) and isinstance(event.data, ApprovalRequested)


def is_command(event: ClientEvent) -> bool:
    return (
        isinstance(event, EventSeen)
        and isinstance(event.data, ItemStarted)
        and isinstance(event.data.item, Command)
    )


def is_start(event: ClientEvent) -> bool:
    return isinstance(event, EventSeen) and isinstance(event.data, TurnStarted)


def is_whole(event: ClientEvent) -> bool:
    """The model's message has ended, its turn has not."""
    return (
        isinstance(event, EventSeen)
        and isinstance(event.data, ItemCompleted)
        and isinstance(event.data.item, AgentMessage)
    )


async def new_thread(client: Client, home: CodexHome) -> str:
    """Make a thread with one turn that has ended."""
    params = threads.ThreadStartParams(
        cwd=str(home.workspace),
        input=[TextInput(type="text", text="hello")],
        request_key="n" * 32,
        wait_ms=20_000,
    )
    started = await client.call(THREAD_START, params, timeout_s=60)
    read = threads.ThreadReadParams(thread_id=started.thread.id)
    while (await client.call(THREAD_READ, read)).thread.status is ThreadStatus.RUNNING:
        pass  # each read is a round trip
    return started.thread.id


async def run_into(
    client: Client, params: TurnStartParams, moment: Callable[[ClientEvent], bool]
) -> None:
    """Start a turn and return when it has come to that moment."""
    async with client.subscribe("all") as events:
        async for event in events:
            if isinstance(event, Resumed):
                await client.call(TURN_START, params, timeout_s=60)
            elif moment(event):
                return


async def kill(agent: ServedAgent, mark: str) -> None:
    """Kill the Agent alone; return when all that it had started is gone."""
    ours = [pid for pid in marked_processes(mark) if pid != agent.process.pid]
    agent.signal(signal.SIGKILL)
    await agent.wait()
    await wait_gone(ours)


MOMENTS: dict[str, Callable[[ClientEvent], bool]] = {
    "in the middle": is_delta,
    "needs a yes": is_question,
    "runs long": is_command,
    "says nothing": is_start,
    "nearly done": is_whole,
}
QUICK = {
    ("in the middle", VERSIONS[0]),
    *((text, VERSIONS[-1]) for text in ("in the middle", "needs a yes", "runs long")),
}


@pytest.mark.parametrize(
    ("text", "version"),
    [
        pytest.param(*one, marks=() if one in QUICK else pytest.mark.long)
        for one in product(MOMENTS, VERSIONS)
    ],
)
async def test_nothing_lives_on_and_the_next_agent_goes_on_where_it_was(
    text: str, version: str, run_mark: str
) -> None:
    with trio.fail_after(240):
        async with open_codex_home(*RULES) as home:
            async with (
                open_served_agent(home, version=version) as agent,
                open_owner_of(agent) as client,
            ):
                thread = await new_thread(client, home)
                await send_to_end(client, thread, "one more", key="more")
                params = send_params(thread, text, key="killed")
                await run_into(client, params, MOMENTS[text])
                await kill(agent, run_mark)
            assert not lock_files(home.home)
            async with (
                open_served_agent(home, version=version) as agent,
                open_owner_of(agent) as client,
            ):
                asked = len(home.model.requests)
                await wait_gate(client, GatePosition.OPEN)
                waiting = approvals.ApprovalListParams()
                assert not (await client.call(APPROVAL_LIST, waiting)).approvals
                await client.call(TURN_START, params)  # the first one's outcome
                assert len(home.model.requests) == asked, "sent a second time"
                turn = await send_to_end(client, thread, "go on", key="next")
                assert turn.status is TurnStatus.COMPLETED
                assert text in home.model.requests[-1].texts
                agent.signal(signal.SIGTERM)
                assert await agent.wait() == 0


@pytest.mark.parametrize("arrived", [True, False])
async def test_what_was_handed_and_not_answered_is_never_sent_again(
    arrived: bool, run_mark: str
) -> None:
    with trio.fail_after(240):
        async with open_codex_home(*RULES) as home:
            async with (
                open_served_agent(home) as agent,
                open_owner_of(agent) as client,
            ):
                thread = await new_thread(client, home)
                turn = await send_to_end(client, thread, "one more", key="more")
                await kill(agent, run_mark)
            # As it stands between the row's fsync and Codex's answer.
            key = "more" if arrived else "lost"
            params = send_params(thread, "one more", key=key)
            with sqlite3.connect(agent.state / "ledger.sqlite") as rows:
                rows.execute(
                    "UPDATE keys SET state = 'handed', outcome = NULL, turn = NULL,"
                    " key = ? WHERE key LIKE 'more%'",
                    (params.request_key,),
                )
            rows.close()
            async with (
                open_served_agent(home) as agent,
                open_owner_of(agent) as client,
            ):
                asked = len(home.model.requests)
                for _ in range(2):
                    if arrived:  # the message is in the thread, with this key
                        again = await client.call(TURN_START, params)
                        assert (again.sent.id, again.delivery) == (turn.id, "started")
                        continue
                    with pytest.raises(OutcomeUnknown) as caught:
                        await client.call(TURN_START, params)
                    assert caught.value.data["newTurns"] == 1
                assert len(home.model.requests) == asked


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_queued_message_that_was_handed_when_the_agent_died_is_not_sent_again(
    version: str, run_mark: str
) -> None:
    with trio.fail_after(240):
        async with open_codex_home(*RULES) as home:
            async with (
                open_served_agent(home, version=version) as agent,
                open_owner_of(agent) as client,
            ):
                thread = await new_thread(client, home)
                busy = send_params(thread, "in the middle", key="busy")
                await run_into(client, busy, is_delta)
                for number in (1, 2):
                    queued = send_params(
                        thread, f"later {number}", key=f"q{number}", delivery="queue"
                    )
                    await client.call(TURN_START, queued)
                await kill(agent, run_mark)
            # As it stands between the first one's row and Codex's answer.
            with sqlite3.connect(agent.state / "ledger.sqlite") as rows:
                rows.execute(
                    "INSERT INTO keys SELECT device, id, 'x', 'turn/start', 'handed',"
                    " thread, NULL, NULL, NULL, created_at FROM queue"
                    " ORDER BY number LIMIT 1"
                )
                ((stored,),) = rows.execute(
                    "SELECT params FROM queue ORDER BY number LIMIT 1"
                ).fetchall()
                params = TurnStartParams.model_validate_json(stored)
                rows.execute(
                    "UPDATE keys SET digest = ? WHERE key = ?",
                    (digest(TURN_START.name, params), params.request_key),
                )
            rows.close()
            async with (
                open_served_agent(home, version=version) as agent,
                open_owner_of(agent) as client,
            ):
                ask = QueueListParams()
                while (await client.call(QUEUE_LIST, ask)).queue:
                    pass  # each is a round trip
                while "later 2" not in home.model.requests[-1].texts:
                    await client.call(QUEUE_LIST, ask)
                assert "later 1" not in home.model.requests[-1].texts
                # Its notice came before anybody was there.
                (told,) = (await client.call(QUEUE_LIST, ask)).dropped
                assert (told.code, told.preview) == ("queueUnknown", "later 1")
