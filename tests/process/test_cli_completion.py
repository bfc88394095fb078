"""Shell completion as bash and zsh ask for it."""

import subprocess
import sys
from pathlib import Path

import pytest
import trio

from tests.support.cli_runs import cli_environ, run_cli

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
    with trio.fail_after(30):
        said = await ask(
            tmp_path,
            COMP_WORDS=words,
            COMP_CWORD=str(len(words.split()) - 1),
            **{VARIABLE: "complete_bash"},
        )
    assert set(said.split()) == offered


async def test_zsh_is_offered_commands_with_their_help(tmp_path: Path) -> None:
    if not PROGRAM.exists():
        pytest.skip("the program is not installed in this environment")
    with trio.fail_after(30):
        said = await ask(
            tmp_path,
            _TYPER_COMPLETE_ARGS="threadgate doc",
            **{VARIABLE: "complete_zsh"},
        )
    assert '"doctor":' in said


async def test_the_script_for_a_shell_can_be_shown(tmp_path: Path) -> None:
    with trio.fail_after(30):
        ran = await run_cli("--show-completion", "bash", environ=cli_environ(tmp_path))
    assert ran.code == 0, ran
    assert "COMPREPLY" in ran.out
