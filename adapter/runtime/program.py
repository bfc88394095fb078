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

    def agrees_with(self, other: "RuntimeInfo") -> bool:
        """Whether both are one program on one home: what holds for one holds for both."""
        mine = (self.name, self.version, self.home, self.locks_threads)
        return mine == (other.name, other.version, other.home, other.locks_threads)
