"""The command line, an Agent and codex, all real: what the demo does not show."""

import json
import re
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from clients.cli.demo_actors import Actor, Running
from clients.cli.demo_stage import Stage, open_stage
from clients.cli.exits import ExitCode
from clients.cli.scripted_answers import Rule
from tests.support.cli_runs import paper

DEADLINE_S = 240
SEARCH = {
    "item": {
        "type": "web_search_call",
        "status": "completed",
        "action": {"type": "search", "query": "rye bread"},
    }
}
LOOK = {"call": "look", "namespace": "mcp__lab", "args": {"path": "/w"}}
SPAWN = {
    "call": "spawn_agent",
    "namespace": "multi_agent_v1",
    "args": {"message": "Count."},
}
QUESTION = {
    "id": "crust",
    "header": "Crust",
    "question": "Which crust?",
    "options": [
        {"label": "Dark", "description": "an hour"},
        {"label": "Light", "description": "half of it"},
    ],
}
RULES = [
    Rule("Take your time.", [[{"partial": "Well, "}, {"hold": "never"}]]),
    Rule("Hello.", [[{"msg": "Hello to you."}]]),
    Rule("Count.", [[{"msg": "There are seven."}]]),
    Rule(
        "Do a lot.", [[SEARCH, LOOK], [SPAWN], [{"hold": "parent"}, {"msg": "Done."}]]
    ),
    Rule(
        "Ask me.",
        [
            [{"call": "request_user_input", "args": {"questions": [QUESTION]}}],
            [{"call": "ask", "namespace": "mcp__lab", "args": {}}],
            [{"call": "danger", "namespace": "mcp__lab", "args": {"path": "/x"}}],
            [{"msg": "Thank you."}],
        ],
    ),
    Rule("Fail.", [[{"failed": {"code": "context_length_exceeded", "message": "x"}}]]),
]

pytestmark = [pytest.mark.codex, pytest.mark.usefixtures("warm_actors")]


@asynccontextmanager
async def stage() -> AsyncGenerator[Stage]:
    with trio.fail_after(DEADLINE_S):
        async with open_stage(paper(), RULES) as built:
            yield built


@asynccontextmanager
async def agent(built: Stage, port: int = 0) -> AsyncGenerator[Running]:
    async with built.desk.start("serve", "--tcp", f"127.0.0.1:{port}") as serving:
        await serving.wait_line("^ready")
        yield serving


async def pair(built: Stage, *options: str) -> str:
    """Pair the phone without a question (so it may only read); return its id."""
    async with built.desk.start("pair", "--yes", *options) as offering:
        text = (await offering.wait_line("^TGATE:.*"))[0]
        await built.phone.run("connect", "--name", "phone", stdin=text.encode())
        paired = await offering.wait_line(r"Paired: phone \((\w+)\) with read\.")
        await offering.end()
        return paired[1]


async def new_thread(who: Actor, built: Stage) -> str:
    folder = str(built.workspace)
    async with who.start("new", "--cwd", folder, "Hello.") as starting:
        thread = (await starting.wait_line(r"new thread (\S+)"))[1]
        await starting.end()
        return thread


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


async def test_a_device_that_was_paired_unattended_may_read_and_nothing_else() -> None:
    async with stage() as built, agent(built):
        thread = await new_thread(built.desk, built)
        device = await pair(built)
        assert "Hello to you." in await built.phone.run("read", thread[:13])
        refused = await built.phone.run("send", thread, "more", expect=ExitCode.FAILED)
        assert "lacks the scope write" in refused
        await built.desk.run("devices", "grant", device[:6], "--scopes", "read,write")
        sent = await built.phone.run("send", thread, "Hello.")
        assert "Hello to you." in sent


async def test_a_revoked_device_is_cut_off_at_once_and_told_so() -> None:
    async with stage() as built, agent(built):
        await pair(built)
        async with built.phone.start("watch") as watching:
            await watching.wait_line("^Watching")
            await built.desk.run("devices", "revoke", "phone")
            await watching.wait_line("has revoked this device")
            await watching.end(expect=ExitCode.FAILED)
        again = await built.phone.run("threads", expect=ExitCode.UNREACHABLE)
        assert "does not take this device any more" in again
        assert "revoked" in await built.desk.run("devices", "list")


async def test_interrupt_ends_the_turn_and_whoever_followed_it() -> None:
    async with stage() as built, agent(built):
        thread = await new_thread(built.desk, built)
        async with built.desk.start("send", thread[:13], "Take your time.") as turn:
            await turn.wait_line("you +Take your time.")
            await built.desk.run("interrupt", thread[:13])
            lines = await turn.end(expect=ExitCode.FAILED)
        assert any("interrupted" in said.text for said in lines)


async def test_a_watch_survives_the_restart_of_the_agent() -> None:
    port = free_port()
    async with stage() as built, agent(built, port) as first:
        await pair(built)
        async with built.phone.start("watch") as watch:
            await watch.wait_line("^Watching")  # said once it is subscribed
            first.process.send_signal(signal.SIGINT)
            await first.end()
            await watch.wait_line("connection lost")
            async with agent(built, port):
                await watch.wait_line("connected again")
                await watch.wait_line("events were missed")
                await new_thread(built.desk, built)
                # Its folder came with the thread: devices may see it from then on.
                await watch.wait_line("Hello to you.")


