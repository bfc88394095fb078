"""An Agent that is stopped or killed while something is under way, and the next one."""

import json
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import pytest
import trio

from clients.cli.scripted_model import Rule
from tests.support.agents import client_info
from tests.support.codex import CodexHome, locking_versions, open_codex_home
from tests.support.faulty_codex import Ear
from tests.support.leftovers import marked_processes
from tests.support.real_agent import lock_files, send_params, send_to_end, status
from tests.support.served_agent import (
    LOST,
    TURN_LINE,
    ServedAgent,
    app_servers,
    children,
    freeze,
    is_alive,
    open_owner_of,
    open_served_agent,
    served_environ,
    unread,
    wait_gone,
)
from transport.background import open_background
from transport.client import Client, open_client
from transport.errors import OutcomeUnknown, TransportError
from transport.kept_session import LinkState
from transport.protocol import threads
from transport.protocol.approvals import ApprovalAnswerParams, ApprovalListParams
from transport.protocol.events import ApprovalRequested, TurnCompleted
from transport.protocol.gateway import GatePosition
from transport.protocol.methods import (
    APPROVAL_ANSWER,
    APPROVAL_LIST,
    THREAD_START,
    TURN_START,
)
from transport.protocol.turns import TextInput, TurnStartParams, TurnStatus

pytestmark = pytest.mark.codex
NEWEST = locking_versions()[-1]
HEARS_IT = "signal.signal(signal.SIGHUP, signal.SIG_DFL)"
AT_A_TERMINAL = [  # however this test was started itself
    sys.executable,
    "-c",
    f"import os, signal, sys; {HEARS_IT}; os.execvp(sys.argv[1], sys.argv[1:])",
]
SOON_S = 25  # app-servers get 2 s, a loaded machine the rest; Codex would have 30 s
ASKING = {
    "call": "exec_command",
    "args": {
        "cmd": "touch it-ran",
        "yield_time_ms": 30_000,
        "sandbox_permissions": "require_escalated",
        "justification": "why",
    },
}
RULES = (
    Rule("needs a yes", [[ASKING]]),
    Rule("never ends", [[{"hold": "the answer"}]]),
)


async def new_thread(client: Client, home: CodexHome, text: str = "hello") -> str:
    params = threads.ThreadStartParams(
        cwd=str(home.workspace),
        input=[TextInput(type="text", text=text)],
        request_key="n" * 32,
        wait_ms=20_000,  # a foreign codex may just say its version
    )
    return (await client.call(THREAD_START, params, timeout_s=60)).thread.id


@asynccontextmanager
async def open_ear(agent: ServedAgent) -> AsyncGenerator[tuple[Ear, list[str]]]:
    """Another session, that listens, and why its link was lost."""
    ear, losses = Ear(), list[str]()

    def on_link(state: LinkState) -> None:
        if not state.up:
            losses.append(str(state.why))

    async with (
        open_client(
            agent.admin, client_info("ear", "e" * 32), on_link=on_link
        ) as client,
        open_background(partial(ear.listen, client)),
    ):
        yield ear, losses


def audited(agent: ServedAgent) -> list[dict[str, object]]:
    lines = (agent.state / "audit.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_stopped_agent_says_so_and_nothing_that_waited_for_a_yes_happens(
    number: signal.Signals,
) -> None:
    with trio.fail_after(240):
        async with open_codex_home(*RULES) as home:
            async with (
                open_served_agent(home, version=NEWEST, before=AT_A_TERMINAL) as agent,
                open_owner_of(agent) as client,
                open_ear(agent) as (ear, losses),
            ):
                thread = await new_thread(client, home, "needs a yes")
                asked = (await ear.first(ApprovalRequested)).approval
                agent.signal(number)
                with trio.fail_after(SOON_S):
                    assert await agent.wait() == 0
                assert losses, "its sessions were not closed"
                ends = [e for e in audited(agent) if e.get("approval") == asked.id]
                assert [end["event"] for end in ends] == ["approval/withdrawn"]
                assert audited(agent)[-1]["event"] == "stop"
            assert not (home.workspace / "it-ran").exists()
            assert not lock_files(home.home)
            async with (
                open_served_agent(home, version=NEWEST) as agent,
                open_owner_of(agent) as client,
            ):
                page = await client.call(APPROVAL_LIST, ApprovalListParams())
                assert not page.approvals
                turn = await send_to_end(client, thread, "go on", key="next")
                assert turn.status is TurnStatus.COMPLETED


