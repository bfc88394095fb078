"""Forms of MCP servers: which are understood, and which content fits them."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.approvals.forms import Form, read_form
from adapter.shapes.shapes import MISFITS
from transport.errors import InvalidParams


def form(required: list[str] | None = None, **fields: Any) -> Form:
    raw = {"type": "object", "properties": fields}
    return read_form(raw if required is None else {**raw, "required": required})


def fits(field: dict[str, Any], value: object) -> bool:
    try:
        form(field=field).check({"field": value})
    except InvalidParams:
        return False
    return True


TITLED = {"type": "string", "oneOf": [{"const": "r", "title": "Red"}]}
SEVERAL = {
    "type": "array",
    "items": {"type": "string", "enum": ["a", "b", "c"]},
    "minItems": 1,
    "maxItems": 2,
}
CASES: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    ({"type": "string"}, ["", "x"], [1, True, None, ["x"]]),
    ({"type": "string", "minLength": 2, "maxLength": 3}, ["ab", "abc"], ["a", "abcd"]),
    ({"type": "string", "format": "email"}, ["a@b"], ["a", "a b@c", "@"]),
    ({"type": "string", "format": "uri"}, ["https://x", "a:b"], ["x", "1:b", "a: b"]),
    ({"type": "string", "format": "date"}, ["2026-11-30"], ["2026-13-01", "20261130"]),
    (
        {"type": "string", "format": "date-time"},
        ["2026-11-30T10:00:00Z", "2026-11-30T10:00:00+02:00"],
        ["2026-11-30T10:00:00", "2026-11-30"],
    ),
    ({"type": "string", "enum": ["r", "b"]}, ["r"], ["x", "", None, 1]),
    (
        {"type": "string", "enum": ["r"], "enumNames": ["Red"], "default": "r"},
        ["r"],
        ["Red"],
    ),
    (TITLED, ["r"], ["Red"]),
    ({"type": "number", "minimum": 1, "maximum": 2.5}, [1, 2.5], [0, 3, True, "1"]),
    ({"type": "integer"}, [0, -5], [1.5, 1.0, True, 2**60, "1"]),
    ({"type": "boolean"}, [True, False], [0, 1, "true", None]),
    (
        SEVERAL,
        [["a"], ["a", "b"]],
        [[], ["a", "a"], ["x"], "a", ["a", "b", "c"], [["a"]]],
    ),
    (
        {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
        [[], ["a"]],
        [["A"]],
    ),
]


@pytest.mark.parametrize(("field", "good", "bad"), CASES)
def test_a_field_takes_what_fits_it(
    field: dict[str, Any], good: list[Any], bad: list[Any]
) -> None:
    for value in good:
        assert fits(field, value), value
    for value in bad:
        assert not fits(field, value), value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e300])
def test_numbers_that_json_readers_disagree_about_are_refused(value: float) -> None:
    assert not fits({"type": "number"}, value)


def test_what_is_required_is_told_once_however_often_it_is_said() -> None:
    asked = form(["field"] * 5_000, field={"type": "string"})
    assert asked.schema["required"] == ["field"]  # a list of 5,000 ends a session


def test_what_is_required_must_be_there_and_what_is_not_may_be_missing() -> None:
    asked = form(["a"], a={"type": "string"}, b={"type": "boolean"})
    asked.check({"a": "x"})
    with pytest.raises(InvalidParams, match="a is missing"):
        asked.check({"b": True})
    with pytest.raises(InvalidParams, match="c is not in this form"):
        asked.check({"a": "x", "c": 1})


def test_the_schema_that_is_shown_is_the_one_that_is_checked() -> None:
    shown = form(
        ["a"],
        a={"type": "string", "title": "A", "format": None, "default": 7},
        b=SEVERAL,
    ).schema
    assert shown == {
        "type": "object",
        "properties": {"a": {"type": "string", "title": "A"}, "b": SEVERAL},
        "required": ["a"],
    }


@pytest.mark.parametrize(
    "raw",
    [
        None,
        [],
        {"type": "object"},
        {"type": "array", "properties": {}},
        {"type": "object", "properties": {}, "required": ["x"]},
        {"type": "object", "properties": {}, "additionalProperties": True},
        {"type": "object", "properties": {}, "allOf": []},
        {"type": "object", "properties": {"": {"type": "string"}}},
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"a": {"type": "null"}}},
        {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}},
        {"type": "object", "properties": {"a": {"type": "string", "format": "ipv4"}}},
        {"type": "object", "properties": {"a": {"type": "string", "minLength": -1}}},
        {"type": "object", "properties": {"a": {**TITLED, "enum": [["odd"]]}}},
        {"type": "object", "properties": {"a": {**TITLED, "enumNames": ["odd"]}}},
        {
            "type": "object",
            "properties": {
                "a": {"type": "array", "items": {"type": ["odd"], "enum": ["x"]}}
            },
        },
        {"type": "object", "properties": {"a": {"type": "string", "enum": []}}},
        {"type": "object", "properties": {"a": {"type": "string", "enum": [1]}}},
        {"type": "object", "properties": {"a": {"type": "string", "enum": ["x", "x"]}}},
        {
            "type": "object",
            "properties": {
                "a": {"type": "string", "enum": ["x"], "enumNames": ["X", "Y"]}
            },
        },
        {"type": "object", "properties": {"a": {"type": "number", "minimum": True}}},
        {"type": "object", "properties": {"a": {"type": "number", "maximum": 1e308}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": {}}}},
        {
            "type": "object",
            "properties": {"a": {"type": "string", "title": "x" * 2000}},
        },
        {
            "type": "object",
            "properties": {f"f{n}": {"type": "string"} for n in range(65)},
        },
    ],
)
def test_a_schema_outside_the_subset_is_a_misfit(raw: object) -> None:
    with pytest.raises(MISFITS):
        read_form(raw)


@pytest.mark.parametrize(
    "field",
    [
        {"password": {"type": "string"}},
        {"x": {"type": "string", "title": "Pass phrase"}},
        {"apiKey": {"type": "string"}},
        {"client_secret": {"type": "string"}},
        {"accessToken": {"type": "string"}},
        {"pin": {"type": "string"}},
    ],
)
def test_a_field_that_asks_for_a_secret_is_found(field: dict[str, Any]) -> None:
    assert form(**field).secrets == list(field)


@pytest.mark.parametrize(
    "field",
    [
        {"maxTokens": {"type": "integer"}},
        {"keyboard": {"type": "string"}},
        {"opinion": {"type": "string", "title": "Spinning"}},
        {"password_policy": {"type": "string", "enum": ["strict", "lax"]}},
        {"secret": {"type": "boolean"}},
    ],
)
def test_a_field_that_asks_for_none_is_let_be(field: dict[str, Any]) -> None:
    assert form(**field).secrets == []


_VALUES = st.one_of(
    st.text(max_size=6),
    st.integers(-5, 5),
    st.booleans(),
    st.floats(-3, 3),
    st.lists(st.sampled_from(["a", "b", "c", "x"]), max_size=4),
    st.sampled_from(["r", "b", "a@b", "2026-11-30"]),
)
_FIELDS = st.sampled_from(
    [field for field, _, _ in CASES if "format" not in field and field is not SEVERAL]
)


@given(field=_FIELDS, value=_VALUES)
def test_what_is_taken_is_what_json_schema_takes(
    field: dict[str, Any], value: object
) -> None:
    """But for 1.0, which JSON Schema calls an integer, and a choice made twice."""
    shown = form(field=field).schema
    valid: bool = jsonschema_rs.is_valid(dict(shown), {"field": value})
    if fits(field, value):
        assert valid
    elif valid:
        whole = isinstance(value, float) and field["type"] == "integer"
        assert whole or isinstance(value, list)
