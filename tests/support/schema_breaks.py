"""What of a published schema a newer one breaks. Sans-IO. PROTOCOL.md section 9.

Both are what `transport.protocol.schema` writes. Names of `$defs` never go over the wire,
so types are followed from the methods and events and compared by their shape. What a
client sends must go on being taken; what it is sent must go on being readable: it knows
to ignore new keys, and to read new enum values and new kinds as `other`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final, cast

Json = Mapping[str, Any]

_UPPER: Final = ("maxLength", "maxItems", "maxProperties", "maximum")
_LOWER: Final = ("minLength", "minItems", "minimum")
_SAME: Final = ("pattern", "format")
_ANY: Final = "any"


class Side(Enum):
    """Who sends a value: that decides which changes it survives."""

    REQUEST = auto()
    ANSWER = auto()


def breaks(old: Json, new: Json) -> list[str]:
    """Return each break as a line for a person; nothing: `new` only adds."""
    return list(_Comparison(old, new).all())


@dataclass(slots=True)
class _Comparison:
    old: Json
    new: Json
    _seen: set[tuple[str, str, Side]] = field(
        default_factory=set[tuple[str, str, Side]]
    )

    def all(self) -> Iterator[str]:
        yield from self._methods()
        for name, model in _map(self.old, "events").items():
            later = _map(self.new, "events").get(name)
            if later is None:
                yield f"event {name} is gone"
            else:
                yield from self._value(name, model, later, Side.ANSWER)
        for code in self.old.get("errors", ()):
            if code not in self.new.get("errors", ()):
                yield f"error code {code} is gone"

    def _methods(self) -> Iterator[str]:
        for name, row in _map(self.old, "methods").items():
            later = _map(self.new, "methods").get(name)
            if later is None:
                yield f"method {name} is gone"
                continue
            for key in ("access", "gated"):
                if row[key] != later[key]:
                    yield f"{name}: {key} was {row[key]}, is {later[key]}"
            sides = (("params", Side.REQUEST), ("result", Side.ANSWER))
            for key, side in sides:
                yield from self._value(f"{name} {key}", row[key], later[key], side)

    def _value(self, at: str, old: Json, new: Json, side: Side) -> Iterator[str]:
        key = (str(old), str(new), side)
        if "$ref" in old or "$ref" in new:
            if key in self._seen:
                return
            self._seen.add(key)
        before, after = _kinds(old, self.old), _kinds(new, self.new)
        yield from _other_kinds(at, before, after, side)
        for kind in before.keys() & after.keys():
            where = f"{at} ({kind})" if ":" in kind else at
            yield from self._shape(where, before[kind], after[kind], side)

    def _shape(self, at: str, old: Json, new: Json, side: Side) -> Iterator[str]:
        yield from _values(at, old, new, side)
        if side is Side.REQUEST:
            yield from _bounds(at, old, new)
            if (
                new.get("additionalProperties") is False
                and "additionalProperties" not in old
            ):
                yield f"{at}: other keys were taken"
        for key, suffix in (("items", "[]"), ("additionalProperties", "{}")):
            if (before := _map(old, key)) and (after := _map(new, key)):
                yield from self._value(f"{at}{suffix}", before, after, side)
        yield from self._fields(at, old, new, side)

    def _fields(self, at: str, old: Json, new: Json, side: Side) -> Iterator[str]:
        before, after = _map(old, "properties"), _map(new, "properties")
        needed, needs = old.get("required", ()), new.get("required", ())
        for name in before:
            if name not in after:
                yield f"{at}: field {name} is gone"
            else:
                where = f"{at}.{name}"
                yield from self._value(where, before[name], after[name], side)
        for name in after:
            if side is Side.REQUEST and name in needs and name not in needed:
                yield f"{at}: field {name} must be sent now"
            if side is Side.ANSWER and name in needed and name not in needs:
                yield f"{at}: field {name} may be missing now"


def _kinds(schema: Json, whole: Json) -> dict[str, Json]:
    """Return the alternatives of a type, by what tells them apart on the wire."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rsplit("/", 1)[1]
        return _kinds(_map(whole, "$defs")[name], whole)
    found: dict[str, Json] = {}
    for one in schema.get("anyOf") or schema.get("oneOf") or ():
        for kind, shape in _kinds(one, whole).items():
            found[kind] = _joined(found[kind], shape) if kind in found else shape
    return found or {_kind(schema): schema}


def _kind(shape: Json) -> str:
    """Return a type's name; an object that names its kind is told apart by that."""
    for name, value in _map(shape, "properties").items():
        if "const" in value:
            return f"{name}: {value['const']}"
    return str(shape.get("type", _ANY))


def _joined(one: Json, other: Json) -> Json:
    """Two alternatives of one type: their values together (objects: the first)."""
    values, more = _allowed(one), _allowed(other)
    if values is None or more is None:
        return one if values is None else other
    return {**one, "enum": [*values, *more]}


def _other_kinds(
    at: str, before: Mapping[str, Json], after: Mapping[str, Json], side: Side
) -> Iterator[str]:
    for kind in before:
        taken = kind in after or (side is Side.REQUEST and _ANY in after)
        wider = side is Side.REQUEST and kind == "integer" and "number" in after
        if not taken and not wider:
            yield f"{at}: {kind} is gone, there is {', '.join(after)}"
    for kind in after:
        if side is Side.ANSWER and kind not in before and ":" not in kind:
            yield f"{at}: may be {kind} now, was {', '.join(before)}"


def _allowed(shape: Json) -> list[Any] | None:
    if "const" in shape:
        return [shape["const"]]
    values = shape.get("enum")
    return None if values is None else list(values)


def _values(at: str, old: Json, new: Json, side: Side) -> Iterator[str]:
    before, after = _allowed(old), _allowed(new)
    if after is None:
        return
    if before is None:
        if side is Side.REQUEST:
            yield f"{at}: only {', '.join(map(str, after))} now"
        return
    for value in before:
        if value not in after:
            yield f"{at}: value {value} is gone"


def _bounds(at: str, old: Json, new: Json) -> Iterator[str]:
    infinite = float("inf")
    for name in _UPPER:
        if new.get(name, infinite) < old.get(name, infinite):
            yield f"{at}: {name} shrank to {new[name]}"
    for name in _LOWER:
        if new.get(name, -infinite) > old.get(name, -infinite):
            yield f"{at}: {name} grew to {new[name]}"
    for name in _SAME:
        if name in new and new[name] != old.get(name):
            yield f"{at}: another {name}, {new[name]}"


def _map(schema: Json, key: str) -> Mapping[str, Any]:
    """Return the map at `key`; empty where there is none or something else."""
    found = schema.get(key)
    return cast("Json", found) if isinstance(found, Mapping) else {}