async def test_an_agent_that_was_started_to_outlive_its_terminal_does() -> None:
    with trio.fail_after(240):
        async with (
            open_codex_home() as home,
            open_served_agent(home, before=["nohup"]) as agent,
            open_owner_of(agent) as client,
        ):
            agent.signal(signal.SIGHUP)
            await new_thread(client, home)
            assert agent.process.returncode is None
            agent.signal(signal.SIGTERM)
            await agent.wait()
            assert audited(agent)[-1]["event"] == "stop"


async def test_a_second_signal_cuts_an_act_short_and_its_outcome_is_on_record() -> None:
    """Codex stands still with a message in its pipe, and so the Agent waits for it."""
    with trio.fail_after(240):
        async with open_codex_home(*RULES) as home:
            async with open_frozen(home) as frozen:
                agent, writer = frozen.agent, frozen.writer
                agent.signal(signal.SIGTERM)
                await wait_doors_closed(agent)
                assert agent.process.returncode is None, "it did not wait for the act"
                agent.signal(signal.SIGTERM)
                with trio.fail_after(SOON_S):
                    assert await agent.wait() == 0
                assert not is_alive(writer)
            await is_unknown_and_goes_on(home, frozen.thread)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """An Agent that waits for a writer which stands still. Pids of its app-servers."""

    agent: ServedAgent
    reader: int
    writer: int
    thread: str


@asynccontextmanager
async def open_frozen(home: CodexHome) -> AsyncGenerator[Frozen]:
    """The message LOST lies in the pipe of a writer that stands still."""
    async with (
        open_served_agent(home, version=NEWEST) as agent,
        open_owner_of(agent) as client,
        open_ear(agent) as (ear, _),
        trio.open_nursery() as nursery,
    ):
        (reader,) = agent.app_servers()
        thread = await new_thread(client, home)
        await ear.first(TurnCompleted)
        (writer,) = set(agent.app_servers()) - {reader}
        await freeze(writer)
        params = send_params(thread, LOST, key="lost")
        nursery.start_soon(never_answered, client, params)
        while unread(writer) < TURN_LINE:
            await trio.lowlevel.checkpoint()
        yield Frozen(agent=agent, reader=reader, writer=writer, thread=thread)
        nursery.cancel_scope.cancel()


async def never_answered(client: Client, params: TurnStartParams) -> None:
    try:
        await client.call(TURN_START, params, timeout_s=60)
    except (OutcomeUnknown, TransportError):
        return


async def wait_doors_closed(agent: ServedAgent) -> None:
    """Return when nobody gets in any more."""
    while True:
        try:
            stream = await trio.open_unix_socket(agent.admin.path)
        except OSError:
            return
        await stream.aclose()


async def is_unknown_and_goes_on(home: CodexHome, thread: str) -> None:
    """The next Agent: the message's outcome is unknown, and the thread goes on."""
    async with (
        open_served_agent(home, version=NEWEST) as agent,
        open_owner_of(agent) as client,
    ):
        requests = len(home.model.requests)
        with pytest.raises(OutcomeUnknown):
            params = send_params(thread, LOST, key="lost")
            await client.call(TURN_START, params, timeout_s=60)
        assert len(home.model.requests) == requests
        turn = await send_to_end(client, thread, "go on", key="next")
        assert turn.status is TurnStatus.COMPLETED
        assert LOST not in home.model.requests[-1].texts
        agent.signal(signal.SIGTERM)
        assert await agent.wait() == 0


@pytest.mark.long
async def test_a_codex_that_hangs_outlives_a_killed_agent_until_the_next_one() -> None:
    """Killed before the response: the message lies in the pipe of a frozen codex."""
    with trio.fail_after(240):
        async with open_codex_home(*RULES) as home:
            async with open_frozen(home) as frozen:
                agent, writer = frozen.agent, frozen.writer
                agent.signal(signal.SIGKILL)
                await agent.wait()
                await wait_gone([frozen.reader])
                assert is_alive(writer)
                assert lock_files(home.home) == [frozen.thread]
            await is_unknown_and_goes_on(home, frozen.thread)
            assert not is_alive(writer)


