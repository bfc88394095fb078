"""A message's parts, made into what a runtime takes. Trio shell.

PROTOCOL.md section 4 (input). A picture is a blob that this device has sent, a mention a
file inside the thread's folder; both are looked for anew right before they are sent.
"""

import os
from collections.abc import Sequence

from adapter.runtime.acts import FileMention, InputPart, LocalImage
from agent.access.scopes import Caller
from agent.files.beneath import OutsideError, open_beneath
from agent.files.blobs import Blobs
from agent.files.upload import MIB, misfit
from agent.limits import TURN_BLOB_BYTES
from agent.offload import Runner, in_thread
from transport.errors import TooLarge
from transport.protocol import turns


class Inputs:
    """Makes parts for a writer."""

    def __init__(self, blobs: Blobs, *, run: Runner = in_thread) -> None:
        self._blobs = blobs
        self._run = run

    async def prepare(
        self, caller: Caller, given: Sequence[turns.InputPart], folder: str
    ) -> list[InputPart]:
        """Return the parts in order; `folder` is the thread's.

        Raises: NotFound (blob), InvalidParams (no picture, no such file), TooLarge.
        """
        parts: list[InputPart] = []
        pictures = 0
        for one in given:
            match one:
                case turns.TextInput():
                    parts.append(one.text)
                case turns.ImageInput():
                    picture = await self._blobs.picture(caller, one.blob_id)
                    pictures += picture.size
                    _check_pictures(pictures)
                    parts.append(LocalImage(path=picture.path))
                case turns.MentionInput():
                    parts.append(await self._mention(folder, one.path))
        return parts

    async def _mention(self, folder: str, path: str) -> FileMention:
        """Return a mention of a file that is there. Codex's sandbox is the real fence:
        the model reads the file by its path, later, if at all."""
        try:
            await self._run(lambda: os.close(open_beneath(folder, path)))
        except OutsideError as exc:
            raise misfit("input", f"mention: {exc}") from None
        return FileMention(name=path, path=os.path.join(folder, path))


def _check_pictures(size: int) -> None:
    if size > TURN_BLOB_BYTES:
        raise TooLarge(
            f"The pictures of one message may have {TURN_BLOB_BYTES // MIB} MiB in all.",
            data={"field": "input", "limit": TURN_BLOB_BYTES},
        )
