"""Commands that start a turn, or change what it runs with. Blocking I/O."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from clients.cli.options import (
    AllowPending,
    AsJson,
    Effort,
    Folder,
    Follow,
    Host,
    Images,
    Key,
    Mentions,
    Model,
    OnlyTurn,
    Plan,
    Policy,
    Sandbox,
    Schema,
    Text,
    ThreadArg,
    WaitMs,
    mode_of,
)

if TYPE_CHECKING:
    from clients.cli.message import Enclosed
    from clients.cli.screen import Screen
    from transport.protocol.gateway import ApprovalPolicyName, SandboxName

group = typer.Typer()


def _enclosed(
    images: Sequence[Path] | None,
    mentions: Sequence[str] | None,
    schema: Path | None = None,
) -> "Enclosed":
    from clients.cli.message import Enclosed

    return Enclosed(images=images or (), mentions=mentions or (), schema=schema)


def _sent(
    command: "Callable[[Screen, str], Awaitable[int]]", text: str, *, as_json: bool
) -> typer.Exit:
    """Run a command with its message, which may come from stdin; return how it ended."""
    from clients.cli import asking, entry

    read_text = partial(asking.read_text, text)
    return typer.Exit(entry.run_with_text(command, read_text, as_json=as_json))


@group.command()
def send(
    thread: ThreadArg,
    text: Text,
    host: Host = None,
    follow: Follow = True,
    wait_ms: WaitMs = 0,
    after: Annotated[
        str | None,
        typer.Option(
            "--after",
            metavar="TURN",
            help="The last turn that you saw; refused if there is a newer one.",
        ),
    ] = None,
    allow_pending: AllowPending = False,
    when_free: Annotated[
        bool,
        typer.Option(
            "--when-free", help="Let the Agent send it once the thread is free."
        ),
    ] = False,
    steer: Annotated[
        bool,
        typer.Option("--steer", help="Put it into the turn that runs, if one does."),
    ] = False,
    model: Model = None,
    effort: Effort = None,
    plan: Plan = None,
    cwd: Folder = None,
    schema: Schema = None,
    images: Images = None,
    mentions: Mentions = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Continue a thread with a message."""
    from clients.cli import message, sending

    if when_free and steer:
        wrong = "either --when-free or --steer"
        raise typer.BadParameter(wrong)
    manner = message.Manner(
        delivery="queue" if when_free else "steer" if steer else "start",
        model=model,
        effort=effort,
        mode=mode_of(plan),
        cwd=cwd,
    )
    command = partial(
        sending.send,
        host=host,
        thread=thread,
        follow=follow,
        wait_ms=wait_ms,
        after=after,
        allow_pending=allow_pending,
        key=key,
        manner=manner,
        enclosed=_enclosed(images, mentions, schema),
    )
    raise _sent(command, text, as_json=as_json)


@group.command()
def steer(
    thread: ThreadArg,
    text: Text,
    host: Host = None,
    turn: OnlyTurn = None,
    follow: Follow = True,
    wait_ms: WaitMs = 0,
    images: Images = None,
    mentions: Mentions = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Put more words into the turn that runs."""
    from clients.cli import sending

    command = partial(
        sending.steer,
        host=host,
        thread=thread,
        turn=turn,
        follow=follow,
        wait_ms=wait_ms,
        key=key,
        enclosed=_enclosed(images, mentions),
    )
    raise _sent(command, text, as_json=as_json)


@group.command()
def new(
    text: Text,
    cwd: Annotated[
        str,
        typer.Option("--cwd", metavar="DIR", help="The folder, on the workstation."),
    ],
    host: Host = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="TITLE", help="The thread's title.")
    ] = None,
    follow: Follow = True,
    wait_ms: WaitMs = 0,
    model: Model = None,
    effort: Effort = None,
    plan: Plan = None,
    sandbox: Sandbox = None,
    policy: Policy = None,
    schema: Schema = None,
    images: Images = None,
    mentions: Mentions = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Start a thread with its first message.

    What is not named is left to Codex's own configuration there.
    """
    from clients.cli import message, starting

    terms = starting.Terms(
        name=name,
        sandbox=cast("SandboxName | None", sandbox),
        approval_policy=cast("ApprovalPolicyName | None", policy),
    )
    command = partial(
        starting.new,
        host=host,
        cwd=cwd,
        follow=follow,
        wait_ms=wait_ms,
        key=key,
        terms=terms,
        manner=message.Manner(model=model, effort=effort, mode=mode_of(plan)),
        enclosed=_enclosed(images, mentions, schema),
    )
    raise _sent(command, text, as_json=as_json)


@group.command()
def fork(
    thread: ThreadArg,
    text: Text = "-",
    host: Host = None,
    through: Annotated[
        str | None,
        typer.Option("--through", metavar="TURN", help="The copy ends with this turn."),
    ] = None,
    before: Annotated[
        str | None,
        typer.Option("--before", metavar="TURN", help="It ends before this turn."),
    ] = None,
    follow: Follow = True,
    wait_ms: WaitMs = 0,
    model: Model = None,
    effort: Effort = None,
    plan: Plan = None,
    cwd: Folder = None,
    schema: Schema = None,
    images: Images = None,
    mentions: Mentions = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Go on in a copy of a thread, which itself stays as it is."""
    from clients.cli import message, starting

    if through is not None and before is not None:
        wrong = "either --through or --before"
        raise typer.BadParameter(wrong)
    command = partial(
        starting.fork,
        host=host,
        thread=thread,
        through=through,
        before=before,
        follow=follow,
        wait_ms=wait_ms,
        key=key,
        manner=message.Manner(model=model, effort=effort, mode=mode_of(plan), cwd=cwd),
        enclosed=_enclosed(images, mentions, schema),
    )
    raise _sent(command, text, as_json=as_json)


@group.command()
def interrupt(
    thread: ThreadArg,
    host: Host = None,
    turn: OnlyTurn = None,
    background: Annotated[
        bool,
        typer.Option("--background", help="End its background commands as well."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Stop the turn that runs in a thread."""
    from clients.cli import entry, sending

    command = partial(
        sending.interrupt, host=host, thread=thread, turn=turn, background=background
    )
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command()
def settings(
    thread: ThreadArg,
    host: Host = None,
    model: Model = None,
    effort: Effort = None,
    plan: Plan = None,
    sandbox: Sandbox = None,
    policy: Policy = None,
    cwd: Folder = None,
    wait_ms: WaitMs = 0,
    allow_pending: AllowPending = False,
    as_json: AsJson = False,
) -> None:
    """Show the model, sandbox … of a thread; set what is named."""
    from clients.cli import entry, tuning

    wanted = tuning.Wanted(
        model=model,
        effort=effort,
        mode=mode_of(plan),
        sandbox=cast("SandboxName | None", sandbox),
        approval_policy=cast("ApprovalPolicyName | None", policy),
        cwd=cwd,
    )
    command = partial(
        tuning.settings,
        host=host,
        thread=thread,
        wanted=wanted,
        wait_ms=wait_ms,
        allow_pending=allow_pending,
    )
    raise typer.Exit(entry.run(command, as_json=as_json))
