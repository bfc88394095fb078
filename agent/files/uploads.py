"""Uploads: taken in piece by piece, checked, kept for a day. Trio shell.

PROTOCOL.md section 4 (blob/*), SECURITY.md (Uploads). One upload of a device at a time,
its pieces in order. Whatever goes wrong, nothing is left on the disk.
"""

import os
import secrets
from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import NoReturn

import trio

from agent.access.scopes import Caller, check_access, check_alive
from agent.files.blob_files import BlobFiles
from agent.files.upload import Upload, check_declared, misfit
from agent.limits import (
    BLOB_MS,
    BLOB_PIECE,
    BLOBS_CLEAN_S,
    BLOBS_ENDED,
    BLOBS_SAME,
    UPLOAD_LOOK_S,
)
from agent.mutations.refusals import storage_failed
from agent.mutations.thread_locks import ThreadLocks
from agent.offload import Runner, in_thread
from transport.errors import NotFound, Overloaded, TooLarge
from transport.media import MediaError, check_media
from transport.protocol.blobs import (
    BlobBeginParams,
    BlobBeginResult,
    BlobChunkParams,
    BlobChunkResult,
    BlobCommitParams,
    BlobCommitResult,
)
from transport.protocol.methods import BLOB_BEGIN, BLOB_CHUNK, BLOB_COMMIT


