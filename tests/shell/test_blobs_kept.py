"""How long uploads are kept and how much of them: times, bounds, a restart, a full disk, a revocation."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from agent.limits import BLOB_BYTES, BLOB_PIECE, DEVICE_BLOB_BYTES
from tests.support.pictures import png
from tests.support.upload_room import PHONE, TABLET, Room, padded
from transport.errors import (
    Forbidden,
    Internal,
    NotFound,
    TooLarge,
)

DAY_MS = 24 * 3_600_000


async def test_an_upload_that_is_left_alone_for_30_s_is_gone(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    room = Room(tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(room.uploads.serve)
        await trio.sleep(1)
        upload = await room.begin(png())
        await trio.sleep(25)
        await room.piece(upload, 0, png()[:50])
        await trio.sleep(25)
        assert len(room.files()) == 1
        await trio.sleep(11)
        assert room.files() == []
        with pytest.raises(NotFound):
            await room.piece(upload, 50, png()[50:])
        nursery.cancel_scope.cancel()


async def test_a_file_is_gone_after_a_day_first_for_clients_then_on_the_disk(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    room = Room(tmp_path)
    blob = await room.send(png())
    room.later_ms = DAY_MS - 1_000
    assert await room.read(blob) == png()
    room.later_ms = DAY_MS + 1_000
    with pytest.raises(NotFound):
        await room.read(blob)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(room.uploads.serve)
        await trio.sleep(700)
        nursery.cancel_scope.cancel()
    assert room.files() == []


async def test_files_outlive_a_restart_and_half_ones_do_not(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    room = Room(tmp_path)
    blob = await room.send(png())
    await room.piece(await room.begin(png(9, 9)), 0, png(9, 9)[:40])
    again = Room(tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(again.uploads.serve)
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert [file.name for file in again.files()] == [blob]
    assert await again.read(blob) == png()


async def test_a_file_may_have_10_mib_and_a_device_100(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    room = Room(tmp_path)
    with pytest.raises(TooLarge) as caught:
        await room.begin(png(), size=BLOB_BYTES + 1)
    assert caught.value.data == {"field": "size", "limit": BLOB_BYTES}
    place = room.folder / "d1"
    place.mkdir(parents=True)
    stored = place / ("a" * 32)
    stored.touch()
    os.truncate(stored, DEVICE_BLOB_BYTES - len(png()) + 1)
    with pytest.raises(TooLarge):
        await room.begin(png())
    os.truncate(stored, DEVICE_BLOB_BYTES - len(png()))
    assert await room.send(png())
    assert await room.send(padded(BLOB_BYTES), TABLET)


async def test_a_piece_may_have_64_kib(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    room = Room(tmp_path)
    content = padded(70_000)
    upload = await room.begin(content)
    with pytest.raises(TooLarge):
        await room.piece(upload, 0, content[: BLOB_PIECE + 1])
    assert await room.piece(upload, 0, content[:BLOB_PIECE]) == BLOB_PIECE == 65_536


async def test_what_is_remembered_of_uploads_that_ended_is_bounded(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.files.uploads.BLOBS_SAME", 2)
    monkeypatch.setattr("agent.files.uploads.BLOBS_ENDED", 2)
    room = Room(tmp_path)
    uploads: list[tuple[str, str]] = []
    for size in (1_000, 1_001, 1_002):
        upload = await room.begin(padded(size))
        await room.piece(upload, 0, padded(size))
        uploads.append((upload, await room.commit(upload)))
    for upload, blob in uploads[1:]:
        assert await room.commit(upload) == blob, "who lost the answer has it"
    with pytest.raises(NotFound):
        await room.commit(uploads[0][0])
    assert await room.send(padded(1_002)) == uploads[2][1]
    assert await room.send(padded(1_000)) != uploads[0][1], "long ago: another id"


async def test_a_full_disk_keeps_nothing(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = Room(tmp_path)
    upload = await room.begin(png())
    write = os.write
    half = iter([True])

    def full(fd: int, data: bytes) -> int:
        if next(half, False):
            return write(fd, data[:20])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(Internal):
        await room.piece(upload, 0, png())
    monkeypatch.undo()
    assert room.files() == []
    assert await room.read(await room.send(png())) == png()


async def test_a_device_that_is_revoked_has_nothing_here_any_more(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    room = Room(tmp_path)
    alive = [True]
    caller = replace(PHONE, alive=lambda: alive[0])
    await room.send(png(), caller)
    upload = await room.begin(png(9, 9), caller)
    await room.piece(upload, 0, png(9, 9)[:40], caller)
    theirs = await room.send(png(), TABLET)
    alive[0] = False
    with pytest.raises(Forbidden):
        await room.piece(upload, 40, png(9, 9)[40:], caller)
    await room.uploads.forget("d1")
    assert [file.name for file in room.files()] == [theirs]
    with pytest.raises(Forbidden):
        await room.begin(png(), caller)
