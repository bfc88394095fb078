"""What a file is by its bytes, and how large a picture says it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pictures import gif, jpeg, png, webp
from transport.media import (
    GIF,
    JPEG,
    MEDIA_TYPES,
    PNG,
    TEXT,
    WEBP,
    MediaError,
    Size,
    check_media,
    image_size,
)

GOOD = [
    (PNG, png(300, 20)),
    (GIF, gif(300, 20)),
    (JPEG, jpeg(300, 20)),
    (JPEG, jpeg(300, 20, fill=3)),
    (WEBP, webp(b"VP8 ", 300, 20)),
    (WEBP, webp(b"VP8L", 300, 20)),
    (WEBP, webp(b"VP8X", 300, 20)),
]


@pytest.mark.parametrize(("kind", "whole"), GOOD)
def test_a_picture_s_size_is_read_from_its_header(kind: str, whole: bytes) -> None:
    check_media(kind, whole)
    assert image_size(kind, whole) == Size(300, 20)


@pytest.mark.parametrize(("kind", "whole"), GOOD)
def test_a_picture_that_is_called_something_else_is_refused(
    kind: str, whole: bytes
) -> None:
    for other in {*MEDIA_TYPES, "image/svg+xml", "application/zip"} - {kind}:
        with pytest.raises(MediaError):
            check_media(other, whole)


@pytest.mark.parametrize(
    "size", [(60_000, 60_000), (16_385, 1), (1, 16_385), (8_000, 8_000), (0, 9), (9, 0)]
)
def test_a_picture_that_says_it_is_too_large_or_nothing_is_refused(
    size: tuple[int, int],
) -> None:
    with pytest.raises(MediaError):
        check_media(PNG, png(claims=size))


def test_the_largest_picture_is_taken() -> None:
    check_media(PNG, png(claims=(16_384, 3_051)))


@pytest.mark.parametrize(
    "whole",
    [b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"PK\x03\x04zip", b"", b"BM\0\0"],
)
def test_what_is_no_picture_is_none_by_any_name(whole: bytes) -> None:
    for kind in (PNG, JPEG, GIF, WEBP):
        with pytest.raises(MediaError):
            check_media(kind, whole)


@pytest.mark.parametrize(
    "whole", [b"PK\x03\x04\0zip", b"\xff\xfea", b"a\x1b[2J", b"\0"]
)
def test_what_is_no_plain_text_is_refused(whole: bytes) -> None:
    with pytest.raises(MediaError):
        check_media(TEXT, whole)


def test_text_is_taken() -> None:
    check_media(TEXT, "größer\tals\r\n".encode())


@pytest.mark.parametrize(("kind", "whole"), GOOD)
def test_a_header_that_is_cut_anywhere_is_refused_or_read(
    kind: str, whole: bytes
) -> None:
    for end in range(len(whole)):
        try:
            check_media(kind, whole[:end])
        except MediaError:
            continue
        assert image_size(kind, whole[:end]) == Size(300, 20)


@given(kind=st.sampled_from(MEDIA_TYPES), tail=st.binary(max_size=200))
def test_any_bytes_are_taken_or_refused(kind: str, tail: bytes) -> None:
    heads = {PNG: b"\x89PNG\r\n\x1a\n", JPEG: b"\xff\xd8\xff", GIF: b"GIF89a"}
    head = heads.get(kind, b"RIFF\1\1\1\1WEBPVP8X" if kind == WEBP else b"")
    try:
        check_media(kind, head + tail)
    except MediaError:
        return
