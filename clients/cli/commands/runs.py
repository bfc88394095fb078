"""Commands that have Codex work on a thread itself: compact, revert, review. Blocking I/O."""

from functools import partial
from typing import Annotated

import typer

from clients.cli.options import (
    AllowPending,
    AsJson,
    Follow,
    Host,
    Key,
    ThreadArg,
    WaitMs,
    Yes,
)

group = typer.Typer()


@group.command()
def compact(
    thread: ThreadArg,
    host: Host = None,
    follow: Follow = True,
    wait_ms: WaitMs = 0,
    allow_pending: AllowPending = False,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Sum up what the model has read, so that it has room again."""
    from clients.cli import entry, reviewing

    command = partial(
        reviewing.compact,
        host=host,
        thread=thread,
        follow=follow,
        wait_ms=wait_ms,
        allow_pending=allow_pending,
        key=key,
    )
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command()
def revert(
    thread: ThreadArg,
    before: Annotated[
        str,
        typer.Option("--before", metavar="TURN", help="The first turn that goes."),
    ],
    host: Host = None,
    yes: Yes = False,
    wait_ms: WaitMs = 0,
    as_json: AsJson = False,
) -> None:
    """Take a turn and all behind it back, for good; files stay. It asks first."""
    from clients.cli import entry, reverting

    command = partial(
        reverting.revert,
        host=host,
        thread=thread,
        before=before,
        yes=yes,
        wait_ms=wait_ms,
    )
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command()
def review(
    thread: ThreadArg,
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help="What to look at, in words."),
    ] = None,
    uncommitted: Annotated[
        bool,
        typer.Option("--uncommitted", help="What is not committed (the default)."),
    ] = False,
    branch: Annotated[
        str | None,
        typer.Option("--branch", metavar="BASE", help="What is new since this branch."),
    ] = None,
    commit: Annotated[
        str | None, typer.Option("--commit", metavar="SHA", help="One commit.")
    ] = None,
    host: Host = None,
    follow: Follow = True,
    wait_ms: WaitMs = 0,
    allow_pending: AllowPending = False,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Have changes reviewed; it asks for no approval."""
    from clients.cli import entry, reviewing

    command = partial(
        reviewing.review,
        host=host,
        thread=thread,
        wanted=reviewing.Wanted(
            text=text, branch=branch, commit=commit, uncommitted=uncommitted
        ),
        follow=follow,
        wait_ms=wait_ms,
        allow_pending=allow_pending,
        key=key,
    )
    raise typer.Exit(entry.run(command, as_json=as_json))
