"""Who watches at a terminal, with a question open, while its Agent is killed."""

import signal
from contextlib import AsyncExitStack

import pytest
import trio

from clients.cli.scripted_model import Rule
from tests.support.codex import CodexHome, open_codex_home
from tests.support.real_agent import send_params, send_to_end
from tests.support.served_agent import (
    ServedAgent,
    open_owner_of,
    open_served_agent,
    wait_gone,
)
from tests.support.terminals import open_terminal
from transport.client import Client
from transport.protocol.methods import THREAD_READ, THREAD_START, TURN_START
from transport.protocol.threads import ThreadReadParams, ThreadStartParams, ThreadStatus
from transport.protocol.turns import TextInput

pytestmark = pytest.mark.codex
PROMPT = "a(pprove), d(eny), Enter leaves it > "
ASKING = {
    "call": "exec_command",
    "args": {
        "cmd": "touch asked",
        "sandbox_permissions": "require_escalated",
        "justification": "why",
    },
}
RULES = (Rule("asks once", [[ASKING]]), Rule("asks again", [[ASKING]]))


async def new_thread(client: Client, home: CodexHome, key: str) -> str:
    params = ThreadStartParams(
        cwd=str(home.workspace),
        input=[TextInput(type="text", text="hello")],
        request_key=key * 32,
        wait_ms=20_000,
    )
    thread = (await client.call(THREAD_START, params, timeout_s=60)).thread.id
    read = ThreadReadParams(thread_id=thread)
    while (await client.call(THREAD_READ, read)).thread.status is ThreadStatus.RUNNING:
        pass  # each read is a round trip
    return thread


async def kill(agent: ServedAgent) -> None:
    ours = agent.app_servers()
    agent.signal(signal.SIGKILL)
    await agent.wait()
    await wait_gone(ours)


async def test_a_watch_with_an_open_question_goes_on_with_the_next_agent() -> None:
    with trio.fail_after(240):
        async with open_codex_home(*RULES) as home, AsyncExitStack() as later:
            async with open_served_agent(home) as agent, open_owner_of(agent) as client:
                asking = await new_thread(client, home, "a")
                other = await new_thread(client, home, "b")
                watching = open_terminal(agent.state, "watch", NO_COLOR="1")
                shown = await later.enter_async_context(watching)
                await shown.wait_for("Watching")
                params = send_params(asking, "asks once", key="once")
                await client.call(TURN_START, params, timeout_s=60)
                await shown.wait_for(PROMPT)
                await kill(agent)
            await shown.wait_for("\nconnection lost")
            await shown.type("a\n")  # too late: it answers nothing of the next Agent
            async with open_served_agent(home) as agent, open_owner_of(agent) as client:
                await shown.wait_for("does not wait any more")
                await send_to_end(client, other, "meanwhile", key="other")
                await shown.wait_for("You said: meanwhile")
                params = send_params(asking, "asks again", key="again")
                await client.call(TURN_START, params, timeout_s=60)
                await shown.wait_count(PROMPT, 2)
                await shown.type("d\n")
                await shown.wait_for("declined")
            assert not (home.workspace / "asked").exists()
