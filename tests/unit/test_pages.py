"""Cursors bound to their listing, and pages that fit a frame."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.reading.pages import cut, fitting, shown, size_of, unwrap_cursor, wrap_cursor
from tests.support.fake_threads import make_turn
from transport.codec import pack
from transport.errors import InvalidParams
from transport.protocol.items import AgentMessage, ItemStatus, UserMessage
from transport.protocol.turns import Turn

PAGE = 512 * 1024
ONE = {"method": "turn/list", "thread": "a"}
OTHER = {"method": "turn/list", "thread": "b"}


def turn_of(*sizes: int) -> Turn:
    items = [
        UserMessage(id="q", turn_id="t", status=ItemStatus.COMPLETED, text="question"),
        *(
            AgentMessage(
                id=f"a{number}",
                turn_id="t",
                status=ItemStatus.COMPLETED,
                text="é" * (size // 2),
            )
            for number, size in enumerate(sizes)
        ),
    ]
    return make_turn("t", "thr").model_copy(update={"items": items})


@given(st.text(min_size=1, max_size=200))
def test_a_cursor_comes_back_as_it_was(cursor: str) -> None:
    wrapped = wrap_cursor(ONE, cursor)
    assert wrapped is not None
    assert wrapped.isascii()
    assert unwrap_cursor(ONE, wrapped) == cursor


@given(st.text(min_size=1, max_size=50))
def test_a_cursor_of_another_listing_is_refused(cursor: str) -> None:
    wrapped = wrap_cursor(OTHER, cursor)
    with pytest.raises(InvalidParams) as caught:
        unwrap_cursor(ONE, wrapped)
    assert caught.value.data["field"] == "cursor"


@given(st.text(min_size=1, max_size=60))
def test_what_is_no_cursor_is_refused(nonsense: str) -> None:
    with pytest.raises(InvalidParams):
        unwrap_cursor(ONE, nonsense)


def test_the_end_stays_the_end() -> None:
    assert wrap_cursor(ONE, None) is None
    assert unwrap_cursor(ONE, None) is None


def test_a_page_ends_early_and_never_empty() -> None:
    big = turn_of(200 * 1024)
    assert fitting([big] * 5) == 2
    assert fitting([turn_of(600 * 1024)] * 2) == 1
    assert fitting([]) == 0


@given(st.lists(st.integers(0, 100_000), max_size=20))
def test_the_counted_size_bounds_the_packed_one(sizes: list[int]) -> None:
    turn = turn_of(*sizes)
    assert len(pack(turn.wire())) <= size_of(turn) + 16


def test_one_huge_turn_keeps_its_question_and_its_end() -> None:
    turn = turn_of(*[100 * 1024] * 20)
    small = cut(turn)
    assert small.more_items
    assert small.items is not None
    assert [item.id for item in small.items][:1] == ["q"]
    assert [item.id for item in small.items][-1:] == ["a19"]
    assert len(pack(small.wire())) <= PAGE
    assert cut(small) == small


def test_a_turn_is_shown_with_as_many_items_as_asked_for() -> None:
    turn = turn_of(10, 10, 10)
    assert shown(turn, "none").items is None
    assert shown(turn, "full") == turn
    summary = shown(turn, "summary").items
    assert summary is not None
    assert [item.id for item in summary] == ["q", "a2"]
