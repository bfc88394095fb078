"""Real codex for the tests: which binaries are here, and a CODEX_HOME of one's own."""

import os
import secrets
import shutil
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import codex_cli_bin
import pytest

from clients.cli.scripted_answers import Rule
from clients.cli.scripted_model import ScriptedModel, codex_config, open_model

BUNDLED: Final = "0.163.0"  # what the `codex` extra brings
NEWEST: Final = "0.171.0"
WITHOUT_LOCK: Final = "0.144.4"  # the newest on PyPI that takes no thread lock


def cache_folder() -> Path:
    """Where `make test` and `.ci/run` keep other codex versions, by version."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    named = os.environ.get("THREADGATE_TEST_CACHE")
    return Path(named) if named else default / "threadgate"


def codex_binaries() -> dict[str, Path]:
    """Return every codex here by version: the bundled one, then what is cached."""
    found = {BUNDLED: Path(str(codex_cli_bin.bundled_codex_path()))}
    for folder in sorted((cache_folder() / "codex").glob("*")):
        for inside in ("bin/codex", "codex_cli_bin/bin/codex"):
            if (folder / inside).is_file():
                found.setdefault(folder.name, folder / inside)
    return found


HERE: Final = codex_binaries()
VERSIONS: Final = [version for version in (BUNDLED, NEWEST) if version in HERE]
each_version: Final = pytest.mark.parametrize("version", VERSIONS)
"""For a test of what must hold with the bundled codex and with the newest."""


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def locking_versions() -> list[str]:
    """Versions here that take Codex's thread lock (0.147 and later), oldest first."""
    return sorted((v for v in codex_binaries() if _key(v) >= (0, 147)), key=_key)


@contextmanager
def work_folder(name: str) -> Generator[Path]:
    """A fresh folder outside the system's temp folder (codex warns there), removed after."""
    folder = cache_folder() / "runs" / f"{name}-{secrets.token_hex(4)}"
    folder.mkdir(parents=True, mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodexHome:
    """A CODEX_HOME whose model is scripted, and a workspace beside it."""

    home: Path
    workspace: Path
    model: ScriptedModel

    @property
    def environ(self) -> dict[str, str]:
        """The environment for a codex on this home."""
        return {**os.environ, "CODEX_HOME": str(self.home)}


@asynccontextmanager
async def open_codex_home(
    *rules: Rule, extra: str = "", features: Sequence[str] = ()
) -> AsyncGenerator[CodexHome]:
    """A scripted model and a CODEX_HOME that asks it, for the length of the block.

    `extra`, `features`: see `codex_config`.
    """
    with work_folder("codex") as folder:
        async with open_model(rules) as model:
            home, workspace = folder / "home", folder / "workspace"
            home.mkdir()
            workspace.mkdir()
            config = codex_config(model.base_url, extra=extra, features=features)
            (home / "config.toml").write_text(config)
            yield CodexHome(home=home, workspace=workspace, model=model)
