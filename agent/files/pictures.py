"""Pictures that turns made or looked at, read back piece by piece. Trio shell.

PROTOCOL.md section 4 (blob/read), SECURITY.md (Pictures of threads). A picture is known by
the item that named it, when that has passed by. Whoever reads it must see its thread; the
file must lie in the thread's folder, or be one that Codex made where it keeps those, and
must be a picture by its bytes. It is opened anew for each piece, checked and read through
one descriptor.
"""

import os
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from adapter.runtime.events import Emitted, ItemClosed, ItemOpened, RuntimeEvent
from agent.access.roots import resolved
from agent.access.scopes import Caller, check_access
from agent.access.sight import Sight
from agent.files.beneath import OutsideError, open_beneath, path_below
from agent.files.blobs import Blobs, blob_not_found, piece_of
from agent.files.private import PrivateFolders
from agent.limits import PICTURE_BYTES, PICTURE_THREADS, PICTURES_KNOWN
from agent.offload import Runner, in_thread
from transport.errors import NotFound, TooLarge
from transport.media import HEAD, media_type_of
from transport.protocol.blobs import BlobReadParams, BlobReadResult
from transport.protocol.items import Image, Item
from transport.protocol.methods import BLOB_READ
from transport.protocol.threads import Thread
from transport.protocol.turns import Turn
from transport.protocol.work_items import ImageOrigin

MADE: Final = "generated_images"  # where Codex keeps what it makes, in its home


@dataclass(slots=True, kw_only=True)
class _Known:
    path: str
    made: bool
    threads: dict[str, None] = field(default_factory=dict[str, None])


class Pictures:
    """`blob/read`. Of what is private only `MADE`, below `codex_home`, is read."""

    def __init__(
        self,
        *,
        blobs: Blobs,
        sight: Sight,
        codex_home: Path,
        private: PrivateFolders,
        run: Runner = in_thread,
    ) -> None:
        self._blobs = blobs
        self._sight = sight
        self._codex_home = str(codex_home)
        self._private = private
        self._run = run
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def hear(self, event: RuntimeEvent) -> None:
        """Note the pictures of what happens."""
        match event:
            case (
                ItemOpened(thread_id=thread_id, item=item)
                | ItemClosed(thread_id=thread_id, item=item)
            ):
                self.learn(thread_id, [item])
            case Emitted(data=data) if isinstance(
                turn := getattr(data, "turn", None), Turn
            ):
                self.learn_turns([turn])
            case _:
                pass

    def learn_turns(self, turns: Iterable[Turn]) -> None:
        """Note the pictures of turns that were read."""
        for turn in turns:
            self.learn(turn.thread_id, turn.items or ())

    def learn(self, thread_id: str, items: Sequence[Item]) -> None:
        """Note the pictures among the items of a thread."""
        for item in items:
            if isinstance(item, Image) and item.blob_id and item.path:
                self._note(thread_id, item.blob_id, item)

    def _note(self, thread_id: str, blob_id: str, item: Image) -> None:
        made = item.origin is ImageOrigin.MADE
        known = self._known.setdefault(blob_id, _Known(path=item.path or "", made=made))
        known.threads.pop(thread_id, None)
        known.threads[thread_id] = None
        for old in list(known.threads)[:-PICTURE_THREADS]:
            del known.threads[old]
        self._known.move_to_end(blob_id)
        while len(self._known) > PICTURES_KNOWN:
            self._known.popitem(last=False)

    async def read(self, caller: Caller, params: BlobReadParams) -> BlobReadResult:
        """Return a piece of a blob of the caller or of a thread's picture.

        Raises: NotFound, TooLarge.
        """
        check_access(caller, BLOB_READ)
        blob_id = params.blob_id
        if self._blobs.is_name(blob_id):
            offset, limit = params.offset, params.limit
            return await self._blobs.read(caller, blob_id, offset, limit)
        known = self._known.get(blob_id)
        if known is None:
            raise blob_not_found(
                blob_id,
                "There is no such picture, or it was not looked at since the Agent "
                "started: read its thread, then ask again.",
            )
        thread = await self._thread(caller, blob_id, known)
        return await self._run(lambda: self._piece(caller, known, thread, params))

    async def _thread(self, caller: Caller, blob_id: str, known: _Known) -> Thread:
        """Return a thread that has the picture and exists for the caller."""
        for thread_id in reversed(known.threads):
            try:
                return await self._sight.thread(caller, thread_id)
            except NotFound:
                continue
        raise blob_not_found(blob_id)

    def _piece(
        self, caller: Caller, known: _Known, thread: Thread, params: BlobReadParams
    ) -> BlobReadResult:
        fd = self._open(caller, params.blob_id, known, thread)
        try:
            if os.fstat(fd).st_size > PICTURE_BYTES:
                raise TooLarge(
                    "This picture is too large to be sent; it is on the workstation.",
                    data={"field": "blobId", "limit": PICTURE_BYTES},
                )
            if media_type_of(os.pread(fd, HEAD, 0)) is None:
                raise blob_not_found(
                    params.blob_id, "What lies there is no picture (now)."
                )
            return piece_of(fd, params.offset, params.limit)
        finally:
            os.close(fd)

    def _open(self, caller: Caller, blob_id: str, known: _Known, thread: Thread) -> int:
        for path in self._places(caller, known, thread):
            try:
                return open_beneath("/", path.removeprefix("/"))
            except OutsideError:
                continue
        raise blob_not_found(
            blob_id,
            "This picture is not in the thread's folder (any more), so it is not sent. "
            "Its path says where it lies on the workstation.",
        )

    def _places(self, caller: Caller, known: _Known, thread: Thread) -> list[str]:
        """Return where the picture may be opened: absolute paths without a link, up to
        the folder that was checked; below it none is followed either."""
        places: list[str] = []
        folder = resolved(thread.cwd)
        below = _below((thread.cwd, folder), known.path)
        if below is not None and self._sight.roots.shows(caller, folder):
            path = os.path.join(folder, below)
            if not self._private.hold(path, of=folder):
                places.append(path)
        home = resolved(self._codex_home)
        homes = [os.path.join(one, MADE) for one in (self._codex_home, home)]
        below = _below(homes, known.path) if known.made else None
        if below is not None:
            places.append(os.path.join(home, MADE, below))
        return places


def _below(folders: Iterable[str], path: str) -> str | None:
    found = (path_below(folder, path) for folder in folders)
    return next((one for one in found if one is not None), None)
