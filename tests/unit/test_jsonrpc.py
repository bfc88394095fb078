"""JSON lines with an app-server: any cut, any bytes, answers in any order."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.calls.jsonrpc import (
    Answered,
    Asked,
    Failed,
    Garbled,
    JsonRpc,
    Notified,
    PeerEvent,
    TooManyInFlightError,
    encode,
)


def drain(rpc: JsonRpc) -> list[PeerEvent]:
    events: list[PeerEvent] = []
    while (event := rpc.next_event()) is not None:
        events.append(event)
    return events


def feed(rpc: JsonRpc, *messages: object) -> list[PeerEvent]:
    for message in messages:
        rpc.receive_data(json.dumps(message).encode() + b"\n")
    return drain(rpc)


def test_a_request_is_one_line_without_a_version_field() -> None:
    request_id, line = JsonRpc().request("thread/read", {"threadId": "ä\n"})
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == {
        "id": request_id,
        "method": "thread/read",
        "params": {"threadId": "ä\n"},
    }


def test_answers_are_matched_by_id_in_any_order() -> None:
    rpc = JsonRpc()
    first, _ = rpc.request("a", {})
    second, _ = rpc.request("b", {})
    events = feed(rpc, {"id": second, "result": {"n": 2}}, {"id": first, "result": {}})
    assert events == [
        Answered(request_id=second, method="b", result={"n": 2}),
        Answered(request_id=first, method="a", result={}),
    ]
    assert rpc.in_flight == 0


def test_a_second_answer_a_late_one_and_a_strangers_are_ignored() -> None:
    rpc = JsonRpc()
    answered, _ = rpc.request("a", {})
    forgotten, _ = rpc.request("b", {})
    rpc.forget(forgotten)
    feed(rpc, {"id": answered, "result": {}})
    again: Any = {"id": answered, "result": {}}
    late: Any = {"id": forgotten, "error": {"code": 1, "message": "m"}}
    strange: list[Any] = [{"id": i, "result": {}} for i in (99, "1", True, None, 1.0)]
    assert feed(rpc, again, late, *strange) == []
    assert rpc.ignored == 7


def test_an_id_is_never_used_again() -> None:
    rpc = JsonRpc()
    first, _ = rpc.request("a", {})
    rpc.forget(first)
    second, _ = rpc.request("a", {})
    assert first != second


def test_an_error_is_definite_whatever_its_shape() -> None:
    rpc = JsonRpc(max_in_flight=3)
    ids = [rpc.request("a", {})[0] for _ in range(3)]
    errors: list[Any] = [{"code": -32600, "message": "no"}, "odd", {"code": "x"}]
    events = feed(
        rpc, *({"id": i, "error": e} for i, e in zip(ids, errors, strict=True))
    )
    assert [(e.code, e.message) for e in events if isinstance(e, Failed)] == [
        (-32600, "no"),
        (0, "odd"),
        (0, ""),
    ]


def test_a_question_keeps_its_id_zero_and_its_type() -> None:
    asked = feed(
        JsonRpc(),
        {"id": 0, "method": "q", "params": {}},
        {"id": "0", "method": "q", "params": None},
    )
    assert asked == [
        Asked(request_id=0, method="q", params={}),
        Asked(request_id="0", method="q", params={}),
    ]
    rpc = JsonRpc()
    assert json.loads(rpc.result(0, {"decision": "decline"}))["id"] == 0
    assert json.loads(rpc.error("0", -32601, "no")) == {
        "id": "0",
        "error": {"code": -32601, "message": "no"},
    }


def test_a_notification_may_carry_more_keys() -> None:
    note = {"method": "turn/started", "params": {"a": 1}, "emittedAtMs": 5}
    assert feed(JsonRpc(), note) == [Notified(method="turn/started", params={"a": 1})]


@pytest.mark.parametrize(
    "line",
    [
        b"warning: not json",
        b"[]",
        b"{}",
        b"1",
        b'{"method": 5}',
        b'{"method": "m", "params": []}',
        b'{"id": 1.5, "method": "m"}',
        b'{"id": true, "method": "m"}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"id": 1, "result": ' + b"9" * 5_000 + b"}",
    ],
    ids=repr,
)
def test_a_line_that_makes_no_sense_is_told_and_the_next_one_still_counts(
    line: bytes,
) -> None:
    rpc = JsonRpc()
    rpc.receive_data(line + b"\n" + encode({"method": "next", "params": {}}))
    garbled, after = drain(rpc)
    assert isinstance(garbled, Garbled)
    assert len(garbled.head) <= 200
    assert after == Notified(method="next", params={})


def test_blank_lines_and_carriage_returns_are_nothing() -> None:
    rpc = JsonRpc()
    rpc.receive_data(b'\r\n  \n {"method": "m"} \r\n')
    assert drain(rpc) == [Notified(method="m", params={})]


def test_a_last_line_without_its_end_is_garbled_never_taken() -> None:
    rpc = JsonRpc()
    rpc.receive_data(b'{"method": "m", "params": {}}')
    assert drain(rpc) == []
    rpc.receive_data(b"")
    (event,) = drain(rpc)
    assert isinstance(event, Garbled)
    assert drain(rpc) == []


def test_the_slots_are_bounded_and_come_back() -> None:
    rpc = JsonRpc(max_in_flight=2)
    first, _ = rpc.request("a", {})
    second, _ = rpc.request("a", {})
    with pytest.raises(TooManyInFlightError):
        rpc.request("a", {})
    rpc.request("is it alive?", {}, spare=True)
    assert rpc.in_flight == 3
    rpc.forget(first)
    with pytest.raises(TooManyInFlightError):
        rpc.request("a", {})
    rpc.forget(second)
    rpc.request("a", {})
    with pytest.raises(TooManyInFlightError):
        rpc.request("a", {})


@pytest.mark.parametrize("bad", ["\ud800", float("nan"), object()])
def test_what_cannot_be_said_in_json_takes_no_slot(bad: object) -> None:
    rpc = JsonRpc()
    with pytest.raises((ValueError, TypeError)):
        rpc.request("a", {"x": bad})
    assert rpc.in_flight == 0


def test_a_line_of_many_megabytes_in_small_cuts_is_read_in_linear_time() -> None:
    rpc = JsonRpc()
    line = encode({"method": "m", "params": {"text": "x" * 20_000_000}})
    events: list[PeerEvent] = []
    for start in range(0, len(line), 65_536):
        rpc.receive_data(line[start : start + 65_536])
        events += drain(rpc)
    (event,) = events
    assert isinstance(event, Notified)
    assert len(event.params["text"]) == 20_000_000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
MESSAGES = st.fixed_dictionaries(
    {"method": st.text(min_size=1), "params": st.dictionaries(st.text(), JSON)}
) | st.fixed_dictionaries(
    {
        "id": st.integers() | st.text(),
        "method": st.text(min_size=1),
        "params": st.dictionaries(st.text(), JSON),
    }
)


@given(st.lists(MESSAGES, max_size=6), st.data())
def test_any_cut_of_the_stream_gives_the_same_events(
    messages: list[dict[str, Any]], data: st.DataObject
) -> None:
    stream = b"".join(map(encode, messages))
    whole = JsonRpc()
    whole.receive_data(stream)
    expected = drain(whole)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    rpc = JsonRpc()
    events: list[PeerEvent] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        if start != end:
            rpc.receive_data(stream[start:end])
            events += drain(rpc)
    assert events == expected
    assert len(expected) == len(messages)


@given(st.lists(st.binary(max_size=80), max_size=8))
def test_any_bytes_give_events_and_never_an_exception(chunks: list[bytes]) -> None:
    rpc = JsonRpc()
    rpc.request("a", {})
    for chunk in chunks:
        rpc.receive_data(chunk + b"\n")
        drain(rpc)
    rpc.receive_data(b"")
    drain(rpc)
    assert drain(rpc) == []
