"""Unix sockets of one user. Trio shell. SECURITY.md.

The folder (0700, ours) is the fence, the socket's mode (0600) the second one, and the
kernel's word about the peer (its uid) the third: it holds where the modes were changed.
Abstract sockets have no modes and are not used.
"""

import errno
import hashlib
import os
import socket
import stat
import struct
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import trio

from transport.errors import KeyFileError, UnreachableError
from transport.keys import open_private_folder
from transport.limits import CONNECT_S

_MAX_PATH: Final = 107 if sys.platform == "linux" else 103  # sun_path less its NUL
_BACKLOG: Final = 64
_NOBODY: Final = -1  # as a peer's uid
# sys/un.h and sys/ucred.h of macOS: the version (0) and the uid begin `struct xucred`.
_SOL_LOCAL: Final = 0
_LOCAL_PEERCRED: Final = 1
_XUCRED: Final = struct.Struct("=II")


class UnixListener(trio.abc.Listener[trio.SocketStream]):
    """Accepts peers of our own uid; all others are closed without a word.

    Closing removes the socket file, if it is still the one that was made here.
    """

    def __init__(self, listener: trio.SocketListener, path: Path) -> None:
        self._listener = listener
        self.path = path
        self._made = _identity(path)

    @property
    def is_in_place(self) -> bool:
        """Whether its path still leads here; else nobody can come in by it."""
        try:
            return _identity(self.path) == self._made
        except OSError:  # a folder above it has gone, or is not ours any more
            return False

    async def accept(self) -> trio.SocketStream:
        """Return the next stream of a process of ours.

        Raises:
            OSError: as the listening socket says (no descriptors left: wait, try again).
        """
        while True:
            stream = await self._listener.accept()
            if peer_uid(stream) == os.geteuid():
                return stream
            await trio.aclose_forcefully(stream)

    async def aclose(self) -> None:
        """Stop listening and remove the socket file."""
        try:
            if self.is_in_place:
                self.path.unlink(missing_ok=True)
        finally:
            await self._listener.aclose()


async def connect(path: Path) -> trio.SocketStream:
    """Return a stream to the socket of `path`, whose owner is this user.

    Raises:
        UnreachableError: nobody listens, or somebody else does.
    """
    place = socket_path(path)
    try:
        with trio.fail_after(CONNECT_S):
            stream = await trio.open_unix_socket(place)
    except (OSError, trio.TooSlowError) as exc:
        why = getattr(exc, "strerror", None) or "no answer"
        raise UnreachableError(f"nobody listens at {place} ({why})") from exc
    if (uid := peer_uid(stream)) != os.geteuid():
        await trio.aclose_forcefully(stream)
        # A full backlog looks like a connection, but one to nobody.
        who = "too many wait" if uid == _NOBODY else "another user listens"
        raise UnreachableError(f"{who} at {place}")
    return stream


async def listen(path: Path) -> Sequence[UnixListener]:
    """Listen (one listener) at `path`, in a folder of ours alone (made where it is missing).

    A socket that a dead process of ours left is replaced.

    Raises:
        KeyFileError: folder or path is not ours alone, or not what it should be.
        OSError: somebody listens there (EADDRINUSE), or the socket cannot be made.
    """
    place = socket_path(path)
    open_private_folder(place.parent)
    await _remove_stale(place)
    with ExitStack() as undo:
        sock = undo.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        # With no checkpoint between: whoever finds the socket there gets in.
        sock.bind(str(place))
        place.chmod(0o600)
        sock.listen(_BACKLOG)
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(sock))
        made = UnixListener(listener, place)
        undo.pop_all()
    return [made]


def socket_path(path: Path) -> Path:
    """Return where the socket of `path` really is.

    The platform takes about 100 bytes; a longer path gets a short one, made of its
    hash, in a folder of this user's that both ends can name without asking.
    """
    absolute = path.absolute()
    raw = os.fsencode(absolute)
    if len(raw) <= _MAX_PATH:
        return absolute
    name = hashlib.sha256(raw).hexdigest()[:32]
    return Path(f"/tmp/threadgate-{os.geteuid()}") / f"{name}.sock"  # noqa: S108 - checked


def peer_uid(stream: trio.SocketStream) -> int:
    """Return the uid of the process at the other end, as the kernel knows it."""
    if sys.platform == "darwin":  # not run on a Mac yet
        try:
            raw = stream.socket.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED.size)
        except OSError:
            return _NOBODY  # it has hung up already
        return uid_of_xucred(raw)
    else:  # noqa: RET505 - the checkers know the platform, and take the rest for dead
        size = struct.calcsize("3i")
        raw = stream.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        return int(struct.unpack("3i", raw)[1])


def uid_of_xucred(raw: bytes) -> int:
    """Return the uid in what macOS says of a peer; nobody's where it says it otherwise."""
    if len(raw) < _XUCRED.size:
        return _NOBODY
    version, uid = _XUCRED.unpack_from(raw)
    return int(uid) if version == 0 else _NOBODY


async def _remove_stale(place: Path) -> None:
    """Remove a socket of ours that nobody listens at; refuse everything else."""
    if not _is_own_socket(place):
        return
    try:
        stream = await trio.open_unix_socket(place)
    except ConnectionRefusedError:
        os.unlink(place)
        return
    await stream.aclose()
    raise OSError(errno.EADDRINUSE, "another Agent listens there", str(place))


def _is_own_socket(place: Path) -> bool:
    try:
        info = place.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(info.st_mode) or info.st_uid != os.geteuid():
        raise KeyFileError(f"{place} is not a socket of yours. Remove it.")
    return True


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        info = path.lstat()
    except FileNotFoundError:
        return None
    return info.st_dev, info.st_ino
