"""`--image`, `read --images`, `save`: pictures there and back. Trio shell.

PROTOCOL.md section 4 (blob/*). What comes from afar names no file here: a picture is
called by the last part of its path, made harmless, and never takes another's place.
"""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import trio

from clients.cli.doors import LinkTeller, open_door
from clients.cli.exits import ExitCode, FailedError, UsageProblemError
from clients.cli.plain import one_line
from clients.cli.screen import Screen
from clients.cli.style import Span, dim
from transport.blobs import fetch_blob, send_blob
from transport.client import Client
from transport.errors import NotFound, TooLarge
from transport.media import GIF, HEAD, JPEG, PNG, TEXT, WEBP, MediaError, media_type_of
from transport.protocol.items import Image
from transport.protocol.turns import Turn

MOST: Final = 64 * 1024 * 1024  # bytes of one picture; an Agent sends 32 MiB at most
LARGEST: Final = 10 * 1024 * 1024  # where an Agent says nothing else
_SAME_NAMES: Final = 1_000  # pictures of one name in one folder
_ODD: Final = re.compile(r"[^\w.-]+")
_ENDINGS: Final = {PNG: ".png", JPEG: ".jpg", GIF: ".gif", WEBP: ".webp", TEXT: ".txt"}


async def upload(screen: Screen, client: Client, path: Path) -> str:
    """Send a picture of this machine; return its blob id.

    Raises: UsageProblemError, FailedError, Refusal.
    """
    content = await trio.to_thread.run_sync(
        _read, path, client.opened.limits.blob or LARGEST
    )
    if media_type_of(content[:HEAD]) is None:
        raise UsageProblemError(
            f"{one_line(path.name)} is no PNG, JPEG, WebP or GIF picture"
        )
    bar = _Bar(screen, f"uploading {one_line(path.name, 60)}")
    try:
        return await send_blob(
            client, content, name=_harmless(path.name), progress=bar.show
        )
    except MediaError as exc:
        raise FailedError(f"{one_line(path.name)}: {exc}") from exc
    finally:
        bar.end()


def _read(path: Path, most: int) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as exc:
        raise UsageProblemError(
            f"{one_line(str(path))} cannot be read: {exc.strerror}"
        ) from exc
    if len(content) > most:
        raise UsageProblemError(
            f"{one_line(path.name)} is too large: a picture may have {most} bytes"
        )
    return content


async def save(
    screen: Screen, *, host: str | None, picture: str, file: Path
) -> ExitCode:
    """Fetch one picture into a new file."""
    async with open_door(host, on_link=LinkTeller(screen).tell) as client:
        content = await _fetch(screen, client, picture, picture)
    await trio.to_thread.run_sync(_write, file, content)
    screen.say("saved ", Span(str(file), "name"), dim(f" ({len(content)} bytes)"))
    return ExitCode.OK


async def save_all(
    screen: Screen, client: Client, turns: Sequence[Turn], folder: Path
) -> None:
    """Fetch the pictures of turns into a folder; those that are gone are said."""
    pictures = {
        item.blob_id: item
        for turn in turns
        for item in turn.items or ()
        if isinstance(item, Image) and item.blob_id
    }
    for blob_id, item in pictures.items():
        shown = one_line(item.path or blob_id, 200)
        try:
            content = await _fetch(screen, client, blob_id, shown)
        except (NotFound, TooLarge) as exc:
            screen.note(f"{shown}: {one_line(exc.message)}")
            continue
        file = await trio.to_thread.run_sync(
            _write_beside, folder, item.path or blob_id, content
        )
        screen.note(f"saved {file}")


async def _fetch(screen: Screen, client: Client, blob_id: str, shown: str) -> bytes:
    bar = _Bar(screen, f"fetching {shown}")
    try:
        return await fetch_blob(client, blob_id, most=MOST, progress=bar.show)
    finally:
        bar.end()


def _write_beside(folder: Path, path: str, content: bytes) -> Path:
    """Write under the picture's own name, or the next that is free."""
    kind = media_type_of(content[:HEAD]) or TEXT
    name = Path(_harmless(path.rpartition("/")[2]))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(1, _SAME_NAMES):
            again = "" if number == 1 else f"-{number}"
            file = folder / f"{name.stem}{again}{_ENDINGS[kind]}"
            with suppress(FileExistsError):
                _create(file, content)
                return file
    except OSError as exc:
        raise FailedError(f"{folder} cannot be written: {exc.strerror}") from exc
    raise FailedError(f"too many files are called {name.stem} in {folder}")


def _write(file: Path, content: bytes) -> None:
    try:
        _create(file, content)
    except FileExistsError:
        raise UsageProblemError(f"{file} is there already; name another file") from None
    except OSError as exc:
        raise FailedError(f"{file} cannot be written: {exc.strerror}") from exc


def _create(file: Path, content: bytes) -> None:
    """Write a new file, or leave none."""
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as out:
            out.write(content)
    except OSError:
        file.unlink(missing_ok=True)
        raise


def _harmless(name: str) -> str:
    """Return a name that is one file in one folder, wherever it came from."""
    return _ODD.sub("_", name).strip("._-")[-80:] or "picture"


class _Bar:
    """How far something is, on one line of the terminal; nothing elsewhere."""

    def __init__(self, screen: Screen, what: str) -> None:
        self._out = screen.err if screen.err.isatty() and not screen.as_json else None
        self._what = what
        self._shown = False

    def show(self, done: int, total: int) -> None:
        """Say it. Bytes."""
        if self._out is not None:
            share = 100 * done // max(total, 1)
            print(
                f"\r\x1b[K{self._what}: {share} %", end="", file=self._out, flush=True
            )
            self._shown = True

    def end(self) -> None:
        """Take the line away."""
        if self._shown:
            print("\r\x1b[K", end="", file=self._out, flush=True)
