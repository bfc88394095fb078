"""Cutting a byte stream into units, however it was chunked."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transport.errors import LocalProtocolError, RemoteProtocolError, TruncatedError
from transport.framing import NOISE_PREFIX, PLAIN_PREFIX, UnitDecoder, encode_unit

UNITS = st.lists(st.binary(min_size=1, max_size=60), max_size=12)
PREFIXES = st.sampled_from([NOISE_PREFIX, PLAIN_PREFIX])


def decoder(prefix: struct.Struct = NOISE_PREFIX) -> UnitDecoder:
    return UnitDecoder(prefix, minimum=1, maximum=60)


def drain(units: UnitDecoder) -> list[bytes]:
    found: list[bytes] = []
    while (unit := units.next_unit()) is not None:
        found.append(unit)
    return found


@given(units=UNITS, prefix=PREFIXES, data=st.data())
def test_any_cut_of_a_stream_gives_the_same_units(
    units: list[bytes], prefix: struct.Struct, data: st.DataObject
) -> None:
    stream = b"".join(encode_unit(unit, prefix) for unit in units)
    reader, found = decoder(prefix), list[bytes]()
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        reader.receive_data(stream[:size])
        stream = stream[size:]
        found += drain(reader)
    assert found == units


@given(st.binary(max_size=400))
def test_any_bytes_give_units_or_a_protocol_error(stream: bytes) -> None:
    reader = decoder()
    reader.receive_data(stream)
    reader.receive_data(b"")
    try:
        for unit in drain(reader):
            assert 1 <= len(unit) <= 60
        assert reader.ended
    except RemoteProtocolError:
        pass


@pytest.mark.parametrize("length", [0, 61, 65_535])
def test_a_declared_length_is_refused_before_its_body(length: int) -> None:
    reader = decoder()
    reader.receive_data(NOISE_PREFIX.pack(length))
    for _ in range(2):  # and it is not forgotten
        with pytest.raises(RemoteProtocolError):
            reader.next_unit()


def test_a_good_unit_before_a_bad_one_is_delivered() -> None:
    reader = decoder()
    reader.receive_data(encode_unit(b"good", NOISE_PREFIX) + NOISE_PREFIX.pack(0))
    assert reader.next_unit() == b"good"
    with pytest.raises(RemoteProtocolError):
        reader.next_unit()


@pytest.mark.parametrize("kept", [1, 2, 5])
def test_an_end_inside_a_unit_is_a_truncation(kept: int) -> None:
    reader = decoder()
    reader.receive_data(encode_unit(b"cut off", NOISE_PREFIX)[:kept])
    reader.receive_data(b"")
    with pytest.raises(TruncatedError):
        reader.next_unit()
    assert not reader.ended


def test_the_maximum_can_grow_between_units() -> None:
    reader = decoder()
    reader.receive_data(
        encode_unit(b"a", NOISE_PREFIX) + encode_unit(bytes(99), NOISE_PREFIX)
    )
    assert reader.next_unit() == b"a"
    reader.maximum = 99
    assert reader.next_unit() == bytes(99)


def test_a_unit_that_its_prefix_cannot_say_is_our_bug() -> None:
    with pytest.raises(LocalProtocolError):
        encode_unit(bytes(65_536), NOISE_PREFIX)
