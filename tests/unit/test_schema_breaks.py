"""Each way to break a client of a published schema is found, and additions are not."""

import copy
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.support.schema_breaks import breaks
from transport.protocol.schema import protocol_schema

Schema = dict[str, Any]

OLD: Final[Schema] = {
    "methods": {
        "note/write": {
            "access": "write",
            "gated": True,
            "params": {"$ref": "#/$defs/P"},
            "result": {"$ref": "#/$defs/R"},
        }
    },
    "events": {"note/written": {"$ref": "#/$defs/E"}},
    "errors": ["conflict", "internal"],
    "$defs": {
        "P": {
            "type": "object",
            "additionalProperties": False,
            "required": ["text"],
            "properties": {
                "text": {"type": "string", "maxLength": 100},
                "count": {"type": "integer", "minimum": 1},
                "tone": {"$ref": "#/$defs/Tone"},
                "where": {
                    "anyOf": [
                        {"type": "string", "const": "all"},
                        {"type": "array", "items": {"type": "string"}},
                    ]
                },
            },
        },
        "Tone": {"type": "string", "enum": ["dry", "warm"]},
        "R": {
            "type": "object",
            "required": ["id"],
            "properties": {
                "id": {"type": "string"},
                "again": {"$ref": "#/$defs/R"},
                "tags": {"type": "array", "items": {"type": "string"}},
            },
        },
        "E": {
            "type": "object",
            "required": ["item"],
            "properties": {
                "item": {"oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]}
            },
        },
        "A": {
            "type": "object",
            "properties": {"kind": {"const": "a"}, "x": {"type": "string"}},
        },
        "B": {"type": "object", "properties": {"kind": {"const": "b"}}},
    },
}


def changed(change: Callable[[Schema, Schema], None]) -> list[str]:
    """Return what is found after `change(schema, its $defs)`."""
    new = copy.deepcopy(OLD)
    change(new, new["$defs"])
    return breaks(OLD, new)


def params(defs: Schema) -> Schema:
    found: Schema = defs["P"]["properties"]
    return found


def drop_alternative(_: Schema, defs: Schema) -> None:
    del params(defs)["where"]["anyOf"][0]


BROKEN: Final[dict[str, tuple[Callable[[Schema, Schema], Any], str]]] = {
    "method removed": (lambda s, _: s["methods"].clear(), "method note/write is gone"),
    "event removed": (lambda s, _: s["events"].clear(), "event note/written is gone"),
    "error code removed": (
        lambda s, _: s["errors"].remove("conflict"),
        "error code conflict is gone",
    ),
    "another scope": (
        lambda s, _: s["methods"]["note/write"].update(access="approve"),
        "access was write, is approve",
    ),
    "request field removed": (lambda _, d: params(d).pop("count"), "count is gone"),
    "answer field removed": (lambda _, d: d["R"]["properties"].pop("tags"), "tags is"),
    "request field required": (
        lambda _, d: d["P"]["required"].append("count"),
        "count must be sent now",
    ),
    "new request field required": (
        lambda _, d: (
            params(d).update(key={"type": "string"}),
            d["P"]["required"].append("key"),
        ),
        "key must be sent now",
    ),
    "answer field optional": (
        lambda _, d: d["R"]["required"].remove("id"),
        "id may be missing now",
    ),
    "type changed": (lambda _, d: params(d)["count"].update(type="string"), "integer"),
    "alternative removed": (drop_alternative, "where: string is gone"),
    "answer may be more": (
        lambda _, d: d["R"]["properties"].update(
            id={"anyOf": [{"type": "string"}, {"type": "null"}]}
        ),
        "id: may be null now",
    ),
    "enum value removed": (lambda _, d: d["Tone"]["enum"].remove("dry"), "value dry"),
    "text became an enum": (
        lambda _, d: params(d)["text"].update(enum=["a"]),
        "only a now",
    ),
    "upper bound shrank": (
        lambda _, d: params(d)["text"].update(maxLength=99),
        "maxLength shrank",
    ),
    "new upper bound": (
        lambda _, d: params(d)["count"].update(maximum=9),
        "maximum shrank",
    ),
    "lower bound grew": (
        lambda _, d: params(d)["count"].update(minimum=2),
        "grew to 2",
    ),
    "new pattern": (lambda _, d: params(d)["text"].update(pattern="^a"), "pattern"),
    "inside a list": (
        lambda _, d: d["R"]["properties"]["tags"]["items"].update(type="integer"),
        r"tags[]: string is gone",
    ),
    "inside a kind": (
        lambda _, d: d["A"]["properties"].pop("x"),
        "item (kind: a): field x is gone",
    ),
    "kind removed": (
        lambda _, d: d["E"]["properties"]["item"]["oneOf"].pop(0),
        "item: kind: a is gone",
    ),
}

ADDED: Final[dict[str, Callable[[Schema, Schema], Any]]] = {
    "method": lambda s, _: s["methods"].update(more=s["methods"]["note/write"]),
    "error code": lambda s, _: s["errors"].append("later"),
    "optional request field": lambda _, d: params(d).update(key={"type": "string"}),
    "answer field": lambda _, d: d["R"]["properties"].update(z={"type": "string"}),
    "enum value": lambda _, d: d["Tone"]["enum"].append("cold"),
    "more room": lambda _, d: params(d)["text"].update(maxLength=101),
    "number for integer": lambda _, d: params(d)["count"].update(type="number"),
    "another name of a type": lambda _, d: (
        d.update(Voice=d.pop("Tone")),
        params(d).update(tone={"$ref": "#/$defs/Voice"}),
    ),
    "kind": lambda _, d: d["E"]["properties"]["item"]["oneOf"].append(
        {"type": "object", "properties": {"kind": {"const": "c"}}}
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_break_is_found_and_said(name: str) -> None:
    change, told = BROKEN[name]
    found = changed(change)
    assert len(found) >= 1
    assert told in found[0]


@pytest.mark.parametrize("name", ADDED)
def test_an_addition_breaks_nothing(name: str) -> None:
    assert changed(ADDED[name]) == []


def test_the_real_schema_breaks_nothing_of_itself_and_all_of_nothing() -> None:
    schema = protocol_schema()
    assert breaks(schema, schema) == []
    assert len(breaks(schema, {})) == sum(
        len(schema[part]) for part in ("methods", "events", "errors")
    )


def test_fields_taken_out_of_any_real_object_are_found() -> None:
    schema = protocol_schema()
    for name, model in schema["$defs"].items():
        fields = model.get("properties", {})
        kept = {key: one for key, one in fields.items() if "const" in one}
        new = {
            **schema,
            "$defs": {**schema["$defs"], name: {**model, "properties": kept}},
        }
        found = "\n".join(breaks(schema, new))
        for field in fields.keys() - kept.keys():
            assert f"field {field} is gone" in found, name
