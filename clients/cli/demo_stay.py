"""The demo's stage, left open for who wants to type for themselves. Trio shell."""

import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from clients.cli import demo_script as script
from clients.cli.demo_actors import Actor, Running
from clients.cli.demo_desktop import install_window
from clients.cli.demo_stage import Stage
from clients.cli.exits import FailedError
from clients.cli.folders import STATE_DIR
from clients.cli.screen import Screen
from clients.cli.style import bold


async def stay(stage: Stage, agent: Running, *, paired: bool) -> None:
    """Say what to type, then keep everything open until it is interrupted.

    Raises: FailedError where the Agent ends by itself.
    """
    _say(stage.screen, stage, paired=paired)
    await agent.end()
    raise FailedError("the Agent of the demo has ended")


def _say(screen: Screen, stage: Stage, *, paired: bool) -> None:
    folder = shlex.quote(str(stage.workspace))
    pair = [f"threadgate pair --scopes read,write,approve --only {folder}"]
    connect = ["threadgate connect --name phone     (give it the text of pair)"]
    look = [
        "threadgate threads",
        f'threadgate new --cwd {folder} "{script.BREADS}"',
    ]
    screen.say()
    screen.say(bold("Your turn"))
    screen.say("All of this stays open. In a second terminal you are the workstation:")
    codex = ("CODEX_HOME", "THREADGATE_CODEX")  # `doctor` looks at these
    _rows(screen, [*_setting(stage.desk, *codex), *([] if paired else pair)])
    screen.say("In a third one you are the phone:")
    _rows(screen, [*_setting(stage.phone), *([] if paired else connect), *look])
    screen.say("The scripted model knows these, and says anything else back to you:")
    _rows(screen, [f'"{text}"' for text in script.KNOWN])
    screen.say(
        "A stand-in for Codex desktop opens, and closes, in the second terminal by:"
    )
    _rows(screen, _desktop(stage))
    screen.say("Ctrl-C here ends and removes all of it; so does the end of its Agent.")


def _rows(screen: Screen, rows: list[str]) -> None:
    for row in rows:
        screen.say(f"  {row}")


def _desktop(stage: Stage) -> list[str]:
    """Return what opens the desktop's window in bash or zsh, and what closes it."""
    home = shlex.quote(stage.codex_environ["CODEX_HOME"])
    window = shlex.quote(str(install_window(stage.folder)))
    # Where `sleep` is one of many programs in one file, it goes by its first argument.
    return [f"(CODEX_HOME={home} exec -a sleep {window} 600) &", "kill $!"]


def _setting(actor: Actor, *more: str) -> Iterator[str]:
    for name in (STATE_DIR, *more):
        yield f"export {name}={shlex.quote(actor.environ[name])}"
    if shutil.which("threadgate") is None:
        yield f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH"
