"""Which binary an answer to `--version` is of, where processes come and go meanwhile."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from agent.gate.binary_versions import Answer, Versions

PID = 4_242


def codex(path: Path, version: str) -> str:
    path.write_text(f"#!/bin/sh\necho codex-cli {version}\n")
    path.chmod(0o755)
    return str(path)


async def test_an_answer_is_not_taken_for_one_of_what_ran_under_that_pid_before(
    tmp_path: Path,
) -> None:
    old = codex(tmp_path / "old", "0.140.0")
    new = codex(tmp_path / "new", "0.171.0")
    running = {PID: old}
    table: Any = SimpleNamespace(running_file=running.get)
    versions = Versions(table)
    assert versions.of(PID) is None
    running[PID] = new  # an exec, or another process of that number
    await versions.ask()
    running[PID] = old
    assert versions.of(PID) is None
    await versions.ask()
    assert versions.of(PID) == Answer(known=True, is_codex=True, locks=False)
    running[PID] = new
    assert versions.of(PID) is None
    await versions.ask()
    assert versions.of(PID) == Answer(known=True, is_codex=True, locks=True)
