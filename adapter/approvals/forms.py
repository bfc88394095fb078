"""Forms that MCP servers ask for: which we understand, and what may be filled in. Sans-IO.

A form is one flat object of `form_fields`. One with anything else in it cannot be shown as
what it is. What a client sends is checked here, before Codex hears of it.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adapter.approvals.choices import unfit
from adapter.approvals.form_fields import Check, Raw, field_check, only
from adapter.limits import FORM_FIELDS
from adapter.shapes.shapes import MisfitError, mapping, sequence, text

_FORM_KEYS: Final = frozenset({"$schema", "type", "properties", "required"})
_SECRET: Final = re.compile(
    r"pass[ _-]?(word|wd|phrase)|secret|credential|(api|private)[ _-]?key"
    r"|(access|auth|bearer|refresh)[ _-]?token|\b(otp|pin)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form that can be shown and filled in. `schema`: JSON Schema, as a client sees it.

    `secrets`: names of the fields that seem to ask for one. A form's values go through
    the model's tools and are stored with the thread: no place for a password.
    """

    schema: Mapping[str, Any]
    secrets: Sequence[str]
    checks: Mapping[str, Check]
    required: Collection[str]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to fill in."""
        return not self.checks

    def check(self, content: Mapping[str, Any]) -> None:
        """Raise `InvalidParams` unless the content fits."""
        for name in self.required:
            if name not in content:
                raise unfit("content", f"{name} is missing.")
        for name, value in content.items():
            check = self.checks.get(name)
            wrong = "is not in this form" if check is None else check(value)
            if wrong is not None:
                raise unfit("content", f"{name} {wrong}.")


def read_form(raw: object) -> Form:
    """Return the form of a schema. Raises one of `MISFITS` where it is no such subset."""
    schema = mapping(raw)
    only(schema, _FORM_KEYS)
    if schema["type"] != "object":
        raise MisfitError("a form is an object")
    fields = mapping(schema["properties"])
    named = [text(name) for name in sequence(schema.get("required"))]
    required = [*dict.fromkeys(named)]  # a server may say one any number of times
    if len(fields) > FORM_FIELDS or not set(required) <= set(fields):
        raise MisfitError("too many fields, or one that is required and not there")
    checks = {name: field_check(name, mapping(field)) for name, field in fields.items()}
    shown = {name: _plain(fields[name], checks[name]) for name in fields}
    return Form(
        schema={"type": "object", "properties": shown, "required": required},
        secrets=[name for name in fields if _asks_for_secret(name, fields[name])],
        checks=checks,
        required=required,
    )


def _plain(field: Raw, check: Check) -> dict[str, Any]:
    """Leave out what is null, since it says nothing, and a default that does not fit."""
    return {
        key: value
        for key, value in field.items()
        if value is not None and (key != "default" or check(value) is None)
    }


def _asks_for_secret(name: str, field: Raw) -> bool:
    if field["type"] != "string" or "enum" in field or "oneOf" in field:
        return False
    words = re.sub(r"([a-z])([A-Z])", r"\1 \2", f"{name} {field.get('title') or ''}")
    return _SECRET.search(words.replace("_", " ")) is not None
