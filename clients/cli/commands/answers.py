"""Commands about what Codex asks a person. Blocking I/O."""

from functools import partial
from typing import Annotated

import typer

from clients.cli.options import ApprovalArg, AsJson, Digest, Host, OneThread

group = typer.Typer()


@group.command()
def approvals(
    thread: OneThread = None,
    host: Host = None,
    as_json: AsJson = False,
) -> None:
    """Show what waits for an answer, whole."""
    from clients.cli import entry, reading

    command = partial(reading.approvals, host=host, thread=thread)
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command()
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
    digest: Digest = None,
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
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command()
def answer(
    approval: ApprovalArg,
    host: Host = None,
    answers: Annotated[
        str | None,
        typer.Option(
            "--answers",
            metavar="JSON",
            help='Texts by question, like {"q1": "Red"}; `-` reads stdin.',
        ),
    ] = None,
    content: Annotated[
        str | None,
        typer.Option(
            "--content",
            metavar="JSON",
            help='A form\'s values, like {"colour": "red"}; `-` reads stdin.',
        ),
    ] = None,
    digest: Digest = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question of Codex, or fill in a form.

    Asks at the terminal; secrets are typed without echo.
    """
    from clients.cli import answering, entry, filling

    command = partial(answering.answer, host=host, approval=approval, digest=digest)
    read = filling.read_filled(answers, content)
    raise typer.Exit(entry.run_with_text(command, read, as_json=as_json))


@group.command()
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
    raise typer.Exit(entry.run(command, as_json=as_json))
