"""The fields of an MCP server's form, and what a person types into them. Sans-IO.

PROTOCOL.md section 5, elicitation: one flat object of MCP's subset of JSON Schema. What
is read here is only turned into values; whether they fit is for the Agent to say.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from clients.cli.plain import one_line

Value = bool | int | float | str | list[str]

_YES: Final = frozenset({"y", "yes", "true"})
_NO: Final = frozenset({"n", "no", "false"})


@dataclass(frozen=True, slots=True)
class FormChoice:
    """One of the values that a field offers, and what it is called."""

    value: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """One field. `kind`: text, whole, number, boolean, choice or choices."""

    name: str
    title: str
    description: str
    kind: str
    required: bool
    choices: Sequence[FormChoice]
    limits: str

    @property
    def says(self) -> str:
        """Return what may be typed."""
        words = {
            "whole": "a whole number",
            "number": "a number",
            "boolean": "yes or no",
            "choice": "one of the numbers",
            "choices": "numbers with commas between them",
        }
        return f"({words.get(self.kind, 'a text')}{self.limits})"

    def read(self, typed: str) -> Value:
        """Return the value of what was typed. Raises: ValueError with what to do."""
        match self.kind:
            case "whole":
                return _number(typed, int)
            case "number":
                return _number(typed, float)
            case "boolean":
                return _boolean(typed)
            case "choice":
                return self._choice(typed)
            case "choices":
                return [self._choice(one) for one in typed.split(",") if one.strip()]
            case _:
                return typed

    def _choice(self, typed: str) -> str:
        word = typed.strip()
        if word.isdecimal() and 1 <= int(word) <= len(self.choices):
            return self.choices[int(word) - 1].value
        meant = [one for one in self.choices if word in {one.value, one.title}]
        if len(meant) > 1:  # a form can call one choice by another's name
            raise ValueError(f"{one_line(word, 40)} means several: type the number")
        if not meant:
            raise ValueError(f"{one_line(word, 40)} is none of the choices")
        return meant[0].value


def form_fields(schema: Mapping[str, Any] | None) -> list[FormField]:
    """Return the fields of a form's schema, in its order."""
    if schema is None:
        return []
    required = cast("list[str]", schema.get("required") or [])
    properties = cast("Mapping[str, Any]", schema.get("properties") or {})
    return [
        _field(name, cast("Mapping[str, Any]", field), required=name in required)
        for name, field in properties.items()
        if isinstance(field, Mapping)
    ]


def _field(name: str, raw: Mapping[str, Any], *, required: bool) -> FormField:
    title = raw.get("title")
    choices = _choices(raw)
    return FormField(
        name=name,
        title=f"{name}: {title}" if title and title != name else name,
        description=str(raw.get("description") or ""),
        kind=_kind(raw, choices),
        required=required,
        choices=choices,
        limits=_limits(raw),
    )


def _kind(raw: Mapping[str, Any], choices: Sequence[FormChoice]) -> str:
    if raw.get("type") == "array":
        return "choices"
    if choices:
        return "choice"
    kinds = {"integer": "whole", "number": "number", "boolean": "boolean"}
    return kinds.get(str(raw.get("type")), "text")


def _choices(raw: Mapping[str, Any]) -> list[FormChoice]:
    place = cast("Mapping[str, Any]", raw.get("items") or raw)
    titled = place.get("oneOf") or place.get("anyOf")
    if titled:
        rows = cast("list[Mapping[str, Any]]", titled)
        return [FormChoice(str(row["const"]), str(row["title"])) for row in rows]
    values = [str(value) for value in place.get("enum") or ()]
    names = [str(name) for name in place.get("enumNames") or values]
    return [FormChoice(value, name) for value, name in zip(values, names, strict=True)]


def _limits(raw: Mapping[str, Any]) -> str:
    words = {
        "minLength": "at least {} characters",
        "maxLength": "at most {} characters",
        "minimum": "at least {}",
        "maximum": "at most {}",
        "minItems": "at least {} of them",
        "maxItems": "at most {} of them",
        "format": "format {}",
    }
    said = [how.format(raw[key]) for key, how in words.items() if key in raw]
    return "".join(f", {one}" for one in said)


def _number(typed: str, read: type[int] | type[float]) -> int | float:
    try:
        number = read(typed.strip())
        return int(number) if number == int(number) else number
    except (ValueError, OverflowError):
        raise ValueError(f"{one_line(typed, 40)} is no such number") from None


def _boolean(typed: str) -> bool:
    word = typed.strip().lower()
    if word in _YES | _NO:
        return word in _YES
    raise ValueError("type yes or no")
