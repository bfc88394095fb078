"""Key files: written whole or not at all, read only where nobody else could. Blocking I/O.

SECURITY.md. A key that others could read is no key: loading it is refused, with the
command that closes the hole. All checks look at the open descriptor, not at a name that
could change between look and read.
"""

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path
from typing import Final

from transport.errors import KeyFileError
from transport.identities import KEY_SIZE, PrivateKey, Secret, agent_id, fingerprint
from transport.limits import KEY_FILE

__all__ = [
    "KeyFileError",
    "PrivateKey",
    "Secret",
    "agent_id",
    "fingerprint",
    "load_identity",
    "open_private_folder",
    "read_secret_file",
    "remove_drafts",
    "write_secret_file",
]

_OTHERS: Final = 0o077
_ROTATE: Final = "Whoever could read it may have it: better make a new one."


def load_identity(path: Path, *, create: bool) -> PrivateKey:
    """Return the private key in `path` (32 raw bytes); make it first if `create`.

    Pass `create=False` where something already depends on this identity: a new one
    would look like an attack to all who know the old one.

    Raises:
        KeyFileError: it says what to do.
    """
    try:
        raw = read_secret_file(path)
    except FileNotFoundError:
        if not create:
            raise KeyFileError(
                f"{path} is missing, and devices know its key. Restore it from a "
                "backup; or remove the file of paired devices and pair them again."
            ) from None
        key = PrivateKey.generate()
        write_secret_file(path, key.to_bytes())
        return key
    if len(raw) != KEY_SIZE:
        raise KeyFileError(
            f"{path} has {len(raw)} bytes, a key has {KEY_SIZE}. Restore it from a "
            "backup, or remove it and pair all devices again."
        )
    return PrivateKey.from_bytes(raw)


def read_secret_file(path: Path) -> bytes:
    """Return the content of a private file.

    Raises:
        KeyFileError: file or folder is open to others, or is not what it should be.
        FileNotFoundError: there is none.
    """
    _check_folder(path.parent)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise
    except OSError as exc:
        if exc.errno == errno.ELOOP:
            raise KeyFileError(f"{path} is a symbolic link. Remove it.") from exc
        raise KeyFileError(f"{path} cannot be opened: {exc.strerror}.") from exc
    try:
        _check_file(path, os.fstat(descriptor))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(KEY_FILE + 1)
    finally:
        os.close(descriptor)
    if len(data) > KEY_FILE:
        raise KeyFileError(f"{path} is larger than {KEY_FILE} bytes.")
    return data


def write_secret_file(path: Path, data: bytes) -> None:
    """Replace `path` by `data`, mode 0600: after a crash it is the old or the new file.

    The folder is made with mode 0700 where it is missing.

    Raises:
        KeyFileError: the folder is open to others.
        OSError: it could not be written; the old file is as it was.
    """
    open_private_folder(path.parent)
    # First: where no descriptor is left, nothing has happened yet.
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _replace(path, data)
        os.fsync(folder)
    finally:
        os.close(folder)


def remove_drafts(path: Path) -> None:
    """Remove what was left of writing `path` where that was killed: it has secrets, too.

    Nobody else may be writing it.
    """
    for draft in path.parent.glob(f".{path.name}.{'[0-9a-f]' * 16}"):
        with contextlib.suppress(OSError):
            draft.unlink()


def open_private_folder(path: Path) -> None:
    """Make the folder (0700) if it is missing; raise `KeyFileError` if it is not ours."""
    with contextlib.suppress(FileExistsError):
        # The folder above may be the state folder, which has to be private too.
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.mkdir(mode=0o700)
    _check_folder(path)


def _check_folder(path: Path) -> None:
    info = path.lstat()
    if not stat.S_ISDIR(info.st_mode):
        raise KeyFileError(f"{path} is not a folder (or a link to one). Remove it.")
    _check_owner(path, info, wanted=0o700)


def _check_owner(path: Path, info: os.stat_result, *, wanted: int) -> None:
    if info.st_uid != os.geteuid():
        raise KeyFileError(f"{path} belongs to another user. Remove it.")
    if info.st_mode & _OTHERS:
        mode = stat.S_IMODE(info.st_mode)
        raise KeyFileError(
            f"{path} is open to other users (mode {mode:04o}). "
            f"Run: chmod {wanted:o} {path}  ({_ROTATE})"
        )


def _check_file(path: Path, info: os.stat_result) -> None:
    if not stat.S_ISREG(info.st_mode):
        raise KeyFileError(f"{path} is not a regular file. Remove it.")
    _check_owner(path, info, wanted=0o600)
    if info.st_nlink != 1:
        raise KeyFileError(
            f"{path} has {info.st_nlink} names (hard links). Remove the other. {_ROTATE}"
        )


def _replace(path: Path, data: bytes) -> None:
    draft = path.parent / f".{path.name}.{secrets.token_hex(8)}"
    try:
        _write_new(draft, data)
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def _write_new(path: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
