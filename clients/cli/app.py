"""The command line: names, options, help. Shell; everything else is imported when used.

Exit codes: 0 ok, 1 refused or failed, 2 usage, 3 unreachable, 4 try again later.
"""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, cast

import typer

from clients.cli.options import (
    ApprovalArg,
    AsJson,
    Follow,
    Host,
    Key,
    Only,
    Text,
    ThreadArg,
    Wait,
)

if TYPE_CHECKING:
    from transport.protocol.gateway import ApprovalPolicyName, SandboxName, ScopeName

SCOPES = ("read", "write", "approve", "approve.session")
SANDBOXES = ("read-only", "workspace-write", "danger-full-access")
POLICIES = ("untrusted", "on-request", "on-failure", "never")

_HELP = """Read, follow, continue and approve your Codex threads from your own devices.

At the workstation: serve, pair, devices. Anywhere: connect, then the rest.
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
devices_app = typer.Typer(
    help="List paired devices, grant, revoke.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(devices_app, name="devices")


def _end(code: int) -> NoReturn:
    raise typer.Exit(code)


def _words(text: str, known: tuple[str, ...], what: str) -> list[str]:
    words = [word.strip() for word in text.split(",")]
    if wrong := [word for word in words if word not in known]:
        told = ", ".join(wrong) or "nothing"
        raise typer.BadParameter(f"{told}: {what} are {', '.join(known)}")
    return words


def _scopes(text: str) -> "list[ScopeName]":
    return cast("list[ScopeName]", _words(text, SCOPES, "scopes"))


@app.command()
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
    """Run the Agent on this workstation until Ctrl-C."""
    from clients.cli import entry, workstation

    act = partial(
        workstation.serve, tcp=tcp or (), state=state, codex=codex, verbose=verbose
    )
    _end(entry.guard(act))


@app.command()
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
    """Offer to pair a device, and ask who came."""
    from clients.cli import entry, pairing

    command = partial(
        pairing.pair, scopes=_scopes(scopes), only=only or (), unattended=yes
    )
    _end(entry.run(command))


@devices_app.command("list")
def devices_list(as_json: AsJson = False) -> None:
    """List the paired devices."""
    from clients.cli import devices, entry

    _end(entry.run(devices.list_all, as_json=as_json))


@devices_app.command("grant")
def devices_grant(
    device: Annotated[str, typer.Argument(metavar="DEVICE")],
    scopes: Annotated[
        str | None,
        typer.Option("--scopes", metavar="LIST", help=f"Of: {', '.join(SCOPES)}."),
    ] = None,
    sandbox: Annotated[
        str | None,
        typer.Option("--sandbox", metavar="MODE", help="The widest sandbox."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option("--policy", metavar="LIST", help="Approval policies it may meet."),
    ] = None,
    only: Only = None,
    as_json: AsJson = False,
) -> None:
    """Change what a device may do; what is not named stays."""
    from clients.cli import devices, entry

    policies = _words(policy, POLICIES, "policies") if policy else []
    if sandbox is not None:
        _words(sandbox, SANDBOXES, "sandbox modes")
    command = partial(
        devices.grant,
        device=device,
        scopes=_scopes(scopes) if scopes is not None else None,
        sandbox=cast("SandboxName | None", sandbox),
        policies=cast("list[ApprovalPolicyName]", policies),
        only=only or (),
    )
    _end(entry.run(command, as_json=as_json))


@devices_app.command("revoke")
def devices_revoke(
    device: Annotated[str, typer.Argument(metavar="DEVICE")],
    stop: Annotated[
        bool, typer.Option("--stop", help="Also interrupt turns that it started.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Cut a device off, at once and for good."""
    from clients.cli import devices, entry

    command = partial(devices.revoke, device=device, stop=stop)
    _end(entry.run(command, as_json=as_json))


@app.command()
def demo() -> None:
    """Show the main job here, in two minutes.

    With a scripted model and a temporary CODEX_HOME: it touches nothing of yours.
    """
    from clients.cli import demo as story
    from clients.cli import entry

    _end(entry.run(story.demo))


