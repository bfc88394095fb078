"""Commands for the workstation: `serve`, `pair`, `lock`, `demo`. Blocking I/O."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from clients.cli.options import SCOPES, AsJson, Only, read_scopes

group = typer.Typer()


@group.command()
def serve(
    tcp: Annotated[
        list[str] | None,
        typer.Option(
            "--tcp",
            metavar="HOST:PORT",
            help="Also listen here for paired devices; may be repeated.",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option("--state", metavar="DIR", help="Where keys and state are kept."),
    ] = None,
    codex: Annotated[
        str | None,
        typer.Option("--codex", metavar="PATH", help="Which codex to run."),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Log on stderr what happens.")
    ] = False,
) -> None:
    """Run the Agent on this workstation until Ctrl-C.

    Settings are in ~/.config/threadgate/config.toml, all optional.
    """
    from clients.cli import entry, workstation

    act = partial(
        workstation.serve, tcp=tcp or (), state=state, codex=codex, verbose=verbose
    )
    raise typer.Exit(entry.guard(act))


@group.command()
def pair(
    scopes: Annotated[
        str,
        typer.Option("--scopes", metavar="LIST", help=f"Of: {', '.join(SCOPES)}."),
    ] = "read",
    only: Only = None,
    yes: Annotated[
        bool,
        typer.Option("--yes", help="Do not ask; the device may then only read."),
    ] = False,
) -> None:
    """Offer to pair a device; you say yes or no to who comes."""
    from clients.cli import entry, pairing

    command = partial(
        pairing.pair, scopes=read_scopes(scopes), only=only or (), unattended=yes
    )
    raise typer.Exit(entry.run(command))


@group.command()
def lock(
    stop: Annotated[
        bool, typer.Option("--stop", help="Also interrupt turns that devices started.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Hang up on every device, let none in, write nothing.

    For a panic. It holds until `unlock`, also over a restart of the Agent. What
    devices had queued is dropped: `queue list` says which messages that were.
    """
    from clients.cli import entry, locking

    command = partial(locking.lock, stop=stop)
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command()
def unlock(as_json: AsJson = False) -> None:
    """Let paired devices in again."""
    from clients.cli import entry, locking

    raise typer.Exit(entry.run(locking.unlock, as_json=as_json))


@group.command()
def audit(
    count: Annotated[
        int,
        typer.Option(
            "--count", "-n", metavar="N", min=1, max=100_000, help="At most so many."
        ),
    ] = 50,
    whole: Annotated[
        bool, typer.Option("--all", help="Also who connected (session/open).")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what was done here and by which device, newest first.

    Ids, kinds and sizes; never a text, a path or a command.
    """
    from clients.cli import auditing, entry

    command = partial(auditing.audit, count=count, whole=whole)
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command()
def doctor(
    report: Annotated[
        bool,
        typer.Option("--report", help="For a bug report: nothing private in it."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Look whether everything is right here, and say what to do.

    Exit code 1 where something must be mended. It changes nothing.
    """
    from clients.cli import doctor as examination
    from clients.cli import entry

    command = partial(examination.doctor, report=report)
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command()
def replay(file: Annotated[Path, typer.Argument(metavar="FILE")]) -> None:
    """Show what clients are told of a recorded app-server.

    In JSON lines. Each line of FILE is {"dir": "in" or "out", "t", "msg"}. Exit code 1
    where a promise of the protocol is broken, which is then named on stderr.
    """
    from clients.cli import entry, replaying

    raise typer.Exit(entry.guard(partial(replaying.replay, file=file)))


@group.command()
def stdio() -> None:
    """Carry a device's bytes between ssh and the Agent here.

    Run by the other side: `threadgate connect --via ssh://HOST`.
    """
    from clients.cli import entry
    from clients.cli import stdio as carrier

    raise typer.Exit(entry.run(carrier.carry))


@group.command()
def demo(
    stay: Annotated[
        bool,
        typer.Option(
            "--stay",
            help="Tell nothing: set the stage, say what to type, stay until Ctrl-C.",
        ),
    ] = False,
    story: Annotated[
        bool | None,
        typer.Option(
            "--story/--no-story", help="Tell the story (with --stay: before it)."
        ),
    ] = None,
) -> None:
    """Show the main job here, in half a minute.

    With a scripted model and a temporary CODEX_HOME: it touches nothing of yours.
    """
    from clients.cli import demo as told
    from clients.cli import entry

    tell = not stay if story is None else story
    raise typer.Exit(entry.run(partial(told.demo, story=tell, staying=stay)))
