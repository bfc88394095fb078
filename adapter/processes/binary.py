"""Find the codex to launch: the native binary, never a wrapper. Blocking I/O.

npm's `codex` is a node program that starts the native binary and leaves it alive, locks
held, when it is killed. So a wrapper is resolved to what it would start, or refused.
"""

import importlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adapter.errors import BinaryNotFoundError

SETTING: Final = "THREADGATE_CODEX"
VERSION_S: Final = 10.0  # `codex --version` on a cold disk
NO_HOME: Final = "/nonexistent"  # for a question that must leave nothing behind
MAX_WRAPPER: Final = 64 * 1024
MAGIC: Final = (
    b"\x7fELF",
    b"\xcf\xfa\xed\xfe",  # Mach-O
    b"\xca\xfe\xba\xbe",  # Mach-O, several architectures
    b"MZ",
)
_SHIM: Final = re.compile(r"""\$basedir/([^"'\s]*codex\.js)""")  # pnpm, yarn
_VERSION: Final = re.compile(r"\b(\d+\.\d+\.\d+)\S*")
_INSTALL: Final = (
    "Install codex (or threadgate with its extra `codex`), or name its native binary in "
    f"{SETTING} or in the config file."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Codex:
    """A codex that can be launched."""

    path: Path
    version: str


def find_codex(setting: str | None, environ: Mapping[str, str]) -> Codex:
    """Return the first of: the setting, THREADGATE_CODEX, PATH, the bundled binary.

    One that a person named is used or refused; what PATH has is passed over where it
    leads to no native binary. Runs `codex --version` (≤ 10 s).

    Raises: BinaryNotFoundError: where we looked, and what to do.
    """
    for named, source in ((setting, "the setting"), (environ.get(SETTING), SETTING)):
        if named:
            return _named(Path(named).expanduser(), source, environ)
    looked: list[str] = []
    for candidate, source in _offered(environ):
        native = native_binary(candidate)
        version = native and read_version(native, environ)
        if native is not None and version:
            return Codex(path=native, version=version)
        looked.append(f"{source}: {candidate} is no native codex")
    found = "; ".join(looked) or "there is none on PATH, and none is bundled"
    raise BinaryNotFoundError(f"No codex to launch: {found}. {_INSTALL}")


def _named(path: Path, source: str, environ: Mapping[str, str]) -> Codex:
    native = native_binary(path)
    if native is None:
        raise BinaryNotFoundError(
            f"{path} (from {source}) is no native codex binary, and no wrapper that "
            "leads to one. Name the binary itself."
        )
    version = read_version(native, environ)
    if version is None:
        raise BinaryNotFoundError(
            f"{native} (from {source}) did not answer `--version` like codex does."
        )
    return Codex(path=native, version=version)


def _offered(environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    for folder in environ.get("PATH", "").split(os.pathsep):
        if folder and (found := shutil.which("codex", path=folder)):
            yield Path(found), "PATH"
    bundled = bundled_codex()
    if bundled is not None:
        yield bundled, "the codex extra"


def bundled_codex() -> Path | None:
    """Return the binary that the `codex` extra brings, if it is installed."""
    try:
        package = importlib.import_module("codex_cli_bin")
        return Path(str(package.bundled_codex_path()))
    except (ImportError, OSError):
        return None


def native_binary(path: Path) -> Path | None:
    """Return the native binary that `path` is or leads to, else `None`."""
    try:
        real = path.resolve(strict=True)
        head = _head(real)
    except OSError:
        return None
    if head.startswith(MAGIC):
        return real if os.access(real, os.X_OK) else None
    if real.name == "codex.js":
        return _npm_binary(real.parent.parent)
    shim = _SHIM.search(head.decode(errors="replace"))
    return native_binary(real.parent / shim[1]) if shim else None


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_WRAPPER)


def _npm_binary(package: Path) -> Path | None:
    """Find what codex.js would start: in the package, or in its platform package."""
    homes = [package]
    for scope in (package / "node_modules" / "@openai", package.parent):
        homes += sorted(scope.glob("codex-*"))
    for home in homes:
        for layout in ("vendor/*/bin/codex", "vendor/*/codex/codex"):
            for found in sorted(home.glob(layout)):
                if found.is_file() and _head(found).startswith(MAGIC):
                    return found.resolve()
    return None


def read_version(path: Path, environ: Mapping[str, str]) -> str | None:
    """Return what `path --version` says, `None` where it does not answer like codex.

    It gets a CODEX_HOME that does not exist: else codex leaves files in the real one
    (`tmp/arg0`) for a mere question.
    """
    try:
        said = subprocess.run(  # noqa: S603 - an executable that a person chose
            [str(path), "--version"],
            env={**environ, "CODEX_HOME": NO_HOME},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    text = said.stdout.decode(errors="replace")
    match = _VERSION.search(text)
    return match[1] if match and "codex" in text else None
