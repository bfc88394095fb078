"""Commands about turns that run, and what goes on without one. Blocking I/O."""

from functools import partial
from typing import Annotated

import typer

from clients.cli.options import AsJson, Follow, Host, Key, Text, ThreadArg

group = typer.Typer()
queue = typer.Typer(
    help="Messages that wait: list, delete.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@group.command()
def steer(
    thread: ThreadArg,
    text: Text,
    host: Host = None,
    turn: Annotated[
        str | None,
        typer.Option("--turn", metavar="TURN", help="Only if this turn runs."),
    ] = None,
    follow: Follow = True,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Put more words into the turn that runs."""
    from clients.cli import asking, entry, sending

    command = partial(
        sending.steer, host=host, thread=thread, turn=turn, follow=follow, key=key
    )
    read_text = partial(asking.read_text, text)
    raise typer.Exit(entry.run_with_text(command, read_text, as_json=as_json))


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
    as_json: AsJson = False,
) -> None:
    """Show what a thread pursues by itself; set, pause or clear it."""
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
    )
    raise typer.Exit(entry.run(command, as_json=as_json))


@queue.command("list")
def queue_list(
    thread: Annotated[
        str | None, typer.Argument(metavar="[THREAD]", help="Only of this thread.")
    ] = None,
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
        str, typer.Argument(metavar="ID", help="The beginning of its id.")
    ],
    host: Host = None,
    as_json: AsJson = False,
) -> None:
    """Take a message back before it is sent."""
    from clients.cli import entry, waiting

    command = partial(waiting.queue_delete, host=host, message=message)
    raise typer.Exit(entry.run(command, as_json=as_json))
