"""Commands about what goes on without a turn. Blocking I/O."""

from functools import partial
from typing import Annotated

import typer

from clients.cli.commands import completing
from clients.cli.options import AllowPending, AsJson, Host, OneThread, ThreadArg, WaitMs

group = typer.Typer()
queue = typer.Typer(
    help="Messages that wait: list, delete.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@group.command()
def background(
    thread: ThreadArg,
    host: Host = None,
    stop: Annotated[
        str | None,
        typer.Option("--stop", metavar="ITEM", help="End this one first."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the commands that outlived their turn."""
    from clients.cli import entry, waiting

    command = partial(waiting.background, host=host, thread=thread, stop=stop)
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command()
def goal(
    thread: ThreadArg,
    host: Host = None,
    objective: Annotated[
        str | None,
        typer.Option(
            "--set", metavar="TEXT", help="Pursue this: turns start by themselves."
        ),
    ] = None,
    pause: Annotated[
        bool, typer.Option("--pause", help="Start no more turns.")
    ] = False,
    clear: Annotated[bool, typer.Option("--clear", help="Have no goal.")] = False,
    wait_ms: WaitMs = 0,
    allow_pending: AllowPending = False,
    as_json: AsJson = False,
) -> None:
    """Show what a thread pursues by itself, or change it."""
    from clients.cli import entry, waiting

    if sum((objective is not None, pause, clear)) > 1:
        message = "only one of --set, --pause and --clear"
        raise typer.BadParameter(message)
    command = partial(
        waiting.goal,
        host=host,
        thread=thread,
        objective=objective,
        pause=pause,
        clear=clear,
        wait_ms=wait_ms,
        allow_pending=allow_pending,
    )
    raise typer.Exit(entry.run(command, as_json=as_json))


@queue.command("list")
def queue_list(
    thread: OneThread = None,
    host: Host = None,
    as_json: AsJson = False,
) -> None:
    """Show which messages wait, and for what."""
    from clients.cli import entry, waiting

    command = partial(waiting.queue_list, host=host, thread=thread)
    raise typer.Exit(entry.run(command, as_json=as_json))


@queue.command("delete")
def queue_delete(
    message: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="The beginning of its id.",
            autocompletion=completing.queued,
        ),
    ],
    host: Host = None,
    as_json: AsJson = False,
) -> None:
    """Take a message back before it is sent."""
    from clients.cli import entry, waiting

    command = partial(waiting.queue_delete, host=host, message=message)
    raise typer.Exit(entry.run(command, as_json=as_json))
