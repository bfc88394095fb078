"""Questions to the person at the terminal. Trio shell."""

import getpass
import sys
import termios

import trio

from clients.cli.exits import FailedError, UsageProblemError

MAX_TEXT = 1_000_000  # characters read from stdin; the Agent's own limit is lower


def at_terminal() -> bool:
    """Whether there is a person to ask."""
    return sys.stdin.isatty() and sys.stdout.isatty()


async def confirm(question: str) -> bool:
    """Ask; only `y` and `yes` are a yes, and an empty line or the end of input a no.

    What was typed before the question was there is no answer to it. The connection is
    kept alive meanwhile: waiting happens in a thread.
    """

    def ask() -> str:
        forget_typed()
        try:
            return input(f"{question} [y/N] ")
        except EOFError:
            return ""

    answer = await trio.to_thread.run_sync(ask, abandon_on_cancel=True)
    return answer.strip().lower() in {"y", "yes"}


async def ask_line(prompt: str, *, hidden: bool = False) -> str:
    """Return a line, without what stands around it; empty is no answer.

    `hidden`: without echo. Raises: FailedError at the end of input.
    """

    def ask() -> str | None:
        forget_typed()
        try:
            return getpass.getpass(prompt) if hidden else input(prompt)
        except EOFError:
            return None

    answer = await trio.to_thread.run_sync(ask, abandon_on_cancel=True)
    if answer is None:
        raise FailedError("nothing was answered; it still waits")
    return answer.strip()


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
        text = sys.stdin.read(MAX_TEXT).rstrip("\n")
    if not text.strip():
        raise UsageProblemError("the message is empty")
    return text
