"""The published JSON Schema of v2, made from the models. Sans-IO. PROTOCOL.md.

`python -m transport.protocol.schema > docs/protocol/v2.schema.json` writes it anew; a
test compares the file with this.
"""

import json
import sys
from typing import Any

from pydantic.json_schema import models_json_schema

from transport.errors import ErrorCode
from transport.protocol.events import JOURNAL_EVENTS, SESSION_EVENTS
from transport.protocol.methods import METHODS
from transport.protocol.session import PROTOCOL_VERSION


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def protocol_schema() -> dict[str, Any]:
    """Return one schema: `$defs` of all models, then methods, events and
    error codes by name."""
    events = {**JOURNAL_EVENTS, **SESSION_EVENTS}
    rows = METHODS.values()
    models = [
        *((row.params, "validation") for row in rows),
        *((row.result, "serialization") for row in rows),
        *((model, "serialization") for model in events.values()),
    ]
    _, bundle = models_json_schema(models, ref_template="#/$defs/{model}")  # type: ignore[arg-type]  # a list of pairs is what it takes, mypy sees joined literals
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "threadgate protocol",
        "version": PROTOCOL_VERSION,
        "methods": {
            row.name: {
                "access": str(row.access),
                "gated": row.gated,
                "params": _reference(row.params.__name__),
                "result": _reference(row.result.__name__),
            }
            for row in rows
        },
        "events": {name: _reference(model.__name__) for name, model in events.items()},
        "errors": [str(code) for code in ErrorCode],
        "$defs": bundle["$defs"],
    }


def schema_text() -> str:
    """Return the file's exact text."""
    return json.dumps(protocol_schema(), indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
