"""What a person types into a form, as values."""

import pytest

from clients.cli.formfields import FormField, Value, form_fields
from tests.support import cli_asked


def field(name: str) -> FormField:
    fields = form_fields(cli_asked.form_approval().detail.form)
    return next(one for one in fields if one.name == name)


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [
        ("colour", "1", "r"),
        ("colour", "Blue", "b"),
        ("colour", "b", "b"),
        ("mail", "a@b", "a@b"),
        ("count", " 7 ", 7),
        ("gift", "y", True),
        ("gift", "No", False),
        ("extras", "1, card", ["ribbon", "card"]),
        ("extras", "", []),
    ],
)
def test_what_is_typed_becomes_the_value_that_is_meant(
    name: str, typed: str, value: Value
) -> None:
    assert field(name).read(typed) == value


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("colour", "3"),
        ("colour", "0"),
        ("count", "many"),
        ("count", "1.5"),
        ("gift", "maybe"),
        ("extras", "1, 9"),
    ],
)
def test_what_cannot_be_meant_is_said(name: str, typed: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        field(name).read(typed)


def test_a_word_that_two_choices_are_called_by_is_no_answer() -> None:
    field = {"type": "string", "enum": ["delete", "keep"]}
    swapped = {**field, "enumNames": ["keep", "delete"]}
    (read,) = form_fields({"properties": {"what": swapped}})
    with pytest.raises(ValueError, match="type the number"):
        read.read("keep")
    assert read.read("1") == "delete"  # which is shown as: keep


def test_a_number_keeps_its_fraction_and_a_whole_one_has_none() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "number"}}}
    (number,) = form_fields(schema)
    assert number.read("1.5") == 1.5
    assert repr(number.read("2")) == "2"
    for typed in ("inf", "nan", "1e999"):
        with pytest.raises(ValueError, match="number"):
            number.read(typed)


def test_what_is_required_and_what_fits_is_said() -> None:
    assert field("colour").required
    assert not field("mail").required
    assert field("mail").says == "(a text, format email)"
    assert field("count").says == "(a whole number, at least 1, at most 9)"


def test_no_form_has_no_fields() -> None:
    assert form_fields(None) == []
