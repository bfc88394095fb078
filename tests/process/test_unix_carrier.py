"""Real Unix sockets: who may come in, and where they lie."""

import os
import socket
import stat
import struct
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
import trio

from transport.carriers import unix
from transport.carriers.unix import uid_of_xucred
from transport.errors import KeyFileError, UnreachableError

NOBODY = 65_534
STRANGER = """
import os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
sock = socket.socket(socket.AF_UNIX)
try:
    sock.connect(sys.argv[1])
except PermissionError:
    print("kept out"); sys.exit()
print("let in" if sock.recv(1) else "hung up on")
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    return folder / "agent.sock"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_bytes_go_both_ways_between_processes_of_one_user(place: Path) -> None:
    with trio.fail_after(240):
        (listener,) = await unix.listen(place)
        async with listener:
            client = await unix.connect(place)
            agent = await listener.accept()
            assert unix.peer_uid(agent) == unix.peer_uid(client) == os.geteuid()
            await client.send_all(b"there")
            assert await agent.receive_some() == b"there"
            await agent.send_all(b"back")
            assert await client.receive_some() == b"back"
            await client.aclose()
            await agent.aclose()


async def test_the_socket_and_its_folder_are_closed_to_others(tmp_path: Path) -> None:
    place = tmp_path / "new" / "agent.sock"
    with trio.fail_after(240):
        (listener,) = await unix.listen(place)
        async with listener:
            assert mode(place.parent) == 0o700
            assert mode(place) == 0o600


async def test_the_socket_is_gone_after_closing(place: Path) -> None:
    with trio.fail_after(240):
        (listener,) = await unix.listen(place)
        await listener.aclose()
        assert not place.exists()
        with pytest.raises(UnreachableError):
            await unix.connect(place)


async def test_closing_leaves_a_socket_that_another_made(place: Path) -> None:
    with trio.fail_after(240):
        (first,) = await unix.listen(place)
        place.unlink()
        (second,) = await unix.listen(place)
        async with second:
            await first.aclose()
            await (await unix.connect(place)).aclose()


async def test_what_a_dead_process_left_is_replaced(place: Path) -> None:
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(place))
    dead.close()
    assert place.exists()
    with trio.fail_after(240):
        (listener,) = await unix.listen(place)
        async with listener:
            await (await unix.connect(place)).aclose()


async def test_a_living_agents_socket_is_left_alone(place: Path) -> None:
    with trio.fail_after(240):
        (listener,) = await unix.listen(place)
        async with listener:
            with pytest.raises(OSError, match="another Agent"):
                await unix.listen(place)
            await (await unix.connect(place)).aclose()


@pytest.mark.parametrize("kind", ["symlink", "dangling symlink", "file", "folder"])
async def test_a_path_that_is_no_socket_is_refused_and_left(
    place: Path, kind: str
) -> None:
    """Case 76: the path was made beforehand."""
    target = place.with_name("target")
    if kind == "file":
        place.write_text("precious")
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to(target)
    sock = socket.socket(socket.AF_UNIX)
    if kind == "symlink":
        sock.bind(str(target))
    with (
        trio.fail_after(240),
        pytest.raises(KeyFileError, match="not a socket of yours"),
    ):
        await unix.listen(place)
    sock.close()
    assert place.is_symlink() or place.exists()


@pytest.mark.parametrize("bits", [0o755, 0o770, 0o777])
async def test_a_folder_that_others_can_enter_is_refused(
    place: Path, bits: int
) -> None:
    """Case 76: the folder was made beforehand."""
    place.parent.chmod(bits)
    with trio.fail_after(240), pytest.raises(KeyFileError, match="chmod 700"):
        await unix.listen(place)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can play another user")
async def test_a_folder_or_socket_of_another_user_is_refused(place: Path) -> None:
    """Case 76: by another user."""
    with trio.fail_after(240):
        os.chown(place.parent, NOBODY, NOBODY)
        with pytest.raises(KeyFileError, match="another user"):
            await unix.listen(place)
        os.chown(place.parent, 0, 0)
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(str(place))
        os.chown(place, NOBODY, NOBODY)
        with pytest.raises(KeyFileError, match="not a socket of yours"):
            await unix.listen(place)
        sock.close()


@pytest.fixture
def open_place() -> Path:
    """A socket path that other users can reach once its modes are opened."""
    folder = Path(f"/tmp/threadgate-test-{uuid4().hex[:12]}")  # noqa: S108 - on purpose
    return folder / "agent.sock"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can play another user")
async def test_another_user_is_hung_up_on_even_where_the_modes_let_him_in(
    open_place: Path,
) -> None:
    """Case 75."""

    async def stranger() -> str:
        argv = ["/usr/bin/env", "-i", sys.executable, "-I", "-S", "-c", STRANGER]
        argv.append(str(open_place))
        done = await trio.run_process(argv, capture_stdout=True, check=False)
        return done.stdout.decode().strip()

    with trio.fail_after(240):
        (listener,) = await unix.listen(open_place)
        try:
            async with listener, trio.open_nursery() as nursery:
                accepted: list[trio.SocketStream] = []

                async def accept() -> None:
                    stream = await listener.accept()
                    accepted.append(stream)
                    await stream.send_all(b"x")

                nursery.start_soon(accept)
                assert await stranger() == "kept out"
                open_place.parent.chmod(0o777)
                open_place.chmod(0o777)
                assert await stranger() == "hung up on"
                assert not accepted
                mine = await unix.connect(open_place)
                assert await mine.receive_some() == b"x"
                await mine.aclose()
                await accepted[0].aclose()
        finally:
            open_place.unlink(missing_ok=True)
            open_place.parent.rmdir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can play another user")
async def test_a_client_does_not_talk_to_another_users_socket(open_place: Path) -> None:
    server = (
        "import os, socket, sys\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "sock = socket.socket(socket.AF_UNIX); sock.bind(sys.argv[1]); sock.listen()\n"
        "print('ready', flush=True); sys.stdin.read()\n"
    )
    open_place.parent.mkdir(mode=0o700)
    open_place.parent.chmod(0o777)
    argv = ["/usr/bin/env", "-i", sys.executable, "-I", "-S", "-c", server]
    argv.append(str(open_place))
    try:
        with trio.fail_after(240):
            async with trio.open_nursery() as nursery:
                child: trio.Process = await nursery.start(
                    partial(
                        trio.run_process,
                        argv,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        check=False,
                    )
                )
                assert child.stdout is not None
                assert child.stdin is not None
                assert await child.stdout.receive_some() == b"ready\n"
                with pytest.raises(UnreachableError, match="another user"):
                    await unix.connect(open_place)
                await child.stdin.aclose()
    finally:
        open_place.unlink(missing_ok=True)
        open_place.parent.rmdir()


async def test_a_path_that_is_too_long_gets_a_short_one_on_both_ends(
    tmp_path: Path,
) -> None:
    long = tmp_path / ("d" * 120) / "agent.sock"
    short = unix.socket_path(long)
    assert len(os.fsencode(short)) < 100
    assert short != unix.socket_path(long.with_name("admin.sock"))
    assert unix.socket_path(tmp_path / "a.sock") == tmp_path / "a.sock"
    with trio.fail_after(240):
        (listener,) = await unix.listen(long)
        async with listener:
            assert listener.path == short
            assert mode(short.parent) == 0o700
            client = await unix.connect(long)
            agent = await listener.accept()
            await client.aclose()
            await agent.aclose()
    assert not short.exists()
    with suppress(OSError):  # another Agent of this user may have one there
        short.parent.rmdir()


async def test_a_full_backlog_is_no_connection(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unix, "_BACKLOG", 0)
    with trio.fail_after(240):
        (listener,) = await unix.listen(place)
        async with listener:
            streams: list[trio.SocketStream] = []
            with pytest.raises(UnreachableError, match=r"too many|nobody"):
                for _ in range(20):
                    streams.append(await unix.connect(place))  # noqa: PERF401
            for stream in streams:
                await stream.aclose()


async def test_nobody_listening_is_said_with_the_path(place: Path) -> None:
    with trio.fail_after(240), pytest.raises(UnreachableError, match=str(place)):
        await unix.connect(place)


@pytest.mark.parametrize(
    ("raw", "uid"),
    [
        (struct.pack("=IIh2x16I", 0, 501, 1, *[20] * 16), 501),
        (struct.pack("=II", 0, 0), 0),
        (struct.pack("=II", 1, 501), -1),
        (b"\0\0\0\0", -1),
        (b"", -1),
    ],
    ids=["a user", "root", "another version", "cut", "nothing"],
)
def test_what_macos_says_of_a_peer_is_read_or_trusted_to_nobody(
    raw: bytes, uid: int
) -> None:
    assert uid_of_xucred(raw) == uid


async def test_who_finds_the_socket_there_gets_in(place: Path) -> None:
    async def come_as_soon_as_it_is_there() -> None:
        while not place.exists():
            await trio.lowlevel.checkpoint()
        await (await unix.connect(place)).aclose()

    with trio.fail_after(240):
        for _ in range(20):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(come_as_soon_as_it_is_there)
                (listener,) = await unix.listen(place)
            await listener.aclose()
