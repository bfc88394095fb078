"""Commands about whole threads and what they hold. Blocking I/O."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, cast

import typer

from clients.cli.commands import completing
from clients.cli.options import Archived, AsJson, Host, ThreadArg, WaitMs, Yes

if TYPE_CHECKING:
    from clients.cli.contents import Field

group = typer.Typer()

Words = Annotated[str, typer.Argument(metavar="TEXT", help="Words to look for.")]
Count = Annotated[
    int,
    typer.Option(
        "--count", "-n", metavar="N", min=1, max=1000, help="At most so many."
    ),
]
TurnId = Annotated[
    str | None, typer.Option("--turn", metavar="TURN", help="Only of this turn.")
]
FIELDS = ("output", "text", "diff")


def _check_field(field: str) -> str:
    if field not in FIELDS:
        raise typer.BadParameter(f"one of {', '.join(FIELDS)}")
    return field


@group.command()
def output(
    thread: ThreadArg,
    item: Annotated[
        str | None,
        typer.Argument(
            metavar="ITEM",
            help="The beginning of an item's id; else the newest command.",
        ),
    ] = None,
    host: Host = None,
    field: Annotated[
        str,
        typer.Option(
            "--field",
            metavar="FIELD",
            callback=_check_field,
            help="output (of a command), text (of a message), diff (of a change).",
        ),
    ] = "output",
    path: Annotated[
        str | None,
        typer.Option("--path", metavar="FILE", help="Whose diff, of several files."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print a whole output, message or diff.

    Into a file or a pipe it goes byte for byte.
    """
    from clients.cli import contents, entry

    command = partial(
        contents.output,
        host=host,
        thread=thread,
        item=item,
        field=cast("Field", field),
        path=path,
    )
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command()
def diff(
    thread: ThreadArg, host: Host = None, turn: TurnId = None, as_json: AsJson = False
) -> None:
    """Show what was changed in files."""
    from clients.cli import contents, entry

    command = partial(contents.diff, host=host, thread=thread, turn=turn)
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command()
def search(
    text: Words,
    host: Host = None,
    archived: Archived = False,
    count: Count = 20,
    as_json: AsJson = False,
) -> None:
    """Find threads by words in their messages."""
    from clients.cli import contents, entry

    command = partial(
        contents.search, text=text, host=host, archived=archived, count=count
    )
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command()
def find(
    thread: ThreadArg,
    text: Words,
    host: Host = None,
    count: Count = 20,
    as_json: AsJson = False,
) -> None:
    """Find places in a thread by words in its messages."""
    from clients.cli import contents, entry

    command = partial(contents.find, text=text, host=host, thread=thread, count=count)
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command()
def files(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="THREAD WORDS",
            help="Whose folder, and letters of the path; with --cwd the letters alone.",
            autocompletion=completing.threads,
        ),
    ],
    host: Host = None,
    cwd: Annotated[
        str | None,
        typer.Option(
            "--cwd",
            metavar="DIR",
            help="In this folder of the workstation, without a THREAD.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find files of a thread's folder, for --mention."""
    from clients.cli import contents, entry

    thread = words[0] if cwd is None else None
    letters = words[1:] if cwd is None else words
    if not letters:
        raise typer.BadParameter("which letters has its path?")
    command = partial(
        contents.files, text=" ".join(letters), host=host, thread=thread, cwd=cwd
    )
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command()
def rename(
    thread: ThreadArg,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new title.")],
    host: Host = None,
    wait_ms: WaitMs = 0,
    as_json: AsJson = False,
) -> None:
    """Give a thread another title."""
    from clients.cli import entry, keeping

    command = partial(
        keeping.rename,
        host=host,
        thread=thread,
        name=name,
        wait_ms=wait_ms,
    )
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command()
def archive(
    thread: ThreadArg, host: Host = None, wait_ms: WaitMs = 0, as_json: AsJson = False
) -> None:
    """Move a thread out of the list; it can still be read."""
    from clients.cli import entry, keeping

    command = partial(keeping.archive, host=host, thread=thread, wait_ms=wait_ms)
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command()
def unarchive(
    thread: ThreadArg, host: Host = None, wait_ms: WaitMs = 0, as_json: AsJson = False
) -> None:
    """Bring an archived thread back into the list."""
    from clients.cli import entry, keeping

    command = partial(keeping.unarchive, host=host, thread=thread, wait_ms=wait_ms)
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command()
def delete(
    thread: ThreadArg,
    host: Host = None,
    yes: Yes = False,
    wait_ms: WaitMs = 0,
    as_json: AsJson = False,
) -> None:
    """Delete a thread for good. It asks first."""
    from clients.cli import entry, keeping

    command = partial(
        keeping.delete, host=host, thread=thread, yes=yes, wait_ms=wait_ms
    )
    raise typer.Exit(entry.run(command, as_json=as_json))
