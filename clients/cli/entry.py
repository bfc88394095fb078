"""One command, from `trio.run` to its exit code. Trio shell."""

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import trio

from clients.cli.exits import UNWRITABLE, ExitCode, ending
from clients.cli.screen import Screen, open_screen
from transport.background import open_background
from transport.errors import Refusal

Command = Callable[[Screen], Awaitable[int]]

_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SIGNAL_CODE: Final = 128  # plus its number: what shells say of a program it ended


def run(command: Command, *, as_json: bool = False) -> int:
    """Run a command; return what the process exits with. Errors become one line."""
    return guard(
        lambda screen: trio.run(_interruptible, command, screen), as_json=as_json
    )


def run_with_text(
    command: Callable[[Screen, str], Awaitable[int]],
    read: Callable[[], str],
    *,
    as_json: bool = False,
) -> int:
    """Run a command that needs text from stdin or a prompt.

    It is read before Trio runs: Ctrl-C then ends a prompt, and its echo comes back.
    """

    def act(screen: Screen) -> int:
        text = read()
        return trio.run(_interruptible, partial(_with, command, text), screen)

    return guard(act, as_json=as_json)


async def _with(
    command: Callable[[Screen, str], Awaitable[int]], text: str, screen: Screen
) -> int:
    return await command(screen, text)


def guard(act: Callable[[Screen], int], *, as_json: bool = False) -> int:
    """Call `act`; turn what it raises into one line and an exit code."""
    screen = open_screen(as_json=as_json)
    try:
        return act(screen)
    except KeyboardInterrupt:
        return _SIGNAL_CODE + signal.SIGINT
    except BrokenPipeError:  # the reader of our output left (`| head`)
        _forget_output()
        return ExitCode.FAILED
    except Exception as error:  # noqa: BLE001 - what is not ours is raised again
        if isinstance(error, OSError) and error.errno in UNWRITABLE:
            _forget_output()
        return _ended_by(error, screen)


def _forget_output() -> None:
    """Let go of what is not yet written: Python would complain of it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


async def _interruptible(command: Command, screen: Screen) -> int:
    """Ctrl-C cancels, so that what was opened is closed in order."""
    heard: list[int] = []
    with trio.CancelScope() as scope:
        async with open_background(partial(_cancel_on_signal, scope, heard)):
            return await command(screen)
    return _SIGNAL_CODE + heard[0]


async def _cancel_on_signal(
    scope: trio.CancelScope, heard: list[int], *, task_status: trio.TaskStatus[None]
) -> None:
    with trio.open_signal_receiver(*_ENDING) as signals:
        task_status.started()
        async for number in signals:
            heard.append(number)
            scope.cancel(reason="a signal to end")


def _ended_by(error: Exception, screen: Screen) -> int:
    end = ending(error, screen.clock())
    if end is None:
        raise error
    if screen.as_json and isinstance(error, Refusal):
        screen.json({"error": error.wire()})
    screen.problem(end.message, end.details)
    return end.code
