"""Commands for a paired device: `connect`, then look and act. Blocking I/O."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from clients.cli.options import (
    ApprovalArg,
    AsJson,
    Follow,
    Host,
    Images,
    Key,
    Mentions,
    Text,
    ThreadArg,
    Wait,
)

group = typer.Typer()


@group.command()
def connect(
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="What the workstation will know this device by.",
        ),
    ] = None,
    via: Annotated[
        str | None,
        typer.Option(
            "--via",
            metavar="WAY",
            help="Another way there: ssh://HOST, or a command whose other end runs "
            "`threadgate stdio`. It is kept.",
        ),
    ] = None,
) -> None:
    """Pair this machine with an Agent.

    Asks for the pairing text, or reads it from stdin.
    """
    from clients.cli import asking, entry, pairing

    command = partial(pairing.connect, name=name, via=via)
    raise typer.Exit(entry.run_with_text(command, asking.read_pairing_text))


@group.command()
def status(host: Host = None, as_json: AsJson = False) -> None:
    """Say whether you can write, and what waits.

    The first line is the answer; where you cannot write it names who does.
    """
    from clients.cli import entry, reading

    raise typer.Exit(entry.run(partial(reading.status, host=host), as_json=as_json))


@group.command()
def threads(
    host: Host = None,
    archived: Annotated[
        bool, typer.Option("--archived", help="Archived ones instead.")
    ] = False,
    query: Annotated[
        str | None, typer.Option("--query", metavar="TEXT", help="Part of a title.")
    ] = None,
    cwd: Annotated[
        str | None,
        typer.Option("--cwd", metavar="DIR", help="Of this folder of the workstation."),
    ] = None,
    count: Annotated[
        int,
        typer.Option(
            "--count", "-n", metavar="N", min=1, max=5000, help="At most so many."
        ),
    ] = 20,
    as_json: AsJson = False,
) -> None:
    """List threads, newest change first."""
    from clients.cli import entry, reading

    command = partial(
        reading.threads,
        host=host,
        archived=archived,
        query=query,
        cwd=cwd,
        count=count,
    )
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command()
def read(
    thread: ThreadArg,
    host: Host = None,
    turns: Annotated[
        int,
        typer.Option(
            "--turns", "-n", metavar="N", min=0, max=100, help="How many turns."
        ),
    ] = 5,
    full: Annotated[
        bool, typer.Option("--full", help="Whole outputs, and diffs.")
    ] = False,
    images: Annotated[
        Path | None,
        typer.Option(
            "--images", metavar="DIR", help="Also fetch their pictures into a folder."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the newest turns of a thread."""
    from clients.cli import entry, reading

    command = partial(
        reading.read, host=host, thread=thread, turns=turns, full=full, images=images
    )
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command()
def save(
    picture: Annotated[
        str, typer.Argument(metavar="PICTURE", help="Its id, as `read` shows it.")
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file, here.")],
    host: Host = None,
) -> None:
    """Fetch a picture that a turn made or looked at."""
    from clients.cli import entry, pictures

    command = partial(pictures.save, host=host, picture=picture, file=file)
    raise typer.Exit(entry.run(command))


@group.command()
def watch(
    thread: Annotated[
        str | None,
        typer.Argument(metavar="THREAD", help="The beginning of a thread's id."),
    ] = None,
    host: Host = None,
    as_json: AsJson = False,
) -> None:
    """Show what happens, as it happens."""
    from clients.cli import entry, watching

    command = partial(watching.watch, host=host, thread=thread)
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command()
def send(
    thread: ThreadArg,
    text: Text,
    host: Host = None,
    follow: Follow = True,
    wait: Wait = 0,
    after: Annotated[
        str | None,
        typer.Option(
            "--after",
            metavar="TURN",
            help="The last turn that you saw; refused if there is a newer one.",
        ),
    ] = None,
    allow_pending: Annotated[
        bool,
        typer.Option(
            "--allow-pending", help="Even if this also starts what others queued."
        ),
    ] = False,
    when_free: Annotated[
        bool,
        typer.Option("--when-free", help="Let it wait until the thread is free."),
    ] = False,
    steer: Annotated[
        bool,
        typer.Option("--steer", help="Into the turn that runs, if one does."),
    ] = False,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="MODEL", help="From now on; see `models`."),
    ] = None,
    effort: Annotated[
        str | None, typer.Option("--effort", metavar="WORD", help="From now on.")
    ] = None,
    plan: Annotated[
        bool | None,
        typer.Option("--plan/--no-plan", help="Plan only, or work, from now on."),
    ] = None,
    cwd: Annotated[
        str | None,
        typer.Option("--cwd", metavar="DIR", help="Work here from now on."),
    ] = None,
    images: Images = None,
    mentions: Mentions = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Continue a thread with a message."""
    from clients.cli import asking, entry, sending

    if when_free and steer:
        message = "either --when-free or --steer"
        raise typer.BadParameter(message)
    manner = sending.Manner(
        delivery="queue" if when_free else "steer" if steer else "start",
        model=model,
        effort=effort,
        mode=None if plan is None else "plan" if plan else "default",
        cwd=cwd,
    )
    command = partial(
        sending.send,
        host=host,
        thread=thread,
        follow=follow,
        wait_ms=round(wait * 1000),
        after=after,
        allow_pending=allow_pending,
        key=key,
        images=images or (),
        mentions=mentions or (),
        manner=manner,
    )
    read_text = partial(asking.read_text, text)
    raise typer.Exit(entry.run_with_text(command, read_text, as_json=as_json))


@group.command()
def new(
    text: Text,
    cwd: Annotated[
        str,
        typer.Option("--cwd", metavar="DIR", help="The folder, on the workstation."),
    ],
    host: Host = None,
    follow: Follow = True,
    wait: Wait = 0,
    images: Images = None,
    mentions: Mentions = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Start a thread with its first message."""
    from clients.cli import asking, entry, sending

    command = partial(
        sending.new,
        host=host,
        cwd=cwd,
        follow=follow,
        wait_ms=round(wait * 1000),
        key=key,
        images=images or (),
        mentions=mentions or (),
    )
    read_text = partial(asking.read_text, text)
    raise typer.Exit(entry.run_with_text(command, read_text, as_json=as_json))


