"""Uploads in a folder, with a wall clock that the test moves."""

import hashlib
from pathlib import Path

import trio

from agent.access.scopes import Caller
from agent.files.blob_files import BlobFiles
from agent.files.blobs import Blobs
from agent.files.uploads import Uploads
from tests.support.door import device, inline
from tests.support.pictures import png
from transport.protocol.blobs import (
    BlobBeginParams,
    BlobChunkParams,
    BlobCommitParams,
)

PHONE = device()
TABLET = device(device_id="d2")


class Room:
    """Uploads in a folder, with a wall clock that the test moves."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "uploads"
        self.later_ms = 0
        files = BlobFiles(self.folder)
        self.uploads = Uploads(
            files, now_ms=self.now_ms, now_s=trio.current_time, run=inline
        )
        self.blobs = Blobs(files, now_ms=self.now_ms, run=inline)

    def now_ms(self) -> int:
        """The wall clock: that of the newest file, and `later_ms` more."""
        newest = [path.stat().st_mtime_ns for path in self.folder.rglob("*")]
        return max(newest, default=0) // 1_000_000 + self.later_ms

    def files(self) -> list[Path]:
        """Return all files that are there."""
        return [path for path in self.folder.rglob("*") if path.is_file()]

    async def begin(
        self, content: bytes, caller: Caller = PHONE, **more: object
    ) -> str:
        params = {
            "name": "a.png",
            "size": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "media_type": "image/png",
            **more,
        }
        begun = await self.uploads.begin(caller, BlobBeginParams.model_validate(params))
        return begun.upload_id

    async def piece(
        self, upload: str, offset: int, content: bytes, caller: Caller = PHONE
    ) -> int:
        params = BlobChunkParams(upload_id=upload, offset=offset, content=content)
        return (await self.uploads.chunk(caller, params)).next

    async def commit(self, upload: str, caller: Caller = PHONE) -> str:
        params = BlobCommitParams(upload_id=upload)
        return (await self.uploads.commit(caller, params)).blob_id

    async def send(
        self,
        content: bytes,
        caller: Caller = PHONE,
        *,
        step: int = 65_536,
        **more: object,
    ) -> str:
        upload = await self.begin(content, caller, **more)
        for at in range(0, len(content), step):
            await self.piece(upload, at, content[at : at + step], caller)
        return await self.commit(upload, caller)

    async def read(self, blob_id: str, caller: Caller = PHONE) -> bytes:
        found = b""
        while True:
            piece = await self.blobs.read(caller, blob_id, len(found), 1_000_000)
            found += piece.content
            if piece.eof:
                assert piece.total == len(found)
                return found


def padded(size: int) -> bytes:
    """Return a picture of so many bytes."""
    return png() + bytes(size - len(png()))
