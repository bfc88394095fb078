"""Commands for a paired device: `connect`, then look. Blocking I/O."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from clients.cli.options import Archived, AsJson, Host, OneThread, ThreadArg

group = typer.Typer()


@group.command(context_settings={"allow_extra_args": True})
def connect(
    context: typer.Context,
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

    if context.args:  # a shell would keep the text
        wrong = "give no text here: `threadgate connect` asks for it"
        raise typer.BadParameter(wrong)
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
    archived: Archived = False,
    query: Annotated[
        str | None,
        typer.Option("--query", metavar="TEXT", help="Only with this in the title."),
    ] = None,
    cwd: Annotated[
        str | None,
        typer.Option(
            "--cwd", metavar="DIR", help="Only of this folder of the workstation."
        ),
    ] = None,
    count: Annotated[
        int,
        typer.Option(
            "--count", "-n", metavar="N", min=1, max=5000, help="At most so many."
        ),
    ] = 20,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="WHEN",
            help="With the turns that began since: 2h, 14:30 or 2026-11-30. At the "
            "workstation also through which device.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List threads, newest change first."""
    from clients.cli import entry, moments, reading
    from clients.cli import since as lately

    if since is not None:
        late = partial(
            lately.threads_since,
            host=host,
            since=moments.read_moment(since),
            archived=archived,
            query=query,
            cwd=cwd,
            count=count,
        )
        raise typer.Exit(entry.run(late, as_json=as_json))
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
            "--turns", "-n", metavar="N", min=0, max=5000, help="How many turns."
        ),
    ] = 5,
    full: Annotated[
        bool, typer.Option("--full", help="Whole outputs, and diffs.")
    ] = False,
    markdown: Annotated[
        bool, typer.Option("--md", help="As Markdown, to keep or to send on.")
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
        reading.read,
        host=host,
        thread=thread,
        turns=turns,
        full=full,
        images=images,
        markdown=markdown,
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
    thread: OneThread = None,
    host: Host = None,
    ask: Annotated[
        bool,
        typer.Option(
            "--ask/--no-ask", help="At a terminal, offer to answer what Codex asks."
        ),
    ] = True,
    as_json: AsJson = False,
) -> None:
    """Show what happens, as it happens."""
    from clients.cli import entry, watching

    command = partial(watching.watch, host=host, thread=thread, ask=ask)
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command()
def models(host: Host = None, as_json: AsJson = False) -> None:
    """List the models there, with the efforts that each takes."""
    from clients.cli import entry, reading

    raise typer.Exit(entry.run(partial(reading.models, host=host), as_json=as_json))


@group.command()
def capabilities(host: Host = None, as_json: AsJson = False) -> None:
    """List what the Codex there can do, and how that is known."""
    from clients.cli import entry, reading

    command = partial(reading.capabilities, host=host)
    raise typer.Exit(entry.run(command, as_json=as_json))