class Uploads:
    """`blob/begin`, `blob/chunk`, `blob/commit`.

    `now_ms`: what files are dated with, so that their age needs no wall clock. `now_s`:
    a clock that goes on while the machine sleeps.
    """

    def __init__(
        self,
        files: BlobFiles,
        *,
        now_ms: Callable[[], int],
        now_s: Callable[[], float],
        run: Runner = in_thread,
        mint: Callable[[], str] | None = None,
    ) -> None:
        self._files = files
        self._now_ms = now_ms
        self._now_s = now_s
        self._run = run
        self._mint = mint or partial(secrets.token_hex, 16)
        self._open: dict[str, Upload] = {}  # by device
        self._locks = ThreadLocks()  # by device
        self._same: OrderedDict[tuple[str, str], str] = OrderedDict()  # by SHA-256
        self._ended: OrderedDict[str, tuple[str, str]] = OrderedDict()

    async def begin(self, caller: Caller, params: BlobBeginParams) -> BlobBeginResult:
        """Open an upload. The same one begun anew takes the place of the first.

        Raises: TooLarge, InvalidParams, Overloaded (another one is open), Internal.
        """
        check_access(caller, BLOB_BEGIN)
        device = caller.device_id
        async with self._locks.holding(device):
            check_alive(caller)
            self._make_room(device, params)
            stored, count = await self._run(lambda: self._files.stored(device))
            check_declared(params, stored=stored, files=count)
            name = self._mint()
            try:
                fd = await self._run(lambda: self._files.create(device, name))
            except OSError as exc:
                raise storage_failed("uploads") from exc
            self._open[device] = Upload(
                id=name,
                device_id=device,
                declared=params,
                fd=fd,
                touched=self._now_s(),
            )
            return BlobBeginResult(upload_id=name)

    async def chunk(self, caller: Caller, params: BlobChunkParams) -> BlobChunkResult:
        """Take the next piece in. Whatever does not fit ends the upload.

        Raises: NotFound, InvalidParams, TooLarge, Internal.
        """
        check_access(caller, BLOB_CHUNK)
        if len(params.content) > BLOB_PIECE:
            raise TooLarge(
                f"A piece may have at most {BLOB_PIECE} bytes.",
                data={"field": "bytes", "limit": BLOB_PIECE},
            )
        async with self._locks.holding(caller.device_id):
            upload = self._find(caller, params.upload_id)
            upload.touched = self._now_s()
            if upload.is_repeat(params.offset, params.content):
                return BlobChunkResult(next=upload.taken)
            with self._dropping(upload):
                check_alive(caller)
                write = partial(_write_all, upload.fd)
                await self._run(
                    lambda: upload.take(params.offset, params.content, write=write)
                )
            return BlobChunkResult(next=upload.taken)

    async def commit(
        self, caller: Caller, params: BlobCommitParams
    ) -> BlobCommitResult:
        """Check the whole and keep it. Asked again, it says the same; the same bytes sent
        once more have the same id, so that a message can be repeated with its key.

        Raises: NotFound, InvalidParams, Internal.
        """
        check_access(caller, BLOB_COMMIT)
        device = caller.device_id
        async with self._locks.holding(device):
            ended = self._ended.get(params.upload_id)
            if ended is not None and ended[0] == device:
                return BlobCommitResult(blob_id=ended[1])
            upload = self._find(caller, params.upload_id)
            name = self._mint()
            with self._dropping(upload):
                upload.check_whole()
                same = (device, upload.declared.sha256)
                known = self._same.get(same)
                if known is not None and await self._touched(device, known):
                    self._drop(device)
                    return self._committed(upload, known)
                await self._run(lambda: _check_file(upload))
                check_alive(caller)
                await self._run(
                    lambda: self._files.keep(
                        device, upload.id, name, upload.fd, at_ms=self._now_ms()
                    )
                )
                del self._open[device]
            self._same[same] = name
            while len(self._same) > BLOBS_SAME:
                self._same.popitem(last=False)
            return self._committed(upload, name)

    async def _touched(self, device: str, name: str) -> bool:
        at_ms = self._now_ms()
        return await self._run(lambda: self._files.touch(device, name, at_ms=at_ms))

    def _committed(self, upload: Upload, name: str) -> BlobCommitResult:
        self._ended[upload.id] = (upload.device_id, name)
        while len(self._ended) > BLOBS_ENDED:
            self._ended.popitem(last=False)
        return BlobCommitResult(blob_id=name)

    async def forget(self, device_id: str) -> None:
        """Remove all that a device has sent; for one that is revoked."""
        async with self._locks.holding(device_id):
            self._drop(device_id)
            await self._run(lambda: self._files.forget(device_id))

    async def serve(self) -> NoReturn:
        """Remove what was left half sent, and what is a day old."""
        await self._run(lambda: self._clean(parts=True))
        while True:
            with trio.move_on_after(BLOBS_CLEAN_S):
                while True:
                    await trio.sleep(UPLOAD_LOOK_S)
                    self._drop_idle()
            await self._run(lambda: self._clean(parts=False))

    def _clean(self, *, parts: bool) -> None:
        self._files.clean(since_ms=self._now_ms() - BLOB_MS, parts=parts)

    def _drop_idle(self) -> None:
        now = self._now_s()
        for device, upload in list(self._open.items()):
            if upload.is_idle(now) and not self._locks.is_taken(device):
                self._drop(device)

    def _make_room(self, device: str, params: BlobBeginParams) -> None:
        upload = self._open.get(device)
        if upload is None:
            return
        if upload.is_idle(self._now_s()) or upload.declared == params:
            self._drop(device)
            return
        raise Overloaded(
            "Another upload of this device is under way; it ends first.",
            data={"limit": 1},
            retry_after_ms=1_000,
        )

    def _find(self, caller: Caller, upload_id: str) -> Upload:
        upload = self._open.get(caller.device_id)
        if upload is not None and upload.is_idle(self._now_s()):
            self._drop(caller.device_id)
            upload = None
        if upload is None or upload.id != upload_id:
            raise NotFound(
                "This upload is not open (any more): begin it anew.",
                data={"kind": "upload", "id": upload_id},
            )
        return upload

    @contextmanager
    def _dropping(self, upload: Upload) -> Generator[None]:
        """Leave nothing of an upload that fails, however it does."""
        try:
            yield
        except OSError as exc:
            self._drop(upload.device_id)
            raise storage_failed("uploads") from exc
        except BaseException:
            self._drop(upload.device_id)
            raise

    def _drop(self, device: str) -> None:
        upload = self._open.pop(device, None)
        if upload is not None:
            self._files.drop(device, upload.id, upload.fd)


def _write_all(fd: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _check_file(upload: Upload) -> None:
    """Look at what is on the disk: it is what Codex will read."""
    whole = os.pread(upload.fd, upload.declared.size + 1, 0)
    if len(whole) != upload.declared.size:
        raise OSError("the file is not as long as what was written")
    try:
        check_media(upload.declared.media_type, whole)
    except MediaError as exc:
        raise misfit("bytes", str(exc)) from None