@group.command()
def interrupt(
    thread: ThreadArg,
    host: Host = None,
    turn: Annotated[
        str | None,
        typer.Option("--turn", metavar="TURN", help="Only if this turn runs."),
    ] = None,
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
def approvals(
    thread: Annotated[
        str | None, typer.Argument(metavar="THREAD", help="Only of this thread.")
    ] = None,
    host: Host = None,
    as_json: AsJson = False,
) -> None:
    """Show what waits for an answer, whole."""
    from clients.cli import entry, reading

    command = partial(reading.approvals, host=host, thread=thread)
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command()
def models(host: Host = None, as_json: AsJson = False) -> None:
    """List the models there, with the efforts that each takes."""
    from clients.cli import entry, reading

    raise typer.Exit(entry.run(partial(reading.models, host=host), as_json=as_json))


@group.command()
def approve(
    approval: ApprovalArg,
    host: Host = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask: I know what it says.")
    ] = False,
    remember: Annotated[
        bool,
        typer.Option(
            "--remember", help="The same again, until the thread is unloaded."
        ),
    ] = False,
    digest: Annotated[
        str | None,
        typer.Option(
            "--digest",
            metavar="DIGEST",
            help="Only if it is still what I saw (`approvals --json` tells it).",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Allow exactly what is shown."""
    from clients.cli import answering, entry

    command = partial(
        answering.approve,
        host=host,
        approval=approval,
        yes=yes,
        remember=remember,
        digest=digest,
    )
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command()
def answer(
    approval: ApprovalArg,
    host: Host = None,
    answers: Annotated[
        str | None,
        typer.Option(
            "--answers",
            metavar="JSON",
            help='Texts by question, like {"q1": "Red"}; `-` reads stdin.',
        ),
    ] = None,
    content: Annotated[
        str | None,
        typer.Option(
            "--content",
            metavar="JSON",
            help='A form\'s values, like {"colour": "red"}; `-` reads stdin.',
        ),
    ] = None,
    digest: Annotated[
        str | None,
        typer.Option("--digest", help="Only if it is still what I saw (--json)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question of Codex, or fill in a form.

    Asks at the terminal; secrets are typed without echo.
    """
    from clients.cli import answering, entry, filling

    command = partial(answering.answer, host=host, approval=approval, digest=digest)
    read = filling.read_filled(answers, content)
    raise typer.Exit(entry.run_with_text(command, read, as_json=as_json))


@group.command()
def deny(
    approval: ApprovalArg,
    host: Host = None,
    stop: Annotated[
        bool, typer.Option("--stop", help="Stop the whole turn as well.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Decline what is asked; Codex goes on without it."""
    from clients.cli import answering, entry

    command = partial(answering.deny, host=host, approval=approval, stop=stop)
    raise typer.Exit(entry.run(command, as_json=as_json))
