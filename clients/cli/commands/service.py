"""`service`: declares install, uninstall, status. Blocking I/O."""

from functools import partial
from typing import Annotated

import typer

from clients.cli.options import AsJson

group = typer.Typer(
    no_args_is_help=True, help="Keep the Agent running: systemd, launchd."
)


@group.command()
def install(
    tcp: Annotated[
        list[str] | None,
        typer.Option(
            "--tcp",
            metavar="HOST:PORT",
            help="Where it listens for paired devices; may be repeated.",
        ),
    ] = None,
    codex: Annotated[
        str | None,
        typer.Option(
            "--codex", metavar="PATH", help="Which codex; else the one on your PATH."
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Replace a file that is not ours.")
    ] = False,
) -> None:
    """Start the Agent now and at each login. It shows what it writes."""
    from clients.cli import entry, service

    command = partial(service.install, tcp=tcp or (), codex=codex, yes=yes)
    raise typer.Exit(entry.run(command))


@group.command()
def uninstall() -> None:
    """Stop it, and remove what `install` wrote."""
    from clients.cli import entry, service

    raise typer.Exit(entry.run(service.uninstall))


@group.command()
def status(as_json: AsJson = False) -> None:
    """Say whether it is installed and runs, and where its log is."""
    from clients.cli import entry, service

    raise typer.Exit(entry.run(service.status, as_json=as_json))
