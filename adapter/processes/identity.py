"""Who a process is, for ever. Sans-IO.

A pid alone names nobody: it is used again. A pid with its start time does.
"""

from dataclasses import dataclass

from adapter.errors import STARVED


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One process for ever. `started`: what the platform tells; compared, never read."""

    pid: int
    started: str
    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of the process table. `group`: its process group. `dead`: not reaped yet."""

    pid: int
    parent: int
    group: int
    dead: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A process that is to be ended. `fd`: its pidfd, where the platform has those."""

    identity: Identity
    fd: int | None


def check_seen(error: OSError) -> None:
    """Raise it anew where it says nothing of what was to be looked at: there was no
    descriptor or no memory left to look."""
    if error.errno in STARVED:
        raise error
