"""`audit`: who did what at this workstation. Trio shell. SECURITY.md."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Final

from clients.cli.doors import open_local
from clients.cli.exits import ExitCode
from clients.cli.find import device_names
from clients.cli.paging import list_rows
from clients.cli.plain import one_line
from clients.cli.screen import Screen
from clients.cli.style import Line, dim, line
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
    if screen.as_json:
        for entry in entries:
            screen.json(entry.wire())
    screen.lines(entry_lines(entries, names, screen.zone))
    return ExitCode.OK


def entry_lines(
    entries: Sequence[AuditEntry], names: Mapping[str, str], zone: tzinfo
) -> list[Line]:
    """Return entries: when, what, what is known. `names`: of devices, by their ids."""
    width = max((len(_what(entry)) for entry in entries), default=0)
    return [_entry_line(entry, names, zone, width) for entry in entries]


def _entry_line(
    entry: AuditEntry, names: Mapping[str, str], zone: tzinfo, width: int
) -> Line:
    when = datetime.fromtimestamp(entry.at / 1000, UTC).astimezone(zone)
    fields = [
        f"{name}={one_line(str(value), 80)}{_called(name, value, names)}"
        for name, value in entry.fields.items()
        if value is not None
    ]
    head = dim(f"{when:%Y-%m-%d %H:%M:%S}")
    if not fields:
        return line(head, "  ", _what(entry))
    return line(head, "  ", f"{_what(entry):<{width}}", "  ", "  ".join(fields))


def _what(entry: AuditEntry) -> str:
    return one_line(entry.event, 40)


def _called(field: str, value: object, names: Mapping[str, str]) -> str:
    """Return what a device calls itself, behind its id: the id is what counts."""
    name = names.get(str(value)) if field == "device" else None
    return "" if name is None else f" ({one_line(name, 40)})"
