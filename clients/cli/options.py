"""Arguments and options that several commands share. Sans-IO (declarations for Typer)."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from clients.cli.commands import completing

if TYPE_CHECKING:
    from transport.protocol.gateway import ScopeName
    from transport.protocol.turns import ModeName

SCOPES = ("read", "write", "approve", "approve.session")
SANDBOXES = ("read-only", "workspace-write", "danger-full-access")
POLICIES = ("untrusted", "on-request", "never")
LONGEST_WAIT_S = 90  # an Agent lets nobody wait longer


def check_key(key: str | None) -> str | None:
    """Return a request key as it is. Raises: typer.BadParameter."""
    if key is not None and not re.fullmatch(r"[\x21-\x7e]{16,64}", key):
        raise typer.BadParameter("a key is 16 to 64 characters without spaces")
    return key


def read_wait(seconds: str | float) -> int:
    """Return seconds as ms. Raises: typer.BadParameter."""
    try:
        found = float(seconds)
    except ValueError:
        found = -1.0
    if not 0 <= found <= LONGEST_WAIT_S:
        raise typer.BadParameter(f"0 to {LONGEST_WAIT_S} seconds")
    return round(found * 1000)


def one_of(words: tuple[str, ...]) -> Callable[[str | None], str | None]:
    """Return what lets these words through. It raises typer.BadParameter."""

    def check(word: str | None) -> str | None:
        if word is not None and word not in words:
            raise typer.BadParameter(f"one of {', '.join(words)}")
        return word

    return check


def mode_of(plan: bool | None) -> "ModeName | None":
    """Return what `--plan` and `--no-plan` mean."""
    return None if plan is None else "plan" if plan else "default"


Host = Annotated[
    str | None,
    typer.Option(
        "--host",
        metavar="NAME",
        autocompletion=completing.hosts,
        help="Which paired host; `local` is the Agent of this machine.",
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="JSON on stdout: one value, streams as lines.")
]
ThreadArg = Annotated[
    str,
    typer.Argument(
        metavar="THREAD",
        help="The beginning of a thread's id.",
        autocompletion=completing.threads,
    ),
]
OneThread = Annotated[
    str | None,
    typer.Argument(
        metavar="THREAD",
        help="Only of this thread.",
        autocompletion=completing.threads,
    ),
]
ApprovalArg = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The beginning of an approval's id.",
        autocompletion=completing.approvals,
    ),
]
Digest = Annotated[
    str | None,
    typer.Option(
        "--digest",
        metavar="DIGEST",
        help="Only if it is still what I saw (`approvals --json` tells it).",
    ),
]
Text = Annotated[
    str, typer.Argument(metavar="TEXT", help="The message; `-` reads it from stdin.")
]
Follow = Annotated[
    bool,
    typer.Option("--follow/--no-follow", help="Show the turn until it ends."),
]
Archived = Annotated[bool, typer.Option("--archived", help="Archived ones instead.")]
WaitMs = Annotated[
    int,
    typer.Option(
        "--wait",
        metavar="SECONDS",
        parser=read_wait,
        help="Wait so long, 90 at most, where others write or hold the thread.",
    ),
]
AllowPending = Annotated[
    bool,
    typer.Option(
        "--allow-pending", help="Also where this starts what another program queued."
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model", metavar="MODEL", help="Another model, from now on; see `models`."
    ),
]
Effort = Annotated[
    str | None,
    typer.Option(
        "--effort", metavar="WORD", help="Another effort, from now on; see `models`."
    ),
]
Plan = Annotated[
    bool | None,
    typer.Option("--plan/--no-plan", help="Plan only, or work, from now on."),
]
Folder = Annotated[
    str | None, typer.Option("--cwd", metavar="DIR", help="Work here from now on.")
]
Schema = Annotated[
    Path | None,
    typer.Option(
        "--schema",
        metavar="FILE",
        help="Ask for JSON that fits the JSON Schema in this file, this once.",
    ),
]
OnlyTurn = Annotated[
    str | None, typer.Option("--turn", metavar="TURN", help="Only if this turn runs.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask: I am sure.")]
Sandbox = Annotated[
    str | None,
    typer.Option(
        "--sandbox",
        metavar="WORD",
        callback=one_of(SANDBOXES),
        help=f"One of {', '.join(SANDBOXES)}.",
    ),
]
Policy = Annotated[
    str | None,
    typer.Option(
        "--approval-policy",
        metavar="WORD",
        callback=one_of(POLICIES),
        help=f"When Codex asks: one of {', '.join(POLICIES)}.",
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="KEY",
        callback=check_key,
        help="The key of an earlier request: tells how it went, does not do it twice.",
    ),
]
Images = Annotated[
    list[Path] | None,
    typer.Option(
        "--image", metavar="FILE", help="Send a picture file along; may be repeated."
    ),
]
Mentions = Annotated[
    list[str] | None,
    typer.Option(
        "--mention",
        metavar="PATH",
        help="Point to a file of the thread's folder, by its path in there; may be repeated.",
    ),
]
Only = Annotated[
    list[Path] | None,
    typer.Option(
        "--only", metavar="DIR", help="Only threads in this folder; may be repeated."
    ),
]


def read_words(text: str, known: tuple[str, ...], what: str) -> list[str]:
    """Return the words of a list with commas. Raises: typer.BadParameter."""
    words = [word.strip() for word in text.split(",")]
    if wrong := [word for word in words if word not in known]:
        told = ", ".join(wrong) or "nothing"
        raise typer.BadParameter(f"{told}: {what} are {', '.join(known)}")
    return words


def read_scopes(text: str) -> "list[ScopeName]":
    """Return the scopes of a list with commas. Raises: typer.BadParameter."""
    return cast("list[ScopeName]", read_words(text, SCOPES, "scopes"))
