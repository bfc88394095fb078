"""Pictures made by hand, with whatever header a test wants."""

import struct
import zlib


def png(
    width: int = 8, height: int = 8, *, claims: tuple[int, int] | None = None
) -> bytes:
    """Return a red PNG; `claims` is what its header says instead."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    rows = b"".join(b"\0" + b"\xff\0\0" * width for _ in range(height))
    said = claims or (width, height)
    head = struct.pack(">IIBBBBB", *said, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + parts + chunk(b"IEND", b"")


def gif(width: int = 8, height: int = 8) -> bytes:
    """Return the head of a GIF."""
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0;"


def jpeg(width: int = 8, height: int = 8, *, fill: int = 0) -> bytes:
    """Return the head of a JPEG: an application segment, then its frame."""
    segment = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + b"\1" * 9
    frame = struct.pack(">HBHHB", 8, 8, height, width, 0)
    return b"\xff\xd8" + segment + b"\xff" * fill + b"\xff\xc0" + frame + b"\xff\xd9"


def webp(kind: bytes, width: int = 8, height: int = 8) -> bytes:
    """Return the head of a WebP: `VP8 `, `VP8L` or `VP8X`."""
    if kind == b"VP8X":
        body = b"\0" * 4
        body += (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    elif kind == b"VP8L":
        body = b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14)
    else:
        body = b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height)
    inside = b"WEBP" + kind + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", len(inside)) + inside
