"""Files to an Agent and pictures from it, piece by piece. Trio shell.

PROTOCOL.md section 4 (blob/*). Each piece is a call of its own, which a client carries
over lost connections; the Agent takes a piece that came twice only once.
"""

import hashlib
from collections.abc import Callable
from typing import Final

from transport.client import Client
from transport.errors import RemoteProtocolError
from transport.media import HEAD, TEXT, check_media, media_type_of
from transport.protocol.blobs import (
    BlobBeginParams,
    BlobChunkParams,
    BlobCommitParams,
    BlobReadParams,
)
from transport.protocol.methods import BLOB_BEGIN, BLOB_CHUNK, BLOB_COMMIT, BLOB_READ

Progress = Callable[[int, int], None]
"""Told how many bytes have gone, of how many."""

PIECE: Final = 64 * 1024  # where an Agent says nothing else
NAME_CHARS: Final = 100


def _silent(_done: int, _total: int) -> None:
    pass


async def send_blob(
    client: Client, content: bytes, *, name: str, progress: Progress = _silent
) -> str:
    """Upload a picture or a text; return its blobId.

    Raises: MediaError (before a byte is sent), Refusal, what `Client.call` raises;
    RemoteProtocolError where the Agent asks for a piece that it has.
    """
    kind = media_type_of(content[:HEAD]) or TEXT
    check_media(kind, content)
    piece = client.opened.limits.blob_chunk or PIECE
    params = BlobBeginParams(
        name=name[:NAME_CHARS] or "file",
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        media_type=kind,
    )
    upload = (await client.call(BLOB_BEGIN, params)).upload_id
    at = 0
    while at < len(content):
        part = BlobChunkParams(
            upload_id=upload, offset=at, content=content[at : at + piece]
        )
        following = (await client.call(BLOB_CHUNK, part)).next
        if not at < following <= len(content):
            raise RemoteProtocolError("a piece that was taken, and is to be sent again")
        at = following
        progress(at, len(content))
    return (await client.call(BLOB_COMMIT, BlobCommitParams(upload_id=upload))).blob_id


async def fetch_blob(
    client: Client,
    blob_id: str,
    *,
    most: int,
    progress: Progress = _silent,
) -> bytes:
    """Return a blob or a picture, whole.

    Raises: Refusal; RemoteProtocolError where it has more than `most` bytes, or changed
    while it was read.
    """
    found = bytearray()
    total: int | None = None
    while True:
        params = BlobReadParams(blob_id=blob_id, offset=len(found))
        piece = await client.call(BLOB_READ, params)
        if piece.total > most or (total is not None and piece.total != total):
            raise RemoteProtocolError("a picture that is too large, or changed")
        total = piece.total
        found += piece.content
        progress(len(found), total)
        if piece.eof:
            return bytes(found)
        if not piece.content:
            raise RemoteProtocolError("a piece of nothing")
