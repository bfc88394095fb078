"""Uploads on a mock clock: their pieces, what they claim, and what a repeat is."""

import errno
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest
import trio
from trio.testing import MockClock

from tests.support.door import LOCAL, device
from tests.support.pictures import gif, png
from tests.support.upload_room import PHONE, TABLET, Room, padded
from transport.errors import (
    Forbidden,
    Internal,
    InvalidParams,
    NotFound,
    Overloaded,
    Refusal,
    TooLarge,
)


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


async def test_where_no_descriptor_is_left_it_is_not_called_gone(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = Room(tmp_path)
    blob = await room.send(png())

    def starved(_path: Path, _flags: int) -> NoReturn:
        raise OSError(errno.EMFILE, "too many open files")

    with monkeypatch.context() as patched:
        patched.setattr("agent.files.blob_files.os.open", starved)
        with pytest.raises(Internal) as refused:
            await room.blobs.picture(PHONE, blob)
    assert refused.value.retryable
    assert (await room.blobs.picture(PHONE, blob)).size


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
