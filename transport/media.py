"""What a file is by its first bytes, and how large a picture says it is. Sans-IO.

SECURITY.md (Uploads). Pictures are never decoded: only their headers are read, here. The
formats: PNG (RFC 2083), JPEG (ITU-T T.81 B.1), GIF89a, WebP (RIFF; VP8, VP8L, VP8X).
"""

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

PNG: Final = "image/png"
JPEG: Final = "image/jpeg"
GIF: Final = "image/gif"
WEBP: Final = "image/webp"
TEXT: Final = "text/plain"
MEDIA_TYPES: Final = (PNG, JPEG, WEBP, GIF, TEXT)

HEAD: Final = 32  # bytes that tell a format
MAX_SIDE: Final = 16_384  # pixels
MAX_PIXELS: Final = 50_000_000  # decoded by others, 200 MB at 4 bytes a pixel

_UNPRINTED: Final = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # JPEG's SOF0 to 15
_BARE: Final = frozenset({0x01, *range(0xD0, 0xD8)})  # markers without a length
_SCAN: Final = 0xDA
_FILL: Final = 0xFF


class MediaError(ValueError):
    """Not what it should be. `str()` says why, to a person."""


@dataclass(frozen=True, slots=True)
class Size:
    """Pixels."""

    width: int
    height: int


def media_type_of(head: bytes) -> str | None:
    """Return the image type that these first bytes are of; `None`: none that we know."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return PNG
    if head.startswith(b"\xff\xd8\xff"):
        return JPEG
    if head.startswith((b"GIF87a", b"GIF89a")):
        return GIF
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return WEBP
    return None


def check_beginning(claimed: str, head: bytes) -> None:
    """Refuse by the first `HEAD` bytes (or all, where there are fewer) what is not what
    it claims to be. Raises: MediaError.
    """
    if claimed not in MEDIA_TYPES:
        known = ", ".join(MEDIA_TYPES)
        raise MediaError(f"files of this type are not taken; these are: {known}")
    found = media_type_of(head)
    if found != (None if claimed == TEXT else claimed):
        raise MediaError(f"the file is not {claimed}, as it was said to be")


def check_media(claimed: str, whole: bytes) -> None:
    """Refuse a file that is not what it claims to be, or a picture that is too large.

    Raises: MediaError.
    """
    check_beginning(claimed, whole[:HEAD])
    if claimed == TEXT:
        _check_text(whole)
        return
    size = image_size(claimed, whole)
    if not (0 < size.width <= MAX_SIDE and 0 < size.height <= MAX_SIDE):
        raise MediaError(f"a picture may have at most {MAX_SIDE} pixels a side")
    if size.width * size.height > MAX_PIXELS:
        raise MediaError(f"a picture may have at most {MAX_PIXELS} pixels")


def image_size(kind: str, data: bytes) -> Size:
    """Return what the header says. Raises: MediaError where there is none."""
    try:
        return _SIZES[kind](data)
    except (struct.error, IndexError):
        raise MediaError("the picture's header is cut short") from None


def _check_text(whole: bytes) -> None:
    try:
        whole.decode("utf-8")
    except UnicodeDecodeError:
        raise MediaError("the text is not UTF-8") from None
    if _UNPRINTED.search(whole):
        raise MediaError("the text has control characters: it is no plain text")


def _png(data: bytes) -> Size:
    length, kind, width, height = struct.unpack_from(">I4sII", data, 8)
    if kind != b"IHDR" or length != 13:
        raise MediaError("the picture does not begin with its header")
    return Size(width, height)


def _gif(data: bytes) -> Size:
    """The screen's size; frames lie on it, and a larger one grows what is decoded."""
    return Size(*struct.unpack_from("<HH", data, 6))


def _jpeg(data: bytes) -> Size:
    """Walk the segments to the frame header: it is the only place that says it."""
    at = 2
    while True:
        if data[at] != _FILL:
            raise MediaError("the picture's header is damaged")
        marker = data[at + 1]
        if marker == _FILL:  # fill bytes may come before a marker
            at += 1
            continue
        if marker in _BARE:
            at += 2
            continue
        (length,) = struct.unpack_from(">H", data, at + 2)
        if marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return Size(width, height)
        if marker == _SCAN or length < 2:
            raise MediaError("the picture's header is damaged")
        at += 2 + length


def _webp(data: bytes) -> Size:
    chunk = data[12:16]
    if chunk == b"VP8X":
        wide, high = data[24:27], data[27:30]
        if len(high) < 3:
            raise IndexError
        return Size(
            int.from_bytes(wide, "little") + 1, int.from_bytes(high, "little") + 1
        )
    if chunk == b"VP8L":
        mark, bits = struct.unpack_from("<BI", data, 20)
        if mark != 0x2F:
            raise MediaError("the picture's header is damaged")
        return Size((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    if chunk == b"VP8 ":
        start, width, height = struct.unpack_from("<3sHH", data, 23)
        if start != b"\x9d\x01\x2a":
            raise MediaError("the picture's header is damaged")
        return Size(width & 0x3FFF, height & 0x3FFF)
    raise MediaError("the picture does not begin with its header")


_SIZES: Final[Mapping[str, Callable[[bytes], Size]]] = {
    PNG: _png,
    JPEG: _jpeg,
    GIF: _gif,
    WEBP: _webp,
}
