"""What to run as a child, and who listens to it. Sans-IO (values)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from adapter.errors import ChildExitedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What to run. `records`: the folder of {pid, start time, argv}.

    `unrecorded`: run it also where its record cannot be written, since it changes
    nothing and ends with its input.
    """

    name: str
    argv: Sequence[str]
    environ: Mapping[str, str]
    records: Path
    unrecorded: bool = False
    cwd: Path = Path("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ears:
    """Who listens: plain calls that must not block.

    `started`: its pid, before anybody else can see the process. `output`: each chunk,
    `b""` at the end. `ended`: once, when the process is reaped and its output read;
    `None` where the end was asked for.
    """

    started: Callable[[int], None]
    output: Callable[[bytes], None]
    ended: Callable[[ChildExitedError | None], None]
