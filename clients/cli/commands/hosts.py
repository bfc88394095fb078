"""Commands for the book: `hosts list|rename|forget|default`. Blocking I/O."""

from functools import partial
from typing import Annotated

import typer

from clients.cli.options import AsJson

group = typer.Typer(
    help="The Agents that this device is paired with.",
    invoke_without_command=True,
    rich_markup_mode=None,
)

HostArg = Annotated[
    str,
    typer.Argument(metavar="HOST", help="Its name, or the beginning of its id."),
]


@group.callback()
def hosts(context: typer.Context, as_json: AsJson = False) -> None:
    """The Agents that this device is paired with; alone it lists them."""
    if context.invoked_subcommand is None:
        hosts_list(as_json=as_json)


@group.command("list")
def hosts_list(as_json: AsJson = False) -> None:
    """List the paired hosts."""
    from clients.cli import book, entry

    raise typer.Exit(entry.guard(book.list_all, as_json=as_json))


@group.command("rename")
def hosts_rename(
    host: HostArg, name: Annotated[str, typer.Argument(metavar="NAME")]
) -> None:
    """Call a host by another name, on this device."""
    from clients.cli import book, entry

    raise typer.Exit(entry.guard(partial(book.rename, host=host, name=name)))


@group.command("forget")
def hosts_forget(
    host: HostArg,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Throw a host's key away; coming back means pairing again."""
    from clients.cli import book, entry

    raise typer.Exit(entry.run(partial(book.forget, host=host, yes=yes)))


@group.command("default")
def hosts_default(
    host: Annotated[str | None, typer.Argument(metavar="[HOST]")] = None,
    none: Annotated[
        bool, typer.Option("--none", help="None: every command has to name one.")
    ] = False,
) -> None:
    """Which host commands mean that name none."""
    from clients.cli import book, entry

    raise typer.Exit(entry.guard(partial(book.set_default, host=host, none=none)))
