"""Commands that many tests here type: they start warm, and are typed again if need be."""

import subprocess
from typing import Any, Final

import pytest
import trio

from clients.cli import demo_actors

PASSED_BY: Final = b"try again in 0.3 s or when it is closed"
_RUN: Final = trio.run_process


async def _again_if_passed(
    command: Any, **how: Any
) -> subprocess.CompletedProcess[bytes]:
    """Run it; again where a codex of another test, just as it began, closed the gate.

    That refusal is of a writer that was gone at the next look: nothing was sent.
    """
    while True:
        done: subprocess.CompletedProcess[bytes] = await _RUN(command, **how)
        if PASSED_BY not in (done.stdout or b""):
            return done


@pytest.fixture
def warm_actors(warm: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the actors of a stage type warm commands."""
    monkeypatch.setattr(demo_actors, "_COMMAND", warm)
    monkeypatch.setattr(trio, "run_process", _again_if_passed)
