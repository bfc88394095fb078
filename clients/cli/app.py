"""The command line as a whole: its groups of commands, its help. Blocking I/O.

Exit codes: 0 ok, 1 refused or failed, 2 usage, 3 unreachable, 4 try again later.
"""

from typing import Annotated

import typer

from clients.cli.commands import (
    answers,
    anywhere,
    devices,
    hosts,
    runs,
    threads,
    turns,
    waiting,
    workstation,
)

_HELP = """Read, follow, continue and approve your Codex threads from your own devices.

At the workstation: serve, pair, lock, unlock, doctor, devices.
Anywhere: connect, then the rest; at the workstation it works without.
Threads and approvals are named by the beginning of their id.
Exit codes: 0 ok, 1 refused or failed, 2 usage, 3 unreachable, 4 try again later.
THREADGATE_STATE_DIR moves where keys and state are kept."""

app = typer.Typer(
    name="threadgate",
    help=_HELP,
    no_args_is_help=True,
    rich_markup_mode=None,  # plain text: quick, and at home in a pipe
    pretty_exceptions_enable=False,
)
app.add_typer(workstation.group)
app.add_typer(anywhere.group)
app.add_typer(turns.group)
app.add_typer(answers.group)
app.add_typer(waiting.group)
app.add_typer(waiting.queue, name="queue")
app.add_typer(threads.group)
app.add_typer(runs.group)
app.add_typer(devices.group, name="devices")
app.add_typer(hosts.group, name="hosts")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"threadgate {version('threadgate')}")
        raise typer.Exit


@app.callback(help=_HELP)
def common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Say which."
        ),
    ] = False,
) -> None:
    """Options of the program itself; its help is `_HELP`."""
    del version


def main() -> None:
    """Entry point of `threadgate`."""
    app()
