"""`audit`: who did what at this workstation. Trio shell. SECURITY.md."""

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Final

from clients.cli.doors import open_local
from clients.cli.exits import ExitCode
from clients.cli.find import device_names
from clients.cli.paging import list_rows
from clients.cli.plain import one_line
from clients.cli.screen import Screen
from clients.cli.style import Line, Span, dim, line
from transport.protocol.admin import AuditEntry, AuditListParams
from transport.protocol.methods import AUDIT_LIST

_COMINGS: Final = "session/open"  # most of the log, and nothing was done in it


async def audit(screen: Screen, *, count: int, whole: bool = False) -> ExitCode:
    """Show the newest entries; JSON lines for a program.

    `whole`: also that a device came, or the workstation's own command.
    """
    async with open_local() as client:
        entries = await list_rows(
            client,
            AUDIT_LIST,
            AuditListParams(),
            lambda page: (page.entries, page.next_cursor),
            count=count,
            keep=None if whole else lambda entry: entry.event != _COMINGS,
        )
        names = await device_names(client)
    for entry in entries:
        if screen.as_json:
            screen.json(entry.wire())
        screen.lines([entry_line(entry, names, screen.zone)])
    return ExitCode.OK


def entry_line(entry: AuditEntry, names: Mapping[str, str], zone: tzinfo) -> Line:
    """Return one entry: when, what, what is known. `names`: of devices, by their ids."""
    when = datetime.fromtimestamp(entry.at / 1000, UTC).astimezone(zone)
    fields = [
        f"{name}={one_line(str(value), 80)}{_called(name, value, names)}"
        for name, value in entry.fields.items()
        if value is not None
    ]
    head = dim(f"{when:%Y-%m-%d %H:%M:%S}")
    return line(head, "  ", Span(f"{one_line(entry.event, 40):<18}"), "  ".join(fields))


def _called(field: str, value: object, names: Mapping[str, str]) -> str:
    """Return what a device calls itself, behind its id: the id is what counts."""
    name = names.get(str(value)) if field == "device" else None
    return "" if name is None else f" ({one_line(name, 40)})"
