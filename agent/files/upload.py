"""One upload: what was declared, what has come, whether it fits. Sans-IO.

PROTOCOL.md section 4 (blob/*). Whatever does not fit ends the upload; only the piece that
came last may come again, since its answer may have been lost.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from agent.limits import BLOB_BYTES, BLOBS_A_DEVICE, DEVICE_BLOB_BYTES, UPLOAD_IDLE_S
from transport.errors import InvalidParams, TooLarge
from transport.media import HEAD, MEDIA_TYPES, MediaError, check_beginning
from transport.protocol.blobs import BlobBeginParams

MIB: Final = 1024 * 1024


def check_declared(params: BlobBeginParams, *, stored: int, files: int) -> None:
    """Refuse what is too large or of no type that is taken, before a byte has come.

    `stored`, `files`: what this device has here. Raises: TooLarge, InvalidParams.
    """
    if params.media_type not in MEDIA_TYPES:
        known = ", ".join(MEDIA_TYPES)
        raise misfit("mediaType", f"these are taken: {known}")
    if params.size > BLOB_BYTES:
        raise TooLarge(
            f"A file may have at most {BLOB_BYTES // MIB} MiB.",
            data={"field": "size", "limit": BLOB_BYTES},
        )
    if stored + params.size > DEVICE_BLOB_BYTES or files >= BLOBS_A_DEVICE:
        raise TooLarge(
            f"A device may have {BLOBS_A_DEVICE} files and "
            f"{DEVICE_BLOB_BYTES // MIB} MiB here; each goes after a day.",
            data={"field": "size", "limit": DEVICE_BLOB_BYTES},
        )


class Digest(Protocol):
    """A hash that grows; `hashlib` has no public name for it."""

    def update(self, data: bytes, /) -> None:
        """Take more in."""
        ...

    def hexdigest(self) -> str:
        """Return it as it is."""
        ...


@dataclass(slots=True, kw_only=True)
class Upload:
    """An open upload. `fd`: its file, owned by who made this; times in s, monotonic."""

    id: str
    device_id: str
    declared: BlobBeginParams
    fd: int
    touched: float
    taken: int = 0
    _whole: Digest = field(default_factory=hashlib.sha256)
    _last: tuple[int, bytes] | None = None

    def is_idle(self, now: float) -> bool:
        """Whether nothing has come for so long that nothing will."""
        return now - self.touched >= UPLOAD_IDLE_S

    def is_repeat(self, offset: int, content: bytes) -> bool:
        """Whether this piece was the last that came: then it is answered again."""
        return self._last == (offset, hashlib.sha256(content).digest())

    def take(
        self, offset: int, content: bytes, *, write: Callable[[bytes], None]
    ) -> None:
        """Check the next piece, `write` it, count it. Raises: InvalidParams, TooLarge."""
        if offset != self.taken:
            raise misfit("offset", f"the next piece begins at {self.taken}")
        if offset + len(content) > self.declared.size:
            raise TooLarge(
                "More came than was declared; the upload was dropped.",
                data={"field": "bytes", "limit": self.declared.size},
            )
        if offset == 0 and len(content) >= min(HEAD, self.declared.size):
            try:
                check_beginning(self.declared.media_type, content[:HEAD])
            except MediaError as exc:
                raise misfit("bytes", str(exc)) from None
        write(content)
        self._whole.update(content)
        self._last = (offset, hashlib.sha256(content).digest())
        self.taken += len(content)

    def check_whole(self) -> None:
        """Refuse what is shorter than declared, or other bytes. Raises: InvalidParams."""
        if self.taken != self.declared.size:
            raise misfit("size", f"only {self.taken} bytes came")
        if self._whole.hexdigest() != self.declared.sha256:
            raise misfit("sha256", "other bytes came than were declared")


def misfit(field_name: str, reason: str) -> InvalidParams:
    """What came does not fit, and why."""
    return InvalidParams(
        f"{field_name}: {reason}.", data={"field": field_name, "reason": reason}
    )
