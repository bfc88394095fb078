"""How app-servers of one runtime are started, and what they are given. Sans-IO (a value)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from adapter.processes.binary import Codex
from adapter.processes.launch import Launch


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How app-servers of one runtime are started and named.

    `now_ms`: the wall clock; `up_ms`: one that nobody sets and that no sleep stops.
    """

    codex: Codex
    environ: Mapping[str, str]
    records: Path
    config: Sequence[str]
    now_ms: Callable[[], int]
    up_ms: Callable[[], int]
    mint: Callable[[], str]
    approval_ms: int

    def launch(self, name: str, *, only_reads: bool) -> Launch:
        """Return what to run: the native binary on stdio, and nothing else."""
        argv = [str(self.codex.path), "app-server", "--stdio"]
        for setting in self.config:
            argv += ["-c", setting]
        return Launch(
            name=name,
            argv=argv,
            environ=self.environ,
            records=self.records,
            unrecorded=only_reads,
        )
