"""Files that devices have sent, read back. Trio shell.

SECURITY.md (Uploads). A whole file is its device's own: no other device can name it. How
it came: `uploads`.
"""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from agent.access.scopes import Caller
from agent.files.blob_files import BlobFiles
from agent.files.upload import misfit
from agent.limits import BLOB_MS, BLOB_PIECE
from agent.mutations.refusals import check_told
from agent.offload import Runner, in_thread
from transport.errors import NotFound
from transport.media import HEAD, media_type_of
from transport.protocol.blobs import BlobReadResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture that a device has sent: where it lies, and how large it is."""

    path: str
    size: int


class Blobs:
    """The whole files. `now_ms`: the clock that dates them."""

    def __init__(
        self, files: BlobFiles, *, now_ms: Callable[[], int], run: Runner = in_thread
    ) -> None:
        self._files = files
        self._now_ms = now_ms
        self._run = run

    def is_name(self, blob_id: str) -> bool:
        """Whether this could be an upload's id."""
        return self._files.is_name(blob_id)

    async def read(
        self, caller: Caller, blob_id: str, offset: int, limit: int
    ) -> BlobReadResult:
        """Return a piece of a file that this device has sent. Raises: NotFound, Internal."""

        def read() -> BlobReadResult:
            with self._opened(caller, blob_id) as fd:
                return piece_of(fd, offset, limit)

        return await self._run(read)

    async def picture(self, caller: Caller, blob_id: str) -> Picture:
        """Return a picture of this device for a message.

        Raises: NotFound, Internal, InvalidParams where the file is no picture.
        """

        def look() -> Picture:
            with self._opened(caller, blob_id) as fd:
                if media_type_of(os.pread(fd, HEAD, 0)) is None:
                    raise misfit("input", "this blob is no picture")
                path = self._files.path(caller.device_id, blob_id)
                return Picture(path=path, size=os.fstat(fd).st_size)

        return await self._run(look)

    @contextmanager
    def _opened(self, caller: Caller, blob_id: str) -> Generator[int]:
        since = self._now_ms() - BLOB_MS
        try:
            fd = self._files.open(caller.device_id, blob_id, since_ms=since)
        except OSError as exc:
            check_told(exc)
            raise blob_not_found(blob_id) from None
        try:
            yield fd
        finally:
            os.close(fd)


def blob_not_found(blob_id: str, why: str = "") -> NotFound:
    """One answer for what is not there and for what is not this device's."""
    return NotFound(
        why or "There is no such file (any more), or not for this device.",
        data={"kind": "blob", "id": blob_id},
    )


def piece_of(fd: int, offset: int, limit: int) -> BlobReadResult:
    """Return a piece of an open file; `limit` is held to what a piece may have."""
    total = os.fstat(fd).st_size
    content = b""
    if offset < total:
        content = os.pread(fd, min(limit, BLOB_PIECE), offset)
    end = offset + len(content)
    return BlobReadResult(content=content, total=total, eof=end >= total)
