"""Files that a device sends before a message names them, and pictures read back. Sans-IO.

PROTOCOL.md section 4. Bytes go as msgpack bin, in pieces of at most `limits.blobChunk`.
"""

from typing import Annotated

from pydantic import Field, StringConstraints

from transport.protocol.base import Params, WireId, WireModel

Whole = Annotated[int, Field(ge=0)]


class BlobBeginParams(Params):
    """`blob/begin`: what will come. `name` is for people; `sha256` lower-case hex.

    `media_type`: image/png, image/jpeg, image/webp, image/gif or text/plain.
    """

    name: Annotated[str, Field(min_length=1, max_length=100)]
    size: Annotated[int, Field(ge=1)]
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    media_type: Annotated[str, Field(min_length=1, max_length=100)]


class BlobBeginResult(WireModel):
    """The upload that is open now."""

    upload_id: str


class BlobChunkParams(Params):
    """`blob/chunk`: the bytes from `offset` on; pieces come in order."""

    upload_id: WireId
    offset: Whole
    content: Annotated[bytes, Field(alias="bytes", min_length=1)]


class BlobChunkResult(WireModel):
    """Where the next piece begins."""

    next: int


class BlobCommitParams(Params):
    """`blob/commit`: all has been sent."""

    upload_id: WireId


class BlobCommitResult(WireModel):
    """What an input names."""

    blob_id: str


class BlobReadParams(Params):
    """`blob/read`: a piece of a blob of this device, or of a picture of a thread."""

    blob_id: WireId
    offset: Whole = 0
    limit: Annotated[int, Field(ge=1)] = 65_536


class BlobReadResult(WireModel):
    """The piece. `total`: bytes in all; `eof`: nothing comes after it."""

    content: Annotated[bytes, Field(alias="bytes")]
    total: int
    eof: bool
