"""Folders of one test: a person's state, and one for a codex that is played."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.codex import work_folder


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder of commands that are called in this process."""
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("THREADGATE_STATE_DIR", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("THREADGATE_CONFIG", "THREADGATE_RUNTIME_DIR", "THREADGATE_HOST"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder outside the system's temp folder, where codex warns."""
    with work_folder("process") as made:
        yield made
