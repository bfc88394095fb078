"""`threadgate demo`: the main job, told in words, on the real codex. Trio shell.

Everything that is shown is real but three things: the model is scripted, the second
device runs on the same machine, and the desktop's window is a stand-in. Each step checks
what it tells; the first that is not as told ends the demo with an error.
"""

import math
from typing import Final

import trio

from clients.cli import demo_steps as steps
from clients.cli.demo_script import rules
from clients.cli.demo_stage import open_stage
from clients.cli.demo_stay import stay
from clients.cli.exits import CommandError, ExitCode, FailedError
from clients.cli.screen import Screen
from clients.cli.style import Span, bold
from transport.errors import Refusal, TransportError

LIMIT_S: Final = 110.0

_FOR_REAL: Final = """\
At the workstation, with your own codex and its login:
  threadgate serve --tcp 0.0.0.0:7130    (leave it running)
  threadgate pair --scopes read,write,approve
On the other machine:
  uv tool install .                      (in a clone, as here)
  threadgate connect                     (give it the pairing text)
  threadgate status
A device gets only what you name: without --scopes it may read and nothing else;
`threadgate devices revoke` cuts it off at once."""


async def demo(
    screen: Screen, *, story: bool = True, staying: bool = False
) -> ExitCode:
    """Tell the story; FailedError where it is not as told.

    `story` false: only set the stage. `staying`: keep it open until interrupted.
    """
    screen.say(bold("threadgate: your Codex threads, from your other devices"))
    how_long = "It stays until Ctrl-C." if staying else "It takes less than a minute."
    screen.say(f"Nothing of yours is used or changed. {how_long}")
    play: steps.Play | None = None
    try:
        with trio.fail_after(LIMIT_S) as limit:
            async with open_stage(screen, rules()) as stage:
                play = steps.Play(stage)
                await steps.work_at_the_desk(play)
                async with steps.run_agent(play) as agent:
                    if story:
                        await _perform(play)
                    if staying:
                        limit.deadline = math.inf
                        await stay(stage, agent, paired=story)
    except (CommandError, Refusal, TransportError, OSError, trio.TooSlowError) as error:
        where = "before it began" if play is None else f"at step “{play.step}”"
        raise FailedError(f"the demo went wrong {where}: {_why(error)}") from error
    screen.say()
    screen.say(Span("All of it was as told, and all of it is cleaned up.", "good"))
    screen.say()
    screen.say(bold("For real"))
    for row in _FOR_REAL.splitlines():
        screen.say(row)
    return ExitCode.OK


async def _perform(play: steps.Play) -> None:
    await steps.pair_phone(play)
    await steps.look(play)
    await steps.start_thread(play)
    await steps.refuse_a_command(play)
    await steps.approve_a_command(play)
    await steps.use_the_desktop(play)
    await steps.go_on(play)


def _why(error: Exception) -> str:
    if isinstance(error, trio.TooSlowError):
        return f"it took longer than {LIMIT_S:g} s"
    return str(error)
