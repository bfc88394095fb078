"""Texts cut to size; the bound of a packed size is one."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.shapes.texts import byte_size, cut, one_line, packed_bound, pieces, prefix
from transport.codec import pack

TEXTS = st.text(alphabet=st.sampled_from("abä€😀\n"), max_size=3000)


@given(TEXTS, st.sampled_from([256, 512, 1024]))
def test_a_cut_text_fits_and_keeps_its_ends(text: str, limit: int) -> None:
    kept = cut(text, limit)
    assert byte_size(kept) <= limit
    if byte_size(text) <= limit:
        assert kept == text
    else:
        head, tail = kept.split("\n[…")[0], kept.split("…]\n")[-1]
        assert text.startswith(head)
        assert text.endswith(tail)
        assert byte_size(head) > limit // 2


def test_a_cut_says_how_much_is_missing_of_the_true_size() -> None:
    assert "[… 792 bytes left out …]" in cut("x" * 1000, 256)
    assert "[… 99792 bytes left out …]" in cut("x" * 1000, 256, 100_000)


@given(TEXTS, st.integers(min_value=4, max_value=50))
def test_pieces_are_the_text(text: str, limit: int) -> None:
    parts = pieces(text, limit)
    assert "".join(parts) == text
    assert all(byte_size(part) <= limit for part in parts)


@given(TEXTS, st.integers(min_value=0, max_value=50))
def test_a_prefix_is_whole_characters(text: str, limit: int) -> None:
    kept = prefix(text, limit)
    assert text.startswith(kept)
    assert byte_size(kept) <= limit


def test_a_line_is_one_line() -> None:
    assert one_line(" a\n\tb ", 10) == "a b"
    assert one_line("abcdef", 4) == "abc…"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=40), inner)
    ),
    max_leaves=30,
)


@given(st.dictionaries(st.text(max_size=40), VALUES, max_size=5))
def test_the_bound_is_never_below_the_packed_size(value: dict[str, Any]) -> None:
    assert len(pack(value)) <= packed_bound(value)


def test_the_bound_is_close_for_a_text() -> None:
    assert packed_bound("x" * 1000) == pytest.approx(1000, abs=5)


def test_a_huge_text_is_taken_apart_in_no_time() -> None:
    text = "é" * 10_000_000
    before = time.process_time()
    parts = pieces(text, 32 * 1024)
    assert time.process_time() - before < 2, "the work grows with the square of it"
    assert "".join(parts) == text
