"""Uploads, from the first piece to their end, on a mock clock."""

import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from agent.access.scopes import Caller
from agent.files.blob_files import BlobFiles
from agent.files.blobs import Blobs
from agent.limits import BLOB_BYTES, BLOB_PIECE, DEVICE_BLOB_BYTES
from tests.support.door import LOCAL, device, inline
from tests.support.pictures import gif, png
from transport.errors import (
    Forbidden,
    Internal,
    InvalidParams,
    NotFound,
    Overloaded,
    Refusal,
    TooLarge,
)
from transport.protocol.blobs import (
    BlobBeginParams,
    BlobChunkParams,
    BlobCommitParams,
)

PHONE = device()
TABLET = device(device_id="d2")
DAY_MS = 24 * 3_600_000


class Room:
    """Uploads in a folder, with a wall clock that the test moves."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "uploads"
        self.later_ms = 0
        self.blobs = Blobs(
            BlobFiles(self.folder),
            now_ms=self.now_ms,
            now_s=trio.current_time,
            run=inline,
        )

    def now_ms(self) -> int:
        newest = [path.stat().st_mtime_ns for path in self.folder.rglob("*")]
        return max(newest, default=0) // 1_000_000 + self.later_ms

    def files(self) -> list[Path]:
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
        begun = await self.blobs.begin(caller, BlobBeginParams.model_validate(params))
        return begun.upload_id

    async def piece(
        self, upload: str, offset: int, content: bytes, caller: Caller = PHONE
    ) -> int:
        params = BlobChunkParams(upload_id=upload, offset=offset, content=content)
        return (await self.blobs.chunk(caller, params)).next

    async def commit(self, upload: str, caller: Caller = PHONE) -> str:
        params = BlobCommitParams(upload_id=upload)
        return (await self.blobs.commit(caller, params)).blob_id

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
    return png() + bytes(size - len(png()))


async def test_an_upload_is_kept_under_a_name_of_ours_and_read_back(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    room = Room(tmp_path)
    content = padded(200_000)
    blob = await room.send(content, step=30_000)
    assert await room.read(blob) == content
    (file,) = room.files()
    assert file == room.folder / "d1" / blob
    assert len(blob) == 32
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    picture = await room.blobs.picture(PHONE, blob)
    assert (picture.path, picture.size) == (str(file), 200_000)


async def test_no_other_device_has_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    room = Room(tmp_path)
    blob = await room.send(png())
    for caller in (TABLET, LOCAL):
        with pytest.raises(NotFound):
            await room.read(blob, caller)
        with pytest.raises(NotFound):
            await room.blobs.picture(caller, blob)
    upload = await room.begin(png())
    for caller in (TABLET, LOCAL):
        with pytest.raises(NotFound):
            await room.piece(upload, 0, png(), caller)


async def larger(room: Room, upload: str) -> None:
    await room.piece(upload, 0, png()[:50])
    await room.piece(upload, 50, png()[50:] + b"x")


async def shorter(room: Room, upload: str) -> None:
    await room.piece(upload, 0, png()[:-1])
    await room.commit(upload)


async def other_bytes(room: Room, upload: str) -> None:
    await room.piece(upload, 0, png()[:-1] + b"x")
    await room.commit(upload)


async def out_of_order(room: Room, upload: str) -> None:
    await room.piece(upload, 0, png()[:50])
    await room.piece(upload, 51, png()[51:])


async def again_but_not_last(room: Room, upload: str) -> None:
    await room.piece(upload, 0, png()[:40])
    await room.piece(upload, 40, png()[40:50])
    await room.piece(upload, 0, png()[:40])


async def other_type(room: Room, upload: str) -> None:
    await room.piece(upload, 0, gif() + bytes(len(png()) - len(gif())))


@pytest.mark.parametrize(
    ("wrong", "refusal"),
    [
        (larger, TooLarge),
        (shorter, InvalidParams),
        (other_bytes, InvalidParams),
        (out_of_order, InvalidParams),
        (again_but_not_last, InvalidParams),
        (other_type, InvalidParams),
    ],
)
async def test_what_does_not_fit_ends_the_upload_and_leaves_nothing(
    wrong: Callable[[Room, str], object],
    refusal: type[Refusal],
    tmp_path: Path,
    autojump_clock: MockClock,
) -> None:
    room = Room(tmp_path)
    upload = await room.begin(png())
    with pytest.raises(refusal):
        await wrong(room, upload)  # type: ignore[misc]  # each is a coroutine function
    assert room.files() == []
    with pytest.raises(NotFound):
        await room.piece(upload, 0, png())
    assert await room.send(png())  # and the next one finds room


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (png(claims=(60_000, 60_000)), "image/png"),
        (gif(), "image/png"),
        (b"<svg xmlns='x'/>" * 9, "image/png"),
        (b"PK\3\4" + bytes(99), "image/png"),
        (b"PK\3\4" + bytes(99), "text/plain"),
    ],
)
async def test_what_is_not_what_it_claims_is_refused_and_gone(
    content: bytes, kind: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    room = Room(tmp_path)
    with pytest.raises(InvalidParams):
        await room.send(content, media_type=kind)
    assert room.files() == []


@pytest.mark.parametrize("kind", ["image/svg+xml", "application/zip", "x", "../.."])
async def test_a_type_that_is_not_taken_is_refused_before_a_byte(
    kind: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    room = Room(tmp_path)
    with pytest.raises(InvalidParams) as caught:
        await room.begin(png(), media_type=kind)
    assert caught.value.data["field"] == "mediaType"
    assert room.files() == []


async def test_the_last_piece_and_the_commit_may_come_again(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    room = Room(tmp_path)
    upload = await room.begin(png())
    for _ in range(3):
        assert await room.piece(upload, 0, png()[:50]) == 50
    for _ in range(3):
        assert await room.piece(upload, 50, png()[50:]) == len(png())
    blob = await room.commit(upload)
    assert await room.commit(upload) == blob
    assert await room.read(blob) == png()
    with pytest.raises(NotFound):
        await room.commit(upload, TABLET)


async def test_the_same_bytes_have_the_same_id_for_the_same_device(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    room = Room(tmp_path)
    blob = await room.send(png())
    assert await room.send(png()) == blob
    assert await room.send(png(), TABLET) != blob
    assert len(room.files()) == 2
    (room.folder / "d1" / blob).unlink()
    assert await room.send(png()) != blob


async def test_one_upload_at_a_time_and_the_same_one_begins_anew(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    room = Room(tmp_path)
    first = await room.begin(png())
    await room.piece(first, 0, png()[:50])
    with pytest.raises(Overloaded) as caught:
        await room.begin(png(9, 9))
    assert caught.value.retryable
    other = await room.begin(png(9, 9), TABLET)  # has its own
    second = await room.begin(png())
    with pytest.raises(NotFound):
        await room.piece(first, 50, png()[50:])
    assert await room.piece(second, 0, png()) == len(png())
    await room.commit(second)
    assert await room.piece(other, 0, png(9, 9), TABLET)


async def test_pieces_that_are_sent_without_waiting_are_taken_in_order(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    room = Room(tmp_path)
    content = padded(50_000)
    upload = await room.begin(content)
    async with trio.open_nursery() as nursery:
        for at in range(0, len(content), 1_000):
            await nursery.start(partial(_begun, room, upload, at, content))
    blob = await room.commit(upload)
    assert await room.read(blob) == content


async def _begun(
    room: Room,
    upload: str,
    at: int,
    content: bytes,
    *,
    task_status: trio.TaskStatus[None],
) -> None:
    task_status.started()
    await room.piece(upload, at, content[at : at + 1_000])


async def test_an_upload_that_is_left_alone_for_30_s_is_gone(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    room = Room(tmp_path)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(room.blobs.serve)
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
        nursery.start_soon(room.blobs.serve)
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
        nursery.start_soon(again.blobs.serve)
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
    monkeypatch.setattr("agent.files.blobs.BLOBS_SAME", 2)
    monkeypatch.setattr("agent.files.blobs.BLOBS_ENDED", 2)
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
    await room.blobs.forget("d1")
    assert [file.name for file in room.files()] == [theirs]
    with pytest.raises(Forbidden):
        await room.begin(png(), caller)


async def test_reading_is_no_leave_to_send(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    room = Room(tmp_path)
    with pytest.raises(Forbidden):
        await room.begin(png(), device("read", "approve"))
    assert not room.folder.exists()


@pytest.mark.parametrize(
    "name", ["../../.ssh/authorized_keys", "C:\\x", "a\0b", "\u202egnp.exe", "/etc/x"]
)
async def test_a_file_s_name_names_nothing_on_the_workstation(
    name: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    room = Room(tmp_path)
    blob = await room.send(png(), name=name)
    assert [file.name for file in room.files()] == [blob]
    assert list(tmp_path.iterdir()) == [room.folder]


async def test_a_link_in_a_file_s_place_is_not_followed(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    room = Room(tmp_path)
    blob = await room.send(png())
    (tmp_path / "secret").write_bytes(png(9, 9))
    (room.folder / "d1" / blob).unlink()
    (room.folder / "d1" / blob).symlink_to(tmp_path / "secret")
    with pytest.raises(NotFound):
        await room.read(blob)