async def test_two_messages_at_once_are_one_turn_and_one_clear_refusal() -> None:
    async with stage() as built, agent(built):
        thread = await new_thread(built.desk, built)
        async with built.desk.start("send", thread, "Take your time.") as turn:
            await turn.wait_line("you +Take your time.")
            refused = await built.desk.run(
                "send", thread, "Hello.", expect=ExitCode.FAILED
            )
            assert "turn" in refused
            await built.desk.run("interrupt", thread)
            await turn.end(expect=ExitCode.FAILED)


async def test_what_a_turn_does_beside_talking_is_shown_in_the_transcript() -> None:
    async with stage() as built:
        server = Path(__file__).parents[1] / "support" / "mcp_server.py"
        config = Path(built.codex_environ["CODEX_HOME"]) / "config.toml"
        command = f"command = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(server))}]"
        config.write_text(f"{config.read_text()}\n[mcp_servers.lab]\n{command}\n")
        async with agent(built):
            thread = await new_thread(built.desk, built)
            async with built.desk.start("send", thread, "Do a lot.") as sending:
                await sending.wait_line("There are seven.")
                built.model.release("parent")
                shown = "\n".join(said.text for said in await sending.end())
            failed = await built.desk.run(
                "send", thread, "Fail.", expect=ExitCode.FAILED
            )
            read = await built.desk.run("read", thread)
        for text in (shown, read):
            assert "web    searched: rye bread" in text
            assert 'tool   lab.look {"path": "/w"}' in text
            assert '| {"did": "look", "with": {"path": "/w"}}' in text
            assert "agent  started (starting)  thread" in text
        child = re.search(r"agent  started .* thread (\S+)", shown)
        assert child is not None
        assert f"── sub-agent {child[1]}" in shown
        assert "There are seven." in shown.partition("── sub-agent")[2]
        for text in (failed, read):
            assert "what to do: the thread has outgrown the model's context" in text


async def test_an_agent_that_cannot_start_says_why_in_one_line() -> None:
    async with stage() as built, agent(built):
        twice = await built.desk.run("serve", expect=ExitCode.FAILED)
        assert twice.startswith("threadgate: the Agent cannot start: Another Agent")
        assert twice.count("\n") == 1
    async with stage() as built:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            refused = await built.desk.run(
                "serve", "--tcp", f"127.0.0.1:{port}", expect=ExitCode.FAILED
            )
        assert refused.startswith("threadgate: the Agent cannot start: ")
        assert "Traceback" not in refused
        no_codex = await built.desk.run(
            "serve", "--codex", "/nowhere", expect=ExitCode.FAILED
        )
        assert "/nowhere" in no_codex
        assert no_codex.count("\n") == 1


async def test_each_question_is_answered_from_the_phone_and_told_to_who_follows() -> (
    None
):
    async with stage() as built:
        server = Path(__file__).parents[1] / "support" / "mcp_server.py"
        config = Path(built.codex_environ["CODEX_HOME"]) / "config.toml"
        command = f"command = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(server))}]"
        config.write_text(
            f"{config.read_text()}\ndefault_mode_request_user_input = true\n"
            f"[mcp_servers.lab]\n{command}\n"
        )
        async with agent(built):
            thread = await new_thread(built.desk, built)
            device = await pair(built)
            scopes = "read,approve"
            await built.desk.run("devices", "grant", device[:6], "--scopes", scopes)
            async with built.desk.start("send", thread, "Ask me.") as sending:

                async def asked(command: str, before: str = "-") -> str:
                    told = rf"threadgate {command} (?!{before})(apr_\w+)"
                    return (await sending.wait_line(told))[1]

                first = await asked("answer")
                given = ("--answers", json.dumps({"crust": "Dark"}))
                told = await built.phone.run("answer", first, *given)
                assert "1      Dark: an hour" in told
                assert "answered by this device" in told
                second = await asked("answer", first)
                wrong = ("--content", json.dumps({"colour": "green"}))
                refused = await built.phone.run(
                    "answer", second, *wrong, expect=ExitCode.FAILED
                )
                assert "colour must be one of the choices" in refused
                fitting = json.dumps({"colour": "red"}).encode()
                await built.phone.run("answer", second, "--content", "-", stdin=fitting)
                third = await asked("approve")
                over = await built.phone.run(
                    "approve", third, "--yes", "--remember", expect=ExitCode.FAILED
                )
                assert "approve.session" in over
                allowed = await built.phone.run("approve", third, "--yes")
                assert 'with     {"path": "/x"}' in allowed
                shown = "\n".join(said.text for said in await sending.end())
    assert "asks     Which crust?" in shown
    assert f"answered by device {device}" in shown
    assert "Thank you." in shown
    assert "Dark" not in shown.split("answered by device")[1].split("approval")[0]
