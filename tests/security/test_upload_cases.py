"""Uploads, mentions and pictures against those who want more (cases 79 to 82).

The case numbers are those of SECURITY.md's list. A whole Agent on real sockets where the
device matters; the walk below a folder alone where the file system does.
"""

import os
import socket
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from agent.files.beneath import OutsideError, open_beneath
from agent.files.file_search import FileSearch
from agent.files.private import PrivateFolders
from agent.sessions.requests import read_params
from tests.support.agents import client_info, open_agent, open_owner, pair_device
from tests.support.door import LOCAL, device, open_house
from tests.support.fake_runtime import FakeRuntime
from tests.support.fake_store import FakeStore
from tests.support.pictures import png
from transport.blobs import fetch_blob, send_blob
from transport.client import open_client
from transport.errors import (
    Forbidden,
    InvalidParams,
    NotFound,
)
from transport.protocol import admin, blobs, turns
from transport.protocol.files import FileSearchParams
from transport.protocol.methods import (
    BLOB_BEGIN,
    BLOB_CHUNK,
    BLOB_COMMIT,
    BLOB_READ,
    DEVICE_REVOKE,
    TURN_START,
)

INSIDE, OUTSIDE = b"inside", b"outside"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with files in it, and everything beside and in it that leads out."""
    folder = tmp_path / "work"
    (folder / "sub").mkdir(parents=True)
    (folder / "file").write_bytes(INSIDE)
    (folder / "sub" / "file").write_bytes(INSIDE)
    outer = tmp_path / "out"
    outer.mkdir()
    (outer / "file").write_bytes(OUTSIDE)
    (folder / "link").symlink_to(outer / "file")
    (folder / "inner link").symlink_to("file")
    (folder / "dirlink").symlink_to(outer)
    (folder / "rootlink").symlink_to("/")
    (folder / "proc").symlink_to("/proc/self/environ")
    (folder / "null").symlink_to("/dev/null")
    os.mkfifo(folder / "fifo")
    return folder


def read(folder: Path, path: str) -> bytes:
    fd = open_beneath(str(folder), path)
    try:
        return os.pread(fd, 100, 0)
    finally:
        os.close(fd)


def test_what_lies_inside_is_opened(place: Path) -> None:
    assert read(place, "file") == INSIDE
    assert read(place, "sub/file") == INSIDE


ESCAPES = [
    "link",
    "inner link",
    "dirlink/file",
    "rootlink/etc/passwd",
    "..",
    "../out/file",
    "sub/../../out/file",
    "/etc/passwd",
    "proc",
    "null",
    "fifo",
    "socket",
    "sub",
    "sub/",
    "sub//file",
    "./file",
    "file\0",
    "file\n",
    "",
    "x" * 300,
    "file/file",
    "C:\\x",
    "\ud800",
    "\u202efile",
]


@pytest.mark.parametrize("path", ESCAPES)
def test_82_no_path_leads_out_of_the_folder(path: str, place: Path) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        here = Path.cwd()
        os.chdir(place)  # its whole path is longer than a socket's may be
        listener.bind("socket")
        os.chdir(here)
        with pytest.raises(OutsideError):
            open_beneath(str(place), path)


def test_82_a_folder_that_becomes_a_link_after_the_check_is_not_what_is_read(
    place: Path,
) -> None:
    fd = open_beneath(str(place), "sub/file")
    (place / "sub").rename(place / "old")
    (place / "sub").symlink_to(place.parent / "out")
    assert os.pread(fd, 100, 0) == INSIDE
    os.close(fd)
    with pytest.raises(OutsideError):
        open_beneath(str(place), "sub/file")


def test_82_a_folder_that_becomes_a_link_during_the_walk_is_not_followed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def swapping(path: Any, *rest: Any, **more: Any) -> int:
        if path == "file" and not (place / "old").exists():
            (place / "sub").rename(place / "old")
            (place / "sub").symlink_to(place.parent / "out")
        return real(path, *rest, **more)

    monkeypatch.setattr(os, "open", swapping)
    assert read(place, "sub/file") == INSIDE


@contextmanager
def swapped_all_the_time(place: Path) -> Generator[None]:
    done = threading.Event()

    def swap() -> None:
        folder, kept = place / "sub", place / "kept"
        while not done.is_set():
            folder.rename(kept)
            folder.symlink_to(place.parent / "out")
            folder.unlink()
            kept.rename(folder)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_82_a_race_between_folder_and_link_is_never_won(place: Path) -> None:
    seen: set[bytes | None] = set()
    with swapped_all_the_time(place):
        for _ in range(3_000):
            try:
                seen.add(read(place, "sub/file"))
            except OutsideError:
                seen.add(None)
    assert OUTSIDE not in seen


def test_no_descriptor_is_left_behind(place: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for path in ("file", "sub/file", *ESCAPES):
        try:
            os.close(open_beneath(str(place), path))
        except OutsideError:
            continue
    assert len(os.listdir("/proc/self/fd")) == before


async def test_a_search_for_files_names_none_outside_the_folder(
    place: Path, tmp_path: Path
) -> None:
    (place / "rootlink").unlink()  # the fake would follow it without an end
    for own in ("codex", "state"):  # of this Agent, inside the thread's folder
        (place / own).mkdir(exist_ok=True)
        (place / own / "file").write_bytes(OUTSIDE)
    runtime = FakeRuntime()
    runtime.add("thr", "t1", cwd=str(place))
    private = PrivateFolders(codex_home=place / "codex", state_dir=place / "state")
    (tmp_path / "agent").mkdir()
    async with open_house(tmp_path / "agent", runtime=runtime) as house:
        search = FileSearch(
            supervisor=house.door.supervisor,
            sight=house.door.sight,
            private=private,
            now_ms=lambda: 0,
        )
        params = FileSearchParams(thread_id="thr", query="file")
        caller = device("read", roots=(str(place),))
        assert (await search.search(caller, params)).paths == ["file", "sub/file"]
        seen = await FakeStore(runtime, emit=lambda _: None).find_files(
            "file", folder=str(place)
        )  # what was found and left out
        assert {"dirlink/file", "codex/file", "state/file"} <= {*seen.paths}


async def test_a_folder_swapped_for_a_link_while_it_is_searched_names_nothing(
    place: Path, tmp_path: Path
) -> None:
    def swap() -> None:
        place.rename(tmp_path / "old")
        place.symlink_to(tmp_path / "out")

    runtime = FakeRuntime()
    runtime.add("thr", "t1", cwd=str(place))
    (place / "rootlink").unlink()
    runtime.at("find_files", swap)
    (tmp_path / "agent").mkdir()
    async with open_house(tmp_path / "agent", runtime=runtime) as house:
        params = FileSearchParams(thread_id="thr", query="file")
        assert (await house.door.file_search.search(LOCAL, params)).paths == []


def mention(path: str) -> turns.TurnStartParams:
    return turns.TurnStartParams(
        thread_id="thr",
        input=[
            turns.TextInput(type="text", text="go on"),
            turns.MentionInput(type="mention", path=path),
        ],
        request_key="key-0123456789abcdef",
    )


async def test_82_a_mention_that_leads_out_starts_nothing_at_codex(
    place: Path, tmp_path: Path
) -> None:
    runtime = FakeRuntime()
    runtime.add("thr", "t1", cwd=str(place))
    with trio.fail_after(240):
        async with open_agent(tmp_path / "agent", runtime=runtime) as house:
            device = await pair_device(house, scopes=("read", "write"))
            async with open_client(house.target(device), client_info()) as client:
                for path in ("link", "dirlink/file", "..", "/etc/passwd", "fifo"):
                    with pytest.raises(InvalidParams):
                        await client.call(TURN_START, mention(path))
                assert runtime.writers == []
                await client.call(TURN_START, mention("sub/file"))
            (parts,) = runtime.writers[0].parts
            assert [getattr(part, "path", None) for part in parts] == [
                None,
                str(place / "sub" / "file"),
            ]


BAD_INPUTS: list[dict[str, Any]] = [
    {"type": "localImage", "path": "/etc/passwd"},
    {"type": "image", "path": "/etc/passwd"},
    {"type": "image", "url": "http://example.com/x.png"},
    {"type": "image", "blobId": "x", "path": "/etc/passwd"},
    {"type": "mention", "path": "file", "name": "x"},
    {"type": "skill", "name": "x", "path": "/x"},
    {"type": "localAudio", "path": "/x"},
]


@pytest.mark.parametrize("part", BAD_INPUTS, ids="-".join)
def test_no_client_can_make_an_input_of_codex_itself(part: dict[str, Any]) -> None:
    params = {"threadId": "t", "input": [part], "requestKey": "k" * 16}
    with pytest.raises(InvalidParams):
        read_params(turns.TurnStartParams, params)


async def test_80_a_revoked_device_s_uploads_are_gone_when_revoke_answers(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house, open_owner(house) as owner:
            device = await pair_device(house, scopes=("read", "write"))
            uploads = house.config.state_dir / "uploads"
            async with open_client(house.target(device), client_info()) as client:
                blob = await send_blob(client, png(), name="a")
                assert (uploads / device.id / blob).is_file()
                await client.call(
                    BLOB_BEGIN,
                    blobs.BlobBeginParams(
                        name="b", size=9, sha256="0" * 64, media_type="text/plain"
                    ),
                )
                revoke = admin.DeviceRevokeParams(device_id=device.id)
                await owner.call(DEVICE_REVOKE, revoke)
                assert not (uploads / device.id).exists()


async def test_a_device_without_write_sends_nothing_and_reads_nothing_of_others(
    tmp_path: Path,
) -> None:
    with trio.fail_after(240):
        async with open_agent(tmp_path) as house:
            writer = await pair_device(house, scopes=("read", "write"), name="w")
            reader = await pair_device(house, scopes=("read",), name="r")
            async with open_client(house.target(writer), client_info()) as client:
                blob = await send_blob(client, png(), name="a")
            async with open_client(house.target(reader), client_info()) as client:
                with pytest.raises(Forbidden):
                    await send_blob(client, png(), name="a")
                with pytest.raises(NotFound):
                    await fetch_blob(client, blob, most=1_000_000)
                chunk = blobs.BlobChunkParams(upload_id=blob, offset=0, content=b"x")
                with pytest.raises(Forbidden):
                    await client.call(BLOB_CHUNK, chunk)
                with pytest.raises(Forbidden):
                    await client.call(
                        BLOB_COMMIT, blobs.BlobCommitParams(upload_id=blob)
                    )
                for odd in ("../ledger.sqlite", "/etc/passwd", "img_" + "0" * 32, "x"):
                    with pytest.raises(NotFound):
                        await client.call(BLOB_READ, blobs.BlobReadParams(blob_id=odd))
