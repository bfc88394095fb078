"""Write `generated/` anew from a codex binary, or check it. Blocking I/O.

    python -m generated.regenerate --codex PATH      write it from this binary
    python -m generated.regenerate --check           compare, change nothing

The binary is `--codex` or `THREADGATE_CODEX_PINNED`. Without one, `--check` verifies the
hashes in MANIFEST.json, says that it skipped the rest, and succeeds.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from generated.flatten import BUNDLE, TYPED, flatten
from generated.typed import typed_source

HERE: Final = Path(__file__).parent
VARIABLE: Final = "THREADGATE_CODEX_PINNED"
DUMP_S: Final = 60.0  # a dump takes 0.1 s
LICENCE: Final = "LICENSE.codex"

Files = dict[str, str]


class RegenerateError(Exception):
    """Something a person has to look at; `str()` is the whole story."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; return its exit code."""
    options = _options(argv)
    codex = options.codex or os.environ.get(VARIABLE)
    path = Path(codex) if codex else None
    try:
        said = check(HERE, path) if options.check else write(HERE, path)
    except RegenerateError as error:
        sys.stderr.write(f"generated: {error}\n")
        return 1
    sys.stdout.write(f"generated: {said}\n")
    return 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m generated.regenerate")
    parser.add_argument("--check", action="store_true", help="compare, change nothing")
    parser.add_argument("--codex", metavar="PATH", help=f"default: ${VARIABLE}")
    return parser.parse_args(argv)


def write(folder: Path, codex: Path | None) -> str:
    """Write every generated file; return what was done, in words."""
    if codex is None:
        raise RegenerateError(f"which codex? Give --codex PATH or set {VARIABLE}")
    files = fresh_files(codex)
    (folder / "schema").mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    version = json.loads(files["MANIFEST.json"])["codex"]["version"]
    return f"written from codex {version}"


def check(folder: Path, codex: Path | None) -> str:
    """Raise RegenerateError where a file is not as it should be; else say so."""
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    for name, digest in manifest["files"].items():
        if _sha256((folder / name).read_bytes()) != digest:
            raise RegenerateError(f"{name} was edited: its hash is not MANIFEST.json's")
    version = manifest["codex"]["version"]
    if codex is None:
        return f"hashes hold; no codex {version} here, fresh dump skipped"
    fresh = fresh_files(codex, expected=version)
    for name, text in fresh.items():
        if (folder / name).read_text() != text:
            raise RegenerateError(f"{name} differs from what codex {version} dumps")
    return f"equal to a fresh dump of codex {version}"


def fresh_files(codex: Path, *, expected: str | None = None) -> Files:
    """Return name → text of all generated files, as this binary says they should be."""
    version = _version(codex)
    if expected not in (None, version):
        raise RegenerateError(f"{codex} is {version}, the pinned codex is {expected}")
    dump = _dump(codex)
    schema, table = flatten(json.loads(dump))
    types = [name for method in TYPED for name in _named(table[method])]
    files = {
        "schema/codex.json": _compact(schema),
        "schema/methods.json": json.dumps(table, indent=1) + "\n",
        "codex.py": typed_source(version, schema, types),
    }
    licence = HERE.joinpath(LICENCE).read_text()
    return {**files, "MANIFEST.json": _manifest(version, dump, files, licence)}


def _named(row: dict[str, str | None]) -> list[str]:
    return [name for side in ("params", "result") if (name := row.get(side))]


def _compact(schema: dict[str, Any]) -> str:
    """One definition a line: small, and a diff shows which one changed."""
    rows = [
        f"{json.dumps(name)}:{json.dumps(body, separators=(',', ':'), sort_keys=True)}"
        for name, body in schema["definitions"].items()
    ]
    head = f'{{"$schema":{json.dumps(schema["$schema"])},"definitions":{{\n'
    return head + ",\n".join(rows) + "\n}}\n"


def _manifest(version: str, dump: bytes, files: Files, licence: str) -> str:
    texts = {**files, LICENCE: licence}
    return (
        json.dumps(
            {
                "codex": {
                    "version": version,
                    "license": "Apache-2.0",
                    "copyright": "OpenAI",
                    "source": {"file": BUNDLE, "sha256": _sha256(dump)},
                },
                "files": {
                    name: _sha256(text.encode()) for name, text in sorted(texts.items())
                },
            },
            indent=2,
        )
        + "\n"
    )


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _version(codex: Path) -> str:
    words = _run(codex, "--version").split()
    if not words:
        raise RegenerateError(f"{codex} --version says nothing")
    return words[-1]


def _dump(codex: Path) -> bytes:
    with tempfile.TemporaryDirectory() as out:
        command = ("app-server", "generate-json-schema", "--experimental", "--out", out)
        _run(codex, *command)
        return Path(out, BUNDLE).read_bytes()


def _run(codex: Path, *arguments: str) -> str:
    """Run codex with an empty home of its own: never the person's."""
    with tempfile.TemporaryDirectory() as home:
        try:
            done = subprocess.run(  # noqa: S603 - the binary that the caller named
                [str(codex), *arguments],
                env={**os.environ, "CODEX_HOME": home},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=True,
                timeout=DUMP_S,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise RegenerateError(f"{codex} could not be run: {error}") from error
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
