"""The command line as a whole: its groups of commands, its help. Blocking I/O.

Exit codes: 0 ok, 1 refused or failed, 2 usage, 3 unreachable, 4 try again later.
"""

from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from clients.cli.commands import (
    answers,
    anywhere,
    devices,
    hosts,
    runs,
    service,
    threads,
    turns,
    waiting,
    workstation,
)

_HELP = """Read, follow, continue and approve your Codex threads from your own devices.

At the workstation `serve` runs, and `pair` lets a device in. On the device `connect`
takes the text of `pair`; then all commands work there but the owner's. At the
workstation they work without. Threads and approvals are named by the beginning of
their id.
Exit codes: 0 ok, 1 refused or failed, 2 usage, 3 unreachable, 4 try again later.
THREADGATE_STATE_DIR moves where keys and state are kept."""

_SECTIONS: Final = {
    "Begin": "demo doctor serve pair connect status",
    "Look": "threads read watch search find output diff files save queue",
    "Work": "new send steer interrupt fork review settings goal background models",
    "Answer": "approvals approve deny answer",
    "Threads": "rename archive unarchive delete compact revert",
    "The owner": "devices lock unlock audit service",
    "More": "hosts capabilities replay stdio",
}
_GAP: Final = 6  # columns around a name, as Typer counts them


class SectionedGroup(TyperGroup):
    """The program: its help lists commands in sections; what is in none comes last."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what stands before the command; an option of its own goes behind it."""
        first = args[0].partition("=")[0] if args else ""
        if self._is_misplaced(first, ctx):
            command = next((word for word in args if word in self.commands), "COMMAND")
            ctx.fail(
                f"{first} goes behind the command: `threadgate {command} {first} …`"
            )
        return super().parse_args(ctx, args)

    def _is_misplaced(self, word: str, ctx: Any) -> bool:
        """Whether this is no option of the program's, but one of some command's."""
        own = {name for one in self.get_params(ctx) for name in one.opts}
        theirs = {
            name
            for command in self.commands.values()
            for one in command.params
            for name in one.opts
        }
        return word.startswith("-") and word in theirs - own

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the sections."""
        del ctx
        left = {name: one for name, one in self.commands.items() if not one.hidden}
        room = formatter.width - _GAP - max(len(name) for name in left)
        for title, words in _SECTIONS.items():
            names = [name for name in words.split() if name in left]
            if title == "More":
                names += [name for name in left if name not in names]
            rows = [(name, left.pop(name).get_short_help_str(room)) for name in names]
            with formatter.section(title):
                formatter.write_dl(rows)


app = typer.Typer(
    name="threadgate",
    cls=SectionedGroup,
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
app.add_typer(service.group, name="service")


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
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """Options of the program itself; its help is `_HELP`."""
    del version


def main() -> None:
    """Entry point of `threadgate`."""
    app()
