"""The fields of a form, and what each of them takes. Sans-IO.

MCP's elicitation has a small subset of JSON Schema: texts, numbers, yes-or-no and
choices. Exactly that is taken.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime
from math import isfinite
from typing import Any, Final, cast

from adapter.limits import FORM_CHOICES, FORM_NAME_CHARS, LABEL_BYTES
from adapter.shapes.shapes import MisfitError, mapping, sequence, text, whole
from adapter.shapes.texts import byte_size

Raw = Mapping[str, Any]
Check = Callable[[object], str | None]
"""Returns what is wrong with a value, to be read behind the field's name."""

_LARGEST: Final = 2**53  # the largest whole number that every JSON reader keeps
_TOLD: Final = frozenset({"type", "title", "description", "default"})
_MAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")


def field_check(name: str, field: Raw) -> Check:
    """Return what looks at a field's values. Raises one of `MISFITS`."""
    if not 1 <= len(name) <= FORM_NAME_CHARS:
        raise MisfitError("a field without a name, or with a very long one")
    for key in ("title", "description"):
        if byte_size(text(field.get(key) or "")) > LABEL_BYTES:
            raise MisfitError(f"a very long {key}")
    match field["type"]:
        case "string":
            return _string(field)
        case "number" | "integer":
            return _number(field)
        case "boolean":
            only(field, _TOLD)
            return _boolean
        case "array":
            return _several(field)
        case _:
            raise MisfitError("a field of an unknown type")


def _string(field: Raw) -> Check:
    if field.get("enum") is not None or field.get("oneOf") is not None:
        only(field, _TOLD | {"enum", "enumNames", "oneOf"})
        return _one_of(_choices(field))
    only(field, _TOLD | {"minLength", "maxLength", "format"})
    least, most = _bounds(field, "minLength", "maxLength")
    named = field.get("format")
    format_of = None if named is None else _FORMATS[text(named)]

    def check(value: object) -> str | None:
        if not isinstance(value, str):
            return "must be a text"
        if len(value) < least or (most is not None and len(value) > most):
            return _says("must have", least, most, "characters")
        if format_of is not None and not format_of(value):
            return f"must be a {named}"
        return None

    return check


def _number(field: Raw) -> Check:
    only(field, _TOLD | {"minimum", "maximum"})
    integer = field["type"] == "integer"
    least, most = _finite(field.get("minimum")), _finite(field.get("maximum"))

    def check(value: object) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return "must be a number"
        if integer and not isinstance(value, int):
            return "must be a whole number"
        if not isfinite(value) or abs(value) > _LARGEST:
            return "is too large"
        if (least is not None and value < least) or (most is not None and value > most):
            return _says("must be", least, most, "")
        return None

    return check


def _several(field: Raw) -> Check:
    only(field, _TOLD | {"minItems", "maxItems", "items"})
    items = mapping(field["items"])
    only(items, {"type", "enum", "anyOf"})
    if items.get("type") not in (None, "string"):
        raise MisfitError("a list of something else than texts")
    offered = _choices({**items, "oneOf": items.get("anyOf")})
    one_of = _one_of(offered)
    least, most = _bounds(field, "minItems", "maxItems")

    def check(value: object) -> str | None:
        if not isinstance(value, list | tuple):
            return "must be a list"
        chosen = cast("Sequence[object]", value)
        if wrong := next(filter(None, map(one_of, chosen)), None):
            return wrong
        if len(set(chosen)) < len(chosen):
            return "holds a choice twice"
        if len(chosen) < least or (most is not None and len(chosen) > most):
            return _says("must hold", least, most, "choices")
        return None

    return check


def _choices(field: Raw) -> list[str]:
    """Return the values that are offered, by any of the three ways to write them."""
    if field.get("oneOf") is not None:
        if field.get("enum") is not None or field.get("enumNames") is not None:
            raise MisfitError("choices that are said in two ways")
        rows = [mapping(row) for row in sequence(field["oneOf"])]
        for row in rows:
            only(row, {"const", "title"})
        values = [text(row["const"]) for row in rows]
        names = [text(row["title"]) for row in rows]
    else:
        values = [text(value) for value in sequence(field["enum"])]
        names = [text(name) for name in sequence(field.get("enumNames"))] or values
    if not 1 <= len(values) <= FORM_CHOICES or len(names) != len(values):
        raise MisfitError("no choices, too many, or names that do not belong to them")
    if len(set(values)) < len(values):
        raise MisfitError("a choice that is there twice")
    if any(byte_size(word) > LABEL_BYTES for word in (*values, *names)):
        raise MisfitError("a very long choice")
    return values


def _one_of(offered: Collection[str]) -> Check:
    def check(value: object) -> str | None:
        return None if value in offered else "must be one of the choices"

    return check


def _boolean(value: object) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _bounds(field: Raw, least: str, most: str) -> tuple[int, int | None]:
    low, high = field.get(least), field.get(most)
    return (0 if low is None else _count(low)), None if high is None else _count(high)


def _count(value: object) -> int:
    number = whole(value)
    if not 0 <= number <= _LARGEST:
        raise MisfitError("a bound that is no count")
    return number


def _finite(value: object) -> int | float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MisfitError("a bound that is no number")
    if not isfinite(value) or abs(value) > _LARGEST:
        raise MisfitError("a bound that is no number")
    return value


def only(raw: Raw, known: Collection[str]) -> None:
    """Raise `MisfitError` where there is a keyword beside these."""
    for key, value in raw.items():
        if key not in known and value is not None:
            raise MisfitError("a keyword that is not known here")


def _says(verb: str, least: object, most: object, unit: str) -> str:
    low = "" if least in (None, 0) else f" at least {least}"
    high = "" if most is None else f" at most {most}"
    both = " and" if low and high else ""
    return f"{verb}{low}{both}{high} {unit}".rstrip()


def _is_date(value: str) -> bool:
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return len(value) == len("2026-11-30")


def _is_moment(value: str) -> bool:
    """A date and a time with its zone, as RFC 3339 writes it."""
    try:
        return "T" in value and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


_FORMATS: Final[Mapping[str, Callable[[str], object]]] = {
    "email": _MAIL.fullmatch,
    "uri": _URI.fullmatch,
    "date": _is_date,
    "date-time": _is_moment,
}
