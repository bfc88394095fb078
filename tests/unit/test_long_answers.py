"""Answers of any length: what is too long is thrown away as it comes, and only that."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.calls import jsonrpc
from adapter.calls.jsonrpc import (
    Answered,
    Garbled,
    JsonRpc,
    Notified,
    PeerEvent,
    TooLong,
)
from adapter.calls.portions import Firsts, Portions, shown_bound
from adapter.limits import LARGE_THREADS, PAGE_RAW, PAGE_SHOWN, TEXT_BYTES

BOUND = 1_000


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonrpc, "ANSWER_BYTES", BOUND)


def fed(rpc: JsonRpc, data: bytes, step: int) -> list[PeerEvent]:
    """Return all events, the bytes given in steps; the buffer never grows beyond."""
    found: list[PeerEvent] = []
    for start in range(0, len(data), step):
        rpc.receive_data(data[start : start + step])
        while (event := rpc.next_event()) is not None:
            found.append(event)
        assert rpc.held <= BOUND + step
    return found


def answer(request_id: int, text: str) -> bytes:
    return b'{"id":%d,"result":{"text":"%s"}}\n' % (request_id, text.encode())


@given(step=st.integers(1, 700), length=st.integers(2 * BOUND, 5 * BOUND))
def test_an_answer_that_is_too_long_is_given_up_and_the_next_line_is_read(
    step: int, length: int
) -> None:
    rpc = JsonRpc()
    first, _ = rpc.request("thread/turns/list", {})
    second, _ = rpc.request("thread/read", {})
    data = answer(first, "x" * length) + answer(second, "short")
    assert fed(rpc, data, step) == [
        TooLong(request_id=first, method="thread/turns/list"),
        Answered(request_id=second, method="thread/read", result={"text": "short"}),
    ]
    assert rpc.in_flight == 0


def test_what_nobody_asked_for_any_more_is_not_kept_either() -> None:
    rpc = JsonRpc()
    late, _ = rpc.request("thread/search", {})
    rpc.forget(late)
    assert fed(rpc, answer(late, "x" * 9_999) + b'{"method":"m"}\n', 300) == [
        Notified(method="m", params={})
    ]
    assert rpc.ignored == 1


def test_a_notification_of_any_length_is_read_whole() -> None:
    """What a turn does is told once: it cannot be asked for in parts."""
    rpc = JsonRpc()
    text = "x" * (4 * BOUND)
    rpc.receive_data(
        b'{"method":"item/completed","params":{"text":"%s"}}\n' % text.encode()
    )
    event = rpc.next_event()
    assert isinstance(event, Notified)
    assert event.params == {"text": text}


def test_the_end_of_the_stream_within_it_is_quiet() -> None:
    rpc = JsonRpc()
    asked, _ = rpc.request("thread/read", {})
    rpc.receive_data(answer(asked, "x" * 9_999)[:-500])
    assert isinstance(rpc.next_event(), TooLong)
    rpc.receive_data(b"")
    assert not isinstance(rpc.next_event(), Garbled)


def rows(count: int, size: int) -> Sequence[dict[str, Any]]:
    return [{"text": "x" * size} for _ in range(count)]


@pytest.mark.parametrize(
    ("size", "asked"),
    [
        (100, [4, 46]),  # an ordinary page takes two requests
        (10_000, [4, 46]),
        (40_000, [4, 9]),  # what a client is sent is full
        (3_000_000, [4]),  # what is read is
    ],
)
def test_a_page_is_read_in_portions_by_the_size_of_its_rows(
    size: int, asked: list[int]
) -> None:
    portions = Portions(50, first=4)
    seen: list[int] = []
    while count := portions.wanted():
        seen.append(count)
        portions.came(rows(count, size))
    assert seen == asked
    assert (sum(seen) - seen[-1]) * size < min(
        PAGE_RAW, PAGE_SHOWN * max(1, size // TEXT_BYTES)
    )


def test_fewer_rows_are_asked_for_until_they_fit_and_one_is_the_least() -> None:
    portions = Portions(50, first=8)
    tried = [portions.wanted()]
    while portions.too_long():
        tried.append(portions.wanted())
    assert tried == [8, 4, 2, 1]


@given(count=st.integers(1, 100), sizes=st.lists(st.integers(0, 200_000), max_size=100))
def test_no_more_rows_than_wanted_are_ever_asked_for(
    count: int, sizes: list[int]
) -> None:
    portions = Portions(count, first=8)
    left = count
    for size in sizes:
        wanted = portions.wanted()
        assert 0 <= wanted <= left
        if not wanted:
            return
        portions.came(rows(wanted, size))
        left -= wanted


def test_what_a_client_is_sent_of_a_row_is_bounded_by_its_texts() -> None:
    assert (
        shown_bound({"text": "x" * 10_000_000, "parts": ["y" * 10_000_000]}) < 140_000
    )


def test_the_next_page_of_a_thread_with_large_rows_begins_with_fewer() -> None:
    firsts = Firsts(8)
    for thread_id, size, begins in (("large", 3_000_000, 4), ("usual", 1_000, 8)):
        portions = Portions(50, first=firsts.of(thread_id))
        while count := portions.wanted():
            portions.came(rows(count, size))
        firsts.note(thread_id, portions)
        assert firsts.of(thread_id) == begins
    for number in range(10 * LARGE_THREADS):
        portions = Portions(50, first=8)
        portions.came(rows(8, 3_000_000))
        firsts.note(f"t{number}", portions)
    assert len(firsts) == LARGE_THREADS
    assert firsts.of("large") == 8, "the longest unread are forgotten"
