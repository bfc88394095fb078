"""The demo's stage: a CODEX_HOME, a scripted model, two machines' states. Trio shell.

Trio shell. Nothing of the person's is used: not their CODEX_HOME, not their shell's
settings (HOME is the stage's own), not their network (the model is on loopback).
"""

import importlib
import os
import secrets
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import platformdirs

from clients.cli.demo_actors import Actor
from clients.cli.exits import FailedError
from clients.cli.folders import STATE_DIR
from clients.cli.screen import Screen
from clients.cli.scripted_answers import Rule
from clients.cli.scripted_model import ScriptedModel, codex_config, open_model

_DROPPED: Final = ("THREADGATE_", "CODEX_", "OPENAI_", "XDG_")
_PROXIES: Final = frozenset({"http_proxy", "https_proxy", "all_proxy"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """`desk` is the workstation, `phone` the second device."""

    screen: Screen
    folder: Path
    codex: Path
    model: ScriptedModel

    @property
    def workspace(self) -> Path:
        """The folder that Codex works in."""
        return self.folder / "bakery"

    @property
    def codex_environ(self) -> dict[str, str]:
        """The environment of whatever runs Codex on this stage."""
        return {
            **_bare(os.environ),
            "HOME": str(self.folder / "home"),
            "CODEX_HOME": str(self.folder / "codex-home"),
        }

    @property
    def desk(self) -> Actor:
        """The workstation: its commands find the Agent by its socket."""
        environ = {
            **self.codex_environ,
            "THREADGATE_CODEX": str(self.codex),
            STATE_DIR: str(self.folder / "desk"),
        }
        return Actor(name="desk", style="name", screen=self.screen, environ=environ)

    @property
    def phone(self) -> Actor:
        """The second device: own keys, and no way to the Agent but the network."""
        environ = {**self.codex_environ, STATE_DIR: str(self.folder / "phone")}
        return Actor(name="phone", style="warn", screen=self.screen, environ=environ)


@asynccontextmanager
async def open_stage(screen: Screen, rules: list[Rule]) -> AsyncGenerator[Stage]:
    """Build the stage; leaving removes it, folder and all.

    It does not lie in the system's temporary folder, where codex would warn of it.
    """
    codex = find_demo_codex(os.environ)
    name = f"demo-{secrets.token_hex(4)}"
    folder = platformdirs.user_cache_path("threadgate") / name
    folder.mkdir(parents=True, mode=0o700)
    try:
        async with open_model(rules) as model:
            stage = Stage(screen=screen, folder=folder, codex=codex, model=model)
            _furnish(stage)
            yield stage
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _furnish(stage: Stage) -> None:
    for name in ("bakery", "home", "codex-home"):
        (stage.folder / name).mkdir(mode=0o700)
    (stage.workspace / "notes.txt").write_text("Ask the baker about the rye.\n")
    config = codex_config(stage.model.base_url)
    (stage.folder / "codex-home" / "config.toml").write_text(config)


def _bare(environ: Mapping[str, str]) -> dict[str, str]:
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith(_DROPPED) and name.lower() not in _PROXIES
    }
    return {**kept, "NO_PROXY": "127.0.0.1", "PYTHONUNBUFFERED": "1"}


def find_demo_codex(environ: Mapping[str, str]) -> Path:
    """Return the codex that the demo drives: a named one, the bundled one, one on PATH.

    Raises: FailedError that says what to do.
    """
    if named := environ.get("THREADGATE_CODEX"):
        return Path(named)
    try:
        bundled = importlib.import_module("codex_cli_bin")
    except ModuleNotFoundError:
        found = shutil.which("codex")
        if found is None:
            raise FailedError(
                "there is no codex here: install threadgate with its extra `codex`, or set "
                "THREADGATE_CODEX to the path of one"
            ) from None
        return Path(found)
    return Path(str(bundled.bundled_codex_path()))
