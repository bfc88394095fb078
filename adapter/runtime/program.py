"""Which program a runtime runs. Sans-IO (values)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeInfo:
    """Which program runs. `locks_threads`: it takes Codex's per-thread writer lock."""

    name: str
    version: str
    pid: int
    home: str
    locks_threads: bool