@pytest.mark.long
async def test_a_yes_that_a_killed_agent_had_given_does_nothing_later() -> None:
    """It lies in the pipe of a frozen codex, which the next Agent ends."""
    with trio.fail_after(240):
        async with open_codex_home(*RULES) as home:
            async with (
                open_served_agent(home, version=NEWEST) as agent,
                open_owner_of(agent) as client,
                open_ear(agent) as (ear, _),
                trio.open_nursery() as nursery,
            ):
                (reader,) = agent.app_servers()
                thread = await new_thread(client, home, "needs a yes")
                asked = (await ear.first(ApprovalRequested)).approval
                (writer,) = set(agent.app_servers()) - {reader}
                await freeze(writer)
                yes = ApprovalAnswerParams(
                    approval_id=asked.id, digest=asked.digest, choice="allow"
                )
                nursery.start_soon(answer, client, yes)
                while not unread(writer):
                    await trio.lowlevel.checkpoint()
                agent.signal(signal.SIGKILL)
                await agent.wait()
                nursery.cancel_scope.cancel()
            async with (
                open_served_agent(home, version=NEWEST) as agent,
                open_owner_of(agent) as client,
            ):
                assert not is_alive(writer)
                page = await client.call(APPROVAL_LIST, ApprovalListParams())
                assert not page.approvals
                turn = await send_to_end(client, thread, "go on", key="next")
                assert turn.status is TurnStatus.COMPLETED
            assert not (home.workspace / "it-ran").exists()


async def answer(client: Client, yes: ApprovalAnswerParams) -> None:
    try:
        await client.call(APPROVAL_ANSWER, yes, timeout_s=60)
    except TransportError:
        return


@pytest.mark.long
@pytest.mark.parametrize("moment", ["starting", "closing"])
async def test_an_agent_killed_while_it_starts_or_closes_stops_no_next_one(
    moment: str, run_mark: str
) -> None:
    with trio.fail_after(240):
        async with open_codex_home(*RULES) as home:
            if moment == "starting":
                argv, environ = served_environ(home, version=NEWEST)
                with subprocess.Popen(  # noqa: TID251, ASYNC220 - to be killed
                    argv, env=environ, stdout=subprocess.DEVNULL
                ) as starting:
                    while not app_servers(starting.pid):
                        await trio.lowlevel.checkpoint()
                    ours = children(starting.pid)
                    starting.kill()
                    starting.wait()
            else:
                async with (
                    open_served_agent(home, version=NEWEST) as agent,
                    open_owner_of(agent) as client,
                ):
                    await new_thread(client, home, "never ends")
                    ours = children(agent.process.pid)
                    agent.signal(signal.SIGTERM)
                    await wait_doors_closed(agent)
                    agent.signal(signal.SIGKILL)
                    await agent.wait()
            await wait_gone(ours)
            assert not marked_processes(run_mark)
            assert not lock_files(home.home)
            async with (
                open_served_agent(home, version=NEWEST) as agent,
                open_owner_of(agent) as client,
            ):
                assert (await status(client)).gate.state is GatePosition.OPEN


@pytest.mark.long
async def test_a_second_agent_on_the_same_folder_says_who_holds_it_since_when() -> None:
    with trio.fail_after(240):
        async with (
            open_codex_home(*RULES) as home,
            open_served_agent(home, version=NEWEST) as agent,
        ):
            argv, environ = served_environ(home, version=NEWEST)
            second = await trio.run_process(
                argv, env=environ, capture_stdout=True, capture_stderr=True, check=False
            )
            assert second.returncode not in (0, None)
            said = second.stderr.decode()
            assert f"process {agent.process.pid}, since 2" in said
            assert "THREADGATE_STATE_DIR" in said
            assert len(agent.app_servers()) == 1
            async with open_owner_of(agent) as client:
                assert (await status(client)).gate.state is GatePosition.OPEN
