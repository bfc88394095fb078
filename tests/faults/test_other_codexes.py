"""Every way in which a person has a thread open elsewhere, with Codex's own programs.

While they have it, a message of ours is refused and names them; as soon as they let go
it is sent, and the model knows what was said there. While we have it they are refused,
and as soon as we let go they have it.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from clients.cli.scripted_model import Rule
from tests.support.codex import (
    BUNDLED,
    WITHOUT_LOCK,
    CodexHome,
    codex_binaries,
    open_codex_home,
)
from tests.support.foreign import open_foreign
from tests.support.other_codexes import (
    GIVEN_BACK_S,
    installed,
    open_codex,
    open_desktop,
    open_interface,
    resume_when_free,
    trusting,
)
from tests.support.real_agent import (
    open_local,
    open_real_agent,
    send_params,
    send_to_end,
    status,
    wait_gate,
    wait_lease,
)
from transport.client import Client
from transport.errors import CodexUnavailable, ThreadOwnedElsewhere
from transport.protocol.gateway import GatePosition, GateReason, LeaseState
from transport.protocol.methods import TURN_START
from transport.protocol.turns import TurnStatus

pytestmark = pytest.mark.codex
CODEX = codex_binaries()[BUNDLED]
HELD = Rule("said there", [[{"partial": "words"}, {"hold": "there"}]])
IDE = "home/.vscode/extensions/openai.chatgpt-1.2.3/bin/linux-x86_64/codex"
DESKTOP = "opt/codex-desktop/resources/codex"


@asynccontextmanager
async def open_both(
    *, extra: str = "", **settings: Any
) -> AsyncGenerator[tuple[CodexHome, Client, str]]:
    """An Agent, and a thread that nobody has loaded."""
    async with open_codex_home(HELD, extra=extra) as home:
        trusting(home)
        async with open_foreign(CODEX, home.environ) as first:
            thread = await first.start_thread(home.workspace, "theirs")
        async with (
            open_real_agent(home, **settings) as house,
            open_local(house) as client,
        ):
            yield home, client, thread


async def refused(client: Client, thread: str, kind: str) -> int:
    """A message is refused for a holder of that kind; return its pid.

    A program that has not said its version yet counts as one without locks, and closes
    the gate for that moment.
    """
    while True:
        try:
            params = send_params(thread, "ours", key="ours", wait_ms=0)
            await client.call(TURN_START, params)
        except ThreadOwnedElsewhere as refusal:
            writer = refusal.data["writer"]
            assert writer["kind"] == kind
            return int(writer["pid"])
        except CodexUnavailable:
            await wait_gate(client, GatePosition.OPEN)
        else:
            pytest.fail("a thread that is open elsewhere was written to")


async def sent(home: CodexHome, client: Client, thread: str) -> None:
    """The message goes now, once, and the model knows what was said there."""
    turn = await send_to_end(client, thread, "ours", key="ours")
    assert turn.status is TurnStatus.COMPLETED
    texts = [text for text in home.model.requests[-1].user_texts if text[0] != "<"]
    assert texts == ["theirs", "said there", "ours"]


async def test_codex_exec_has_the_thread_for_as_long_as_it_runs() -> None:
    with trio.fail_after(240):
        async with open_both() as (home, client, thread):
            args = ("exec", "--skip-git-repo-check", "resume", thread, "said there")
            async with open_codex(CODEX, home, *args) as process:
                await home.model.wait_held("there")
                assert await refused(client, thread, "cli") == process.pid
                home.model.release("there")
                assert await process.wait() == 0
            await sent(home, client, thread)


@pytest.mark.long
async def test_codex_exec_is_refused_while_we_have_the_thread_and_has_it_after() -> (
    None
):
    with trio.fail_after(240):
        async with open_both() as (home, client, thread):
            await send_to_end(client, thread, "ours", key="ours")
            args = ("exec", "--skip-git-repo-check", "resume", thread, "from exec")
            async with open_codex(CODEX, home, *args) as process:
                assert await process.wait() == 1
            assert home.model.requests[-1].user_texts[-1] == "ours"
        async with open_both(idle_s=1) as (home, client, thread):
            await send_to_end(client, thread, "ours", key="ours")
            with trio.fail_after(GIVEN_BACK_S):
                await wait_lease(client, thread, LeaseState.NONE)
            async with open_codex(
                CODEX, home, *args[:-2], thread, "from exec"
            ) as process:
                assert await process.wait() == 0
            said = home.model.requests[-1].user_texts
            assert "ours" in said
            assert said[-1] == "from exec"


@pytest.mark.long
async def test_a_terminal_has_the_thread_until_it_is_left() -> None:
    with trio.fail_after(240):
        async with open_both() as (home, client, thread):
            async with open_interface(
                CODEX, home, "resume", thread, "said there"
            ) as screen:
                await home.model.wait_held("there")
                pid = await refused(client, thread, "cli")
                assert pid == screen.process.pid
                home.model.release("there")
                while b"state=idle" not in screen.shown.rpartition(b"working")[2]:
                    await status(client)  # a round trip
                assert await refused(client, thread, "cli") == pid
                await screen.leave()
            await sent(home, client, thread)


@pytest.mark.long
async def test_a_background_server_keeps_the_thread_after_the_window_and_is_waited_for(
    tmp_path: Path,
) -> None:
    listen = f"unix://{tmp_path}/server.sock"
    with trio.fail_after(240):
        async with (
            open_both(extra="thread_unload_delay_secs = 1") as (
                home,
                client,
                thread,
            ),
            open_codex(CODEX, home, "app-server", "--listen", listen) as server,
        ):
            while not (tmp_path / "server.sock").exists():
                await trio.lowlevel.checkpoint()
            args = ("--remote", listen, "resume", thread, "said there")
            async with open_interface(CODEX, home, *args) as screen:
                await home.model.wait_held("there")
                home.model.release("there")
                assert await refused(client, thread, "daemon") == server.pid
                await screen.leave()
            await sent(home, client, thread)
            server.kill()


@pytest.mark.long
async def test_an_editor_has_the_thread_until_it_ends() -> None:
    with trio.fail_after(240):
        async with open_both() as (home, client, thread):
            codex = installed(CODEX, home.home.parent, IDE)
            async with open_foreign(codex, home.environ) as editor:
                await editor.resume(thread)
                assert await refused(client, thread, "ide") == editor.pid
                home.model.release("there")
                await editor.turn(thread, "said there")
            await sent(home, client, thread)


async def test_the_desktops_own_engine_closes_the_gate_until_it_ends() -> None:
    with trio.fail_after(240):
        async with open_both() as (home, client, thread):
            codex = installed(CODEX, home.home.parent, DESKTOP)
            async with open_foreign(codex, home.environ) as desktop:
                await desktop.resume(thread)
                with pytest.raises(CodexUnavailable) as refusal:
                    params = send_params(thread, "x", key="x", wait_ms=0)
                    await client.call(TURN_START, params)
                gate = refusal.value.data["gate"]
                assert gate["reason"] == "desktopActive"
                assert gate["writer"]["pid"] == desktop.pid
                home.model.release("there")
                await desktop.turn(thread, "said there")
            await sent(home, client, thread)


async def test_what_runs_on_another_home_does_not_close_our_gate(
    tmp_path: Path,
) -> None:
    old = codex_binaries().get(WITHOUT_LOCK)
    with trio.fail_after(240):
        async with (
            open_codex_home() as theirs,
            open_both() as (home, client, thread),
            open_desktop(theirs, tmp_path),
            open_foreign(old or CODEX, theirs.environ) as other,
        ):
            there = await other.start_thread(theirs.workspace, "on another home")
            # No patience: the gate has to be open, and nobody is asked for a version.
            params = send_params(thread, "ours", key="ours", wait_ms=0)
            await client.call(TURN_START, params, timeout_s=60)
            gate = (await status(client)).gate
            assert gate.state is GatePosition.OPEN
            assert gate.reason is None
            assert await other.turn(there, "still there")
            async with open_desktop(home, tmp_path / "ours"):
                await wait_gate(client, GatePosition.READ_ONLY)  # the look does look
                gate = (await status(client)).gate
                assert gate.reason is GateReason.DESKTOP_ACTIVE
                async with open_foreign(CODEX, home.environ) as foreign:
                    await resume_when_free(foreign, thread)
