"""Shell completion as bash and zsh ask for it."""

import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import trio

from clients.cli import offers
from tests.support import cli_asked
from tests.support.cli_runs import cli_environ, command_line
from tests.support.cli_samples import SHOP
from tests.support.fake_agent import FakeAgent, open_fake_agent
from transport.background import open_background
from transport.carriers import unix
from transport.protocol.approvals import ApprovalListResult

PROGRAM = Path(sys.executable).parent / "threadgate"
VARIABLE = "_THREADGATE_COMPLETE"


async def ask(state: Path, **asked: str) -> str:
    """Run the program as a shell's completion does."""
    done: subprocess.CompletedProcess[bytes] = await trio.run_process(
        [str(PROGRAM)], env={**cli_environ(state), **asked}, capture_stdout=True
    )
    return done.stdout.decode()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("threadgate ho", {"hosts"}),
        ("threadgate un", {"unarchive", "unlock"}),
        ("threadgate hosts re", {"rename"}),
        ("threadgate devices gr", {"grant"}),
        ("threadgate status --h", {"--host", "--help"}),
    ],
)
async def test_bash_is_offered_commands_and_options(
    tmp_path: Path, words: str, offered: set[str]
) -> None:
    if not PROGRAM.exists():
        pytest.skip("the program is not installed in this environment")
    with trio.fail_after(240):
        said = await ask(
            tmp_path,
            COMP_WORDS=words,
            COMP_CWORD=str(len(words.split()) - 1),
            **{VARIABLE: "complete_bash"},
        )
    assert set(said.split()) == offered


async def offered_for(state: Path, words: str, offered: str) -> None:
    """Ask until this is offered: what takes longer than a moment is not, at once."""
    while True:
        said = await ask(
            state,
            COMP_WORDS=words,
            COMP_CWORD=str(len(words.split()) - 1),
            **{VARIABLE: "complete_bash"},
        )
        if said.split() == offered.split():
            return
        assert not said, (words, said)


async def test_threads_hosts_and_approvals_are_offered_by_their_ids(
    tmp_path: Path,
) -> None:
    if not PROGRAM.exists():
        pytest.skip("the program is not installed in this environment")
    approval = cli_asked.command_approval()
    waiting = ApprovalListResult(approvals=[approval], head=1)
    agent = FakeAgent(answers={"approval/list": lambda _: waiting})
    with trio.fail_after(240):
        async with open_fake_agent(tmp_path / "run" / "admin.sock", agent):
            for words, offered in (
                (f"threadgate read {SHOP[:6]}", SHOP),
                ("threadgate read ffff", ""),
                ("threadgate approve apr_0", approval.id),
                ("threadgate status --host lo", "local"),
            ):
                await offered_for(tmp_path, words, offered)


async def test_an_agent_that_says_nothing_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in cli_environ(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("THREADGATE_RUNTIME_DIR", raising=False)
    ask_here = partial(offers.threads, None, "01")  # starting a program takes any time
    with trio.fail_after(240):
        (listener,) = await unix.listen(tmp_path / "run" / "admin.sock")
        async with listener, open_background(partial(_keep_silent, listener)):
            found = await trio.to_thread.run_sync(ask_here)
    assert found == []
    assert offers.MOMENT_S < 1


async def _keep_silent(
    listener: trio.abc.Listener[trio.SocketStream],
    *,
    task_status: trio.TaskStatus[None],
) -> None:
    task_status.started()
    async with await listener.accept():
        await trio.sleep_forever()


async def test_zsh_is_offered_commands_with_their_help(tmp_path: Path) -> None:
    if not PROGRAM.exists():
        pytest.skip("the program is not installed in this environment")
    with trio.fail_after(240):
        said = await ask(
            tmp_path,
            _TYPER_COMPLETE_ARGS="threadgate doc",
            **{VARIABLE: "complete_zsh"},
        )
    assert '"doctor":' in said


async def test_the_script_for_a_shell_can_be_shown(tmp_path: Path) -> None:
    """It is that of the shell which it is asked from."""
    asked = f"{shlex.join(command_line('--show-completion'))}; exit"
    with trio.fail_after(240):
        done: subprocess.CompletedProcess[bytes] = await trio.run_process(
            ["bash", "-c", asked], env=cli_environ(tmp_path), capture_stdout=True
        )
    assert b"COMPREPLY" in done.stdout
