"""Questions to the person at the terminal. Trio shell.

A line is read when it is there, not waited for in a thread: a question can be taken back
(somebody else has answered it), and then nothing is left that would eat the next line.
"""

import getpass
import os
import select
import sys
import termios
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import trio

from clients.cli.exits import FailedError, UsageProblemError
from clients.cli.plain import safe

MAX_TEXT = 1_000_000  # characters read from stdin; the Agent's own limit is lower
_CHUNK: Final = 4096  # bytes: a terminal hands out lines no longer than that
_FLAGS: Final = 3  # where `tcgetattr` has the local modes


def at_terminal() -> bool:
    """Whether there is a person to ask."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def in_foreground() -> bool:
    """Whether the terminal is ours to ask on; a job of `&` would be stopped for it."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:  # a terminal without job control
        return True


async def confirm(question: str) -> bool:
    """Ask; only `y` and `yes` are a yes, and an empty line or the end of input a no.

    What was typed before the question was there is no answer to it.
    """
    return await read_word(f"{question} [y/N] ") in {"y", "yes"}


async def confirm_for_good(question: str) -> bool:
    """Ask before what cannot be undone. Raises: UsageProblemError: nobody is there."""
    if not at_terminal():
        raise UsageProblemError(
            "there is no terminal to confirm on: add --yes where you are sure"
        )
    return await confirm(question)


async def read_word(prompt: str) -> str:
    """Return what decides, in small letters; empty is no answer.

    So are several lines at once: they were pasted, and meant for something else.
    """
    answer = await read_line(prompt)
    if answer is None or _more_typed():
        return ""
    return answer.strip().lower()


async def ask_line(prompt: str, *, hidden: bool = False) -> str:
    """Return a line, without what stands around it; empty is no answer.

    `hidden`: without echo. Raises: FailedError at the end of input.
    """
    answer = await read_line(prompt, hidden=hidden)
    if answer is None:
        raise FailedError("nothing was answered; it still waits")
    return answer.strip()


async def read_line(prompt: str, *, hidden: bool = False) -> str | None:
    """Return the line that is typed now; `None` at the end of input.

    Whatever ends it, the echo of the terminal is back. The prompt may name what comes
    from afar.
    """
    prompt = safe(prompt)
    if not sys.stdin.isatty():
        print(prompt, end="", flush=True)
        read = sys.stdin.readline
        text = await trio.to_thread.run_sync(read, abandon_on_cancel=True)
        return text.removesuffix("\n") if text else None
    terminal = sys.stdin.fileno()
    with _echo(terminal, hidden=hidden):  # before anybody is asked to type
        forget_typed()
        print(prompt, end="", flush=True)
        return await _typed(terminal)


async def _typed(terminal: int) -> str | None:
    typed = b""
    while not typed.endswith(b"\n"):
        await trio.lowlevel.wait_readable(terminal)
        more = os.read(terminal, _CHUNK)
        if not more:  # Ctrl-D, or nobody there: what has no end is no line
            return None
        typed += more
    return typed.decode(sys.stdin.encoding, "replace").removesuffix("\n")


@contextmanager
def _echo(terminal: int, *, hidden: bool) -> Generator[None]:
    if not hidden:
        yield
        return
    before = termios.tcgetattr(terminal)
    quiet = list(before)
    quiet[_FLAGS] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
        print(flush=True)  # the line feed that was not seen


def _more_typed() -> bool:
    return sys.stdin.isatty() and bool(select.select([sys.stdin], [], [], 0)[0])


def forget_typed() -> None:
    """Drop what waits in the terminal, if stdin is one."""
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def read_pairing_text() -> str:
    """Return the pairing text: typed or pasted without echo, else all of stdin.

    Never an argument: those can be read by every program of the machine.
    """
    if sys.stdin.isatty():
        return getpass.getpass("Pairing text (it is not shown): ")
    return sys.stdin.read(MAX_TEXT)


def read_text(text: str) -> str:
    """Return the message that a command was given; `-` reads it from stdin.

    Raises: UsageProblemError where there is none.
    """
    if text == "-":
        if sys.stdin.isatty():
            print("The message, to its end with Ctrl-D:", file=sys.stderr, flush=True)
        text = sys.stdin.read(MAX_TEXT).rstrip("\n")
    if not text.strip():
        raise UsageProblemError("the message is empty")
    return text
