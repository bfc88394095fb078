"""Records and their padding. PROTOCOL.md section 1."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transport.errors import RemoteProtocolError
from transport.noise import MAX_PLAINTEXT
from transport.records import (
    MAX_BODY,
    FrameJoiner,
    Record,
    RecordType,
    decode_record,
    encode_record,
    padded_size,
    split_frame,
)


@given(
    kind=st.sampled_from(RecordType),
    body=st.binary(max_size=3_000),
    padded=st.booleans(),
)
def test_a_record_comes_back_whole(kind: RecordType, body: bytes, padded: bool) -> None:
    plain = encode_record(kind, body, padded=padded)
    assert decode_record(plain) == Record(kind, body)


@given(st.integers(3, MAX_PLAINTEXT))
@example(3)
@example(1024)
@example(1025)
@example(MAX_PLAINTEXT)
def test_padding_hides_the_size_at_a_bounded_price(size: int) -> None:
    padded = padded_size(size)
    assert size <= padded <= MAX_PLAINTEXT
    assert padded_size(padded) == padded
    if size <= 1024:
        assert padded % 128 == 0
        assert padded - size < 128
    else:
        assert padded - size < size / 8


def test_padding_leaves_few_different_sizes() -> None:
    assert {padded_size(size) for size in range(3, 129)} == {128}
    assert len({padded_size(size) for size in range(1025, 2049)}) == 8
    assert len({padded_size(size) for size in range(3, MAX_PLAINTEXT + 1)}) < 70


def test_an_unpadded_record_has_no_bytes_more() -> None:
    assert encode_record(RecordType.LAST, b"x", padded=False) == b"\0\0\1x"


BROKEN = {
    "nothing": b"",
    "no whole header": b"\0\0",
    "type 4": b"\x04\0\0",
    "type 9": b"\x09\0\0",
    "longer than its message": b"\0\0\2x",
    "padding that is not zero": b"\0\0\1x\0\0\1",
}


@pytest.mark.parametrize("plain", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_record_is_refused(plain: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode_record(plain)


@given(st.integers(0, 4 * MAX_BODY + 5))
@example(0)
@example(MAX_BODY)
@example(MAX_BODY + 1)
@example(2 * MAX_BODY)
def test_a_frame_is_joined_from_its_parts(size: int) -> None:
    frame = bytes(size)
    parts = list(split_frame(frame))
    assert [kind for kind, _ in parts[:-1]] == [RecordType.PART] * (len(parts) - 1)
    assert parts[-1][0] is RecordType.LAST
    assert all(0 < len(body) <= MAX_BODY for _, body in parts) or size == 0
    joiner = FrameJoiner(max_frame=size, max_parts=len(parts))
    *empty, joined = [joiner.add(Record(kind, body)) for kind, body in parts]
    assert set(empty) <= {None}
    assert joined == frame


def test_a_joiner_takes_frame_after_frame() -> None:
    joiner = FrameJoiner(max_frame=4, max_parts=2)
    for frame in (b"abcd", b"efgh"):
        assert joiner.add(Record(RecordType.PART, frame[:2])) is None
        assert joiner.add(Record(RecordType.LAST, frame[2:])) == frame
