"""`replay FILE`: a recording of an app-server, told as clients would be. Blocking I/O."""

from pathlib import Path
from typing import Final

from clients.cli.exits import ExitCode
from clients.cli.screen import Screen
from clients.cli.workstation import replay_lines

_SHOWN: Final = 100  # broken rules in one run; after that they are only counted


def replay(screen: Screen, file: Path) -> ExitCode:
    """Print the events as JSON lines; FAILED where a promise of the protocol is broken."""
    broken = 0
    for event, faults in replay_lines(file):
        if event is not None:
            screen.json(event)
        where = f"at seq {event['seq']}" if event is not None else "at the end"
        for rule, what in faults:
            broken += 1
            if broken <= _SHOWN:
                screen.note(f"broken: {rule}: {what} ({where})")
    if broken:
        screen.problem(
            f"{broken} promises of the protocol were broken (PROTOCOL.md 1.3)"
        )
        return ExitCode.FAILED
    return ExitCode.OK
