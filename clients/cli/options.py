"""Arguments and options that several commands share. Sans-IO (declarations for Typer)."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

if TYPE_CHECKING:
    from transport.protocol.gateway import ScopeName

SCOPES = ("read", "write", "approve", "approve.session")
SANDBOXES = ("read-only", "workspace-write", "danger-full-access")
POLICIES = ("untrusted", "on-request", "never")


def check_key(key: str | None) -> str | None:
    """Return a request key as it is. Raises: typer.BadParameter."""
    if key is not None and not re.fullmatch(r"[\x21-\x7e]{16,64}", key):
        raise typer.BadParameter("a key is 16 to 64 characters without spaces")
    return key


Host = Annotated[
    str | None,
    typer.Option(
        "--host",
        metavar="NAME",
        help="Which paired host; `local` is the Agent of this machine.",
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="JSON on stdout: one value, streams as lines.")
]
ThreadArg = Annotated[
    str, typer.Argument(metavar="THREAD", help="The beginning of a thread's id.")
]
ApprovalArg = Annotated[
    str, typer.Argument(metavar="ID", help="The beginning of an approval's id.")
]
Text = Annotated[
    str, typer.Argument(metavar="TEXT", help="The message; `-` reads it from stdin.")
]
Follow = Annotated[
    bool,
    typer.Option("--follow/--no-follow", help="Show the turn until it ends."),
]
Wait = Annotated[
    float,
    typer.Option(
        "--wait",
        metavar="SECONDS",
        min=0,
        max=90,
        help="How long to wait for a closed gate or a thread that others hold.",
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="KEY",
        callback=check_key,
        help="Ask again about an earlier request; it is not done twice.",
    ),
]
Images = Annotated[
    list[Path] | None,
    typer.Option(
        "--image", metavar="FILE", help="A picture of this machine; may be repeated."
    ),
]
Mentions = Annotated[
    list[str] | None,
    typer.Option(
        "--mention",
        metavar="PATH",
        help="A file of the thread's folder, by its path in there; may be repeated.",
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