@app.command()
def connect(
    name: Annotated[
        str | None,
        typer.Option("--name", help="What the workstation will know this device by."),
    ] = None,
) -> None:
    """Pair this machine with an Agent.

    Asks for the pairing text, or reads it from stdin.
    """
    from clients.cli import asking, entry, pairing

    command = partial(pairing.connect, name=name)
    _end(entry.run_with_text(command, asking.read_pairing_text))


@app.command()
def status(host: Host = None, as_json: AsJson = False) -> None:
    """Say whether you can write, and what waits.

    The first line is the answer; where you cannot write it names who does.
    """
    from clients.cli import entry, reading

    _end(entry.run(partial(reading.status, host=host), as_json=as_json))


@app.command()
def threads(
    host: Host = None,
    archived: Annotated[bool, typer.Option("--archived")] = False,
    query: Annotated[
        str | None, typer.Option("--query", help="Part of a title.")
    ] = None,
    cwd: Annotated[
        str | None, typer.Option("--cwd", metavar="DIR", help="Of this folder.")
    ] = None,
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, max=5000, help="At most.")
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
    _end(entry.run(command, as_json=as_json))


@app.command()
def read(
    thread: ThreadArg,
    host: Host = None,
    turns: Annotated[
        int, typer.Option("--turns", "-n", min=0, max=100, help="How many turns.")
    ] = 5,
    full: Annotated[
        bool, typer.Option("--full", help="Whole outputs, and diffs.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the newest turns of a thread."""
    from clients.cli import entry, reading

    command = partial(reading.read, host=host, thread=thread, turns=turns, full=full)
    _end(entry.run(command, as_json=as_json))


@app.command()
def watch(
    thread: Annotated[
        str | None,
        typer.Argument(metavar="[THREAD]", help="The beginning of a thread's id."),
    ] = None,
    host: Host = None,
    as_json: AsJson = False,
) -> None:
    """Show what happens, as it happens."""
    from clients.cli import entry, watching

    command = partial(watching.watch, host=host, thread=thread)
    _end(entry.run(command, as_json=as_json))


@app.command()
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
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Continue a thread with a message."""
    from clients.cli import asking, entry, sending

    command = partial(
        sending.send,
        host=host,
        thread=thread,
        follow=follow,
        wait_ms=round(wait * 1000),
        after=after,
        allow_pending=allow_pending,
        key=key,
    )
    read_text = partial(asking.read_text, text)
    _end(entry.run_with_text(command, read_text, as_json=as_json))


@app.command()
def new(
    text: Text,
    cwd: Annotated[
        str,
        typer.Option("--cwd", metavar="DIR", help="The folder, on the workstation."),
    ],
    host: Host = None,
    follow: Follow = True,
    wait: Wait = 0,
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
    )
    read_text = partial(asking.read_text, text)
    _end(entry.run_with_text(command, read_text, as_json=as_json))


@app.command()
def interrupt(
    thread: ThreadArg,
    host: Host = None,
    turn: Annotated[
        str | None,
        typer.Option("--turn", metavar="TURN", help="Only if this turn runs."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Stop the turn that runs in a thread."""
    from clients.cli import entry, sending

    command = partial(sending.interrupt, host=host, thread=thread, turn=turn)
    _end(entry.run(command, as_json=as_json))


@app.command()
def approvals(
    thread: Annotated[
        str | None, typer.Argument(metavar="[THREAD]", help="Only of this thread.")
    ] = None,
    host: Host = None,
    as_json: AsJson = False,
) -> None:
    """Show what waits for an answer, whole."""
    from clients.cli import entry, reading

    command = partial(reading.approvals, host=host, thread=thread)
    _end(entry.run(command, as_json=as_json))


@app.command()
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
        typer.Option("--digest", help="Only if it is still what I saw (--json)."),
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
    _end(entry.run(command, as_json=as_json))


@app.command()
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
    _end(entry.run(command, as_json=as_json))


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
