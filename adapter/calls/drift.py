"""How far a codex is from the one whose messages are known here. Blocking I/O.

Codex writes the schema of its app-server itself; that is compared with `generated/`. A
difference is no fault: an older codex lacks methods, a newer one has kinds of messages
that arrive as `other`. It tells where to look first when something goes wrong.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, cast

from adapter.errors import AdapterError
from generated.flatten import BUNDLE, Table, flatten

DUMP_S: Final = 60.0  # it takes 0.3 s, on a cold disk some more


class SchemaUnreadableError(AdapterError):
    """This codex did not write its schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Names of Codex's methods. `missing`: we send or read them, this codex has none.

    `added`: kinds of messages of this codex that we do not know. `changed`: its
    parameters or its answer have another shape.
    """

    missing: tuple[str, ...]
    added: tuple[str, ...]
    changed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.missing or self.added or self.changed)


def schema_drift(codex: Path) -> Drift:
    """Compare a codex with `generated/` (≤ 60 s). Raises: SchemaUnreadableError."""
    try:
        theirs, table = flatten(json.loads(_dump(codex)))
    except (OSError, subprocess.SubprocessError, KeyError, ValueError) as exc:
        reason = f"{codex} did not write its schema: {type(exc).__name__}"
        raise SchemaUnreadableError(reason) from exc
    ours, known = _stored("codex.json"), cast("Table", _stored("methods.json"))
    both = [name for name in known if name in table]
    return Drift(
        missing=tuple(name for name in known if name not in table),
        added=tuple(name for name in table if name not in known),
        changed=tuple(
            name
            for name in both
            if _shape(known[name], ours) != _shape(table[name], theirs)
        ),
    )


def _stored(name: str) -> dict[str, Any]:
    text = files("generated").joinpath("schema", name).read_text()
    return cast("dict[str, Any]", json.loads(text))


def _shape(row: Mapping[str, str | None], schema: Mapping[str, Any]) -> list[Any]:
    """Return the definitions that a method names itself; deeper ones grow all the time."""
    definitions = schema["definitions"]
    return [definitions.get(row.get(side) or "") for side in ("params", "result")]


def _dump(codex: Path) -> bytes:
    """Run codex with an empty home of its own: never the person's."""
    with (
        tempfile.TemporaryDirectory() as home,
        tempfile.TemporaryDirectory() as out,
    ):
        words = ("app-server", "generate-json-schema", "--experimental", "--out", out)
        subprocess.run(  # noqa: S603 - the codex that was found or named
            [str(codex), *words],
            env={**os.environ, "CODEX_HOME": home},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=DUMP_S,
        )
        return Path(out, BUNDLE).read_bytes()
