"""How large what a client sends with a mutation may be. Sans-IO. PROTOCOL.md section 4."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent.limits import SCHEMA_BYTES, TEXT_INPUT
from transport.errors import TooLarge
from transport.protocol.reviews import CustomTarget, ReviewTarget
from transport.protocol.turns import InputPart, TextInput


def check_size(given: Sequence[InputPart]) -> None:
    """Raise `TooLarge` for a message above `limits.textInput`."""
    texts = (one.text for one in given if isinstance(one, TextInput))
    if sum(len(text.encode()) for text in texts) > TEXT_INPUT:
        raise TooLarge(
            f"A message may have at most {TEXT_INPUT} bytes.",
            data={"field": "input", "limit": TEXT_INPUT},
        )


def check_target(target: ReviewTarget) -> None:
    """Raise `TooLarge` for words about what to review above `limits.textInput`."""
    if isinstance(target, CustomTarget) and len(target.text.encode()) > TEXT_INPUT:
        raise TooLarge(
            f"What to review may be said in at most {TEXT_INPUT} bytes.",
            data={"field": "target", "limit": TEXT_INPUT},
        )


def check_schema(schema: Mapping[str, Any] | None) -> None:
    """Raise `TooLarge` for an output schema above 32 KiB."""
    if schema is not None and len(json.dumps(schema)) > SCHEMA_BYTES:
        raise TooLarge(
            f"An output schema may have at most {SCHEMA_BYTES} bytes of JSON.",
            data={"field": "outputSchema", "limit": SCHEMA_BYTES},
        )
