"""The published JSON Schema is the models', and what the Agent says validates with it."""

from pathlib import Path
from typing import Any, Final

import jsonschema_rs
import pytest

from transport.protocol.methods import METHODS
from transport.protocol.schema import protocol_schema, schema_text

FILE: Final = Path(__file__).parents[2] / "docs" / "protocol" / "v2.schema.json"


def _validator(name: str) -> Any:
    whole = protocol_schema()
    return jsonschema_rs.validator_for({**whole, "$ref": f"#/$defs/{name}"})


def test_the_published_schema_is_up_to_date() -> None:
    assert FILE.read_text() == schema_text(), (
        "run: python -m transport.protocol.schema > docs/protocol/v2.schema.json"
    )


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_s_types_are_in_the_schema(name: str) -> None:
    row = protocol_schema()["methods"][name]
    for side in ("params", "result"):
        assert _validator(row[side]["$ref"].rsplit("/", 1)[1]) is not None


def test_the_schema_refuses_an_unknown_key_in_params() -> None:
    good = {"threadId": "t1", "turns": 3}
    assert _validator("ThreadReadParams").is_valid(good)
    assert not _validator("ThreadReadParams").is_valid({**good, "expectd": 1})
