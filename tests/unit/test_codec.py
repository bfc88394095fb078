"""What the wire's decoder takes, and all that it must not. PROTOCOL.md section 1."""

import contextlib
import struct
import tracemalloc
from typing import Any, Final, cast

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transport.codec import pack, unpack
from transport.errors import LocalProtocolError, RemoteProtocolError
from transport.limits import MAX_ARRAY, MAX_CONTAINERS, MAX_DEPTH, MAX_MAP, MAX_STRING
from transport.protocol.items import ItemStatus

MSGPACK: Final = cast("Any", msgpack)  # untyped
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=8) | st.dictionaries(st.text(), inner, max_size=8)
    ),
    max_leaves=30,
)


def wire(value: Any) -> bytes:
    return bytes(MSGPACK.packb(value))


@given(st.dictionaries(st.text(), VALUES))
def test_what_is_packed_is_unpacked(frame: dict[str, Any]) -> None:
    assert unpack(pack(frame)) == frame


@given(st.binary())
def test_any_bytes_are_a_map_or_refused(data: bytes) -> None:
    with contextlib.suppress(RemoteProtocolError):
        assert isinstance(unpack(data), dict)


@given(frame=st.dictionaries(st.text(), VALUES), data=st.data())
def test_any_damage_to_a_map_leaves_a_map_or_is_refused(
    frame: dict[str, Any], data: st.DataObject
) -> None:
    damaged = bytearray(pack(frame))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(
            st.integers(0, 255)
        )
    with contextlib.suppress(RemoteProtocolError):
        assert isinstance(unpack(bytes(damaged)), dict)


def test_enum_values_are_packed_as_their_words() -> None:
    assert unpack(pack({"status": ItemStatus.COMPLETED})) == {"status": "completed"}


def test_half_a_surrogate_pair_is_replaced_and_ends_nothing() -> None:
    assert unpack(pack({"text": "a\ud83db"})) == {"text": "a?b"}


def test_packing_goes_on_after_a_value_that_cannot_be_packed() -> None:
    with pytest.raises(LocalProtocolError):
        pack({"value": object()})
    with pytest.raises(LocalProtocolError):
        pack({"value": 2**64})
    assert unpack(pack({"value": 1})) == {"value": 1}


REFUSED = {
    "nothing": b"",
    "an array": wire([1]),
    "a string": wire("x"),
    "nil": wire(None),
    "trailing bytes": wire({}) + b"\xc0",
    "the reserved byte": b"\xc1",
    "a cut map": wire({"a": 1})[:-1],
    "bad utf-8": b"\x81\xa1a\xa2\xff\xfe",
    "a surrogate in utf-8": b"\x81\xa1a\xa3\xed\xa0\x80",
    "an int key": wire({1: 2}),
    "a bytes key": b"\x81\xc4\x01a\x01",
    "a map key": b"\x81\x80\xc0",
    "an array key": b"\x81\x90\xc0",
    "a key twice": b"\x82\xa1a\x01\xa1a\x02",
    "a key twice, deep": b"\x81\xa1x\x91\x82\xa1a\x01\xa1a\x02",
    "nan": b"\x81\xa1a\xcb\x7f\xf8" + bytes(6),
    "infinity": b"\x81\xa1a\xcb\x7f\xf0" + bytes(6),
    "infinity, short": b"\x81\xa1a\xca\x7f\x80\x00\x00",
    "an extension": b"\x81\xa1a\xc7\x03\x2aabc",
    "an empty extension": b"\x81\xa1a\xc7\x00\x2a",
    "a fixed extension": b"\x81\xa1a\xd4\x05\x00",
    "a timestamp": b"\x81\xa1a\xd6\xff" + bytes(4),
    "an array of 2^32-1": b"\x81\xa1a\xdd\xff\xff\xff\xff",
    "a map of 2^32-1": b"\x81\xa1a\xdf\xff\xff\xff\xff",
    "a string of 2^32-1": b"\x81\xa1a\xdb\xff\xff\xff\xffab",
    "bytes of 2^32-1": b"\x81\xa1a\xc6\xff\xff\xff\xffab",
    "an array over the limit": wire({"a": [0] * (MAX_ARRAY + 1)}),
    "a map over the limit": wire({str(n): 0 for n in range(MAX_MAP + 1)}),
    "a string over the limit": wire({"a": "x" * (MAX_STRING + 1)}),
    "bytes over the limit": wire({"a": bytes(MAX_STRING + 1)}),
    "a million arrays deep": b"\x81\xa1a" + b"\x91" * 1_000_000 + b"\xc0",
    "a thousand maps deep": b"\x81\xa1a" * 1_000 + b"\xc0",
    "one map too deep": b"\x81\xa1a" * (MAX_DEPTH + 1) + b"\xc0",
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED.keys())
def test_illegal_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        unpack(data)


def test_values_at_the_limits_are_taken() -> None:
    full = {
        "array": [0] * MAX_ARRAY,
        "map": {str(n): 0 for n in range(MAX_MAP)},
        "string": "x" * MAX_STRING,
    }
    assert unpack(pack(full)) == full
    unpack(b"\x81\xa1a" * MAX_DEPTH + b"\xc0")


def test_too_many_small_containers_are_refused() -> None:
    inner = b"\xdc" + struct.pack(">H", MAX_ARRAY) + b"\x80" * MAX_ARRAY
    count = MAX_CONTAINERS // MAX_ARRAY
    unpack(b"\x81\xa1a" + b"\x9f" + inner * (count - 1))
    with pytest.raises(RemoteProtocolError):
        unpack(b"\x81\xa1a\xdc" + struct.pack(">H", count) + inner * count)


@pytest.mark.parametrize("head", [b"\xdd\xff\xff\xff\xff", b"\xc6\x7f\xff\xff\xff"])
def test_a_claimed_size_allocates_nothing(head: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(RemoteProtocolError):
            unpack(b"\x81\xa1a" + head)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
