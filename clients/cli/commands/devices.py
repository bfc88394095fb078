"""Commands for the owner: `devices list|grant|revoke`. Blocking I/O."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, cast

import typer

from clients.cli.options import (
    POLICIES,
    SANDBOXES,
    SCOPES,
    AsJson,
    Only,
    read_scopes,
    read_words,
)

if TYPE_CHECKING:
    from transport.protocol.gateway import ApprovalPolicyName, SandboxName

group = typer.Typer(
    help="List paired devices, grant, revoke.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@group.command("list")
def devices_list(as_json: AsJson = False) -> None:
    """List the paired devices."""
    from clients.cli import devices, entry

    raise typer.Exit(entry.run(devices.list_all, as_json=as_json))


@group.command("grant")
def devices_grant(
    device: Annotated[
        str,
        typer.Argument(metavar="DEVICE", help="Its name, or the beginning of its id."),
    ],
    scopes: Annotated[
        str | None,
        typer.Option("--scopes", metavar="LIST", help=f"Of: {', '.join(SCOPES)}."),
    ] = None,
    sandbox: Annotated[
        str | None,
        typer.Option(
            "--sandbox",
            metavar="MODE",
            help=f"The widest sandbox: {', '.join(SANDBOXES)}.",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="LIST",
            help=f"Approval policies that it may meet. Of: {', '.join(POLICIES)}.",
        ),
    ] = None,
    only: Only = None,
    as_json: AsJson = False,
) -> None:
    """Change what a device may do; what is not named stays."""
    from clients.cli import devices, entry

    policies = read_words(policy, POLICIES, "policies") if policy else []
    if sandbox is not None:
        read_words(sandbox, SANDBOXES, "sandbox modes")
    command = partial(
        devices.grant,
        device=device,
        scopes=read_scopes(scopes) if scopes is not None else None,
        sandbox=cast("SandboxName | None", sandbox),
        policies=cast("list[ApprovalPolicyName]", policies),
        only=only or (),
    )
    raise typer.Exit(entry.run(command, as_json=as_json))


@group.command("revoke")
def devices_revoke(
    device: Annotated[
        str,
        typer.Argument(metavar="DEVICE", help="Its name, or the beginning of its id."),
    ],
    stop: Annotated[
        bool, typer.Option("--stop", help="Also interrupt turns that it started.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Cut a device off, at once and for good."""
    from clients.cli import devices, entry

    command = partial(devices.revoke, device=device, stop=stop)
    raise typer.Exit(entry.run(command, as_json=as_json))
