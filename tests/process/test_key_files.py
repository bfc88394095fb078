"""Key files on a real file system. SECURITY.md; 03 section 6, cases 70 and 71 in part."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from transport.keys import (
    KeyFileError,
    load_identity,
    open_private_folder,
    read_secret_file,
    write_secret_file,
)
from transport.limits import KEY_FILE

KEY = bytes(range(32))
NOBODY = 65_534


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "state"
    path.mkdir(mode=0o700)
    return path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_written_is_read_and_open_to_nobody_else(folder: Path) -> None:
    path = folder / "key"
    umask = os.umask(0)
    try:
        write_secret_file(path, KEY)
    finally:
        os.umask(umask)
    assert read_secret_file(path) == KEY
    assert mode(path) == 0o600


def test_a_missing_folder_is_made_for_us_alone(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "key"
    umask = os.umask(0)
    try:
        write_secret_file(path, KEY)
    finally:
        os.umask(umask)
    assert mode(path.parent) == 0o700
    assert mode(path.parent.parent) == 0o700  # the state folder, when `client/` is ours


def test_writing_replaces_the_whole_file(folder: Path) -> None:
    write_secret_file(folder / "key", b"a long old value")
    write_secret_file(folder / "key", b"new")
    assert read_secret_file(folder / "key") == b"new"
    assert [path.name for path in folder.iterdir()] == ["key"]


def test_a_full_disk_leaves_the_old_file_and_no_litter(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    write_secret_file(folder / "key", KEY)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="space"):
        write_secret_file(folder / "key", b"new")
    assert read_secret_file(folder / "key") == KEY
    assert [path.name for path in folder.iterdir()] == ["key"]


def test_without_a_descriptor_for_the_folder_the_old_file_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a device would be stored, or hold rights, though its owner was told no."""
    true_open = os.open

    def starved(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_DIRECTORY:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return true_open(path, flags, mode)

    write_secret_file(folder / "key", KEY)
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", starved)
        with pytest.raises(OSError, match="Too many open files"):
            write_secret_file(folder / "key", b"new")
    assert read_secret_file(folder / "key") == KEY
    assert [path.name for path in folder.iterdir()] == ["key"]


def test_a_key_that_cannot_be_opened_just_now_is_not_to_be_removed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def starved(_path: Path, _flags: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    write_secret_file(folder / "key", KEY)
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", starved)
        with pytest.raises(KeyFileError, match="Too many open files") as caught:
            read_secret_file(folder / "key")
    assert "Remove" not in str(caught.value)


def make_link(path: Path) -> None:
    target = path.with_name("target")
    write_secret_file(target, KEY)
    path.symlink_to(target)


def make_hard_link(path: Path) -> None:
    write_secret_file(path, KEY)
    path.with_name("second").hardlink_to(path)


def make_fifo(path: Path) -> None:
    os.mkfifo(path, 0o600)


def make_folder(path: Path) -> None:
    path.mkdir(mode=0o700)


def make_foreign(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a file of another user")
    write_secret_file(path, KEY)
    os.chown(path, NOBODY, NOBODY)


def make_open(bits: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        write_secret_file(path, KEY)
        path.chmod(bits)

    return make


MAKERS: dict[str, tuple[Callable[[Path], None], str]] = {
    "0644": (make_open(0o644), "chmod 600"),
    "0640": (make_open(0o640), "chmod 600"),
    "0604": (make_open(0o604), "chmod 600"),
    "0660": (make_open(0o660), "chmod 600"),
    "0620": (make_open(0o620), "chmod 600"),
    "a symlink": (make_link, "symbolic link"),
    "a hard link": (make_hard_link, "hard link"),
    "a fifo": (make_fifo, "not a regular file"),
    "a folder": (make_folder, "not a regular file"),
    "another user's": (make_foreign, "another user"),
}


@pytest.mark.parametrize(("make", "hint"), MAKERS.values(), ids=MAKERS.keys())
def test_a_key_that_others_could_have_is_refused_with_what_to_do(
    folder: Path, make: Callable[[Path], None], hint: str
) -> None:
    """Case 70."""
    path = folder / "identity.key"
    make(path)
    with pytest.raises(KeyFileError, match=hint) as caught:
        load_identity(path, create=True)
    assert str(path) in str(caught.value)


def test_no_descriptor_is_left_open_by_a_refusal(folder: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    for number, (make, _) in enumerate(MAKERS.values()):
        room = folder / str(number)
        room.mkdir(mode=0o700)
        if make is make_foreign:
            continue
        make(room / "key")
        with pytest.raises(KeyFileError):
            read_secret_file(room / "key")
    assert set(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("bits", [0o755, 0o750, 0o711, 0o777])
def test_a_folder_that_others_can_enter_is_refused(folder: Path, bits: int) -> None:
    """Case 70."""
    write_secret_file(folder / "key", KEY)
    folder.chmod(bits)
    for act in (
        lambda: read_secret_file(folder / "key"),
        lambda: write_secret_file(folder / "key", b"new"),
        lambda: open_private_folder(folder),
    ):
        with pytest.raises(KeyFileError, match="chmod 700"):
            act()
    folder.chmod(0o700)
    assert read_secret_file(folder / "key") == KEY


def test_a_folder_that_is_a_link_is_refused(folder: Path, tmp_path: Path) -> None:
    """Case 70."""
    link = tmp_path / "link"
    link.symlink_to(folder)
    write_secret_file(folder / "key", KEY)
    with pytest.raises(KeyFileError, match="not a folder"):
        read_secret_file(link / "key")


@pytest.mark.parametrize("size", [0, 31, 33, 1_000])
def test_a_key_of_a_wrong_length_is_refused_and_not_replaced(
    folder: Path, size: int
) -> None:
    """Case 70."""
    write_secret_file(folder / "key", bytes(size))
    with pytest.raises(KeyFileError, match=f"{size} bytes"):
        load_identity(folder / "key", create=True)
    assert read_secret_file(folder / "key") == bytes(size)


def test_an_endless_file_is_not_read_to_its_end(folder: Path) -> None:
    with (folder / "key").open("wb") as file:
        file.truncate(2**40)
    (folder / "key").chmod(0o600)
    with pytest.raises(KeyFileError, match="larger"):
        read_secret_file(folder / "key")


def test_an_identity_is_made_once(folder: Path) -> None:
    first = load_identity(folder / "identity.key", create=True)
    again = load_identity(folder / "identity.key", create=False)
    assert first.public == again.public
    assert load_identity(folder / "identity.key", create=True).public == first.public


def test_a_lost_identity_is_not_made_anew_where_devices_know_it(folder: Path) -> None:
    """Case 71, as far as the key file goes."""
    with pytest.raises(KeyFileError, match="missing"):
        load_identity(folder / "identity.key", create=False)
    assert not list(folder.iterdir())


def test_a_missing_file_is_told_apart_from_a_bad_one(folder: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_secret_file(folder / "none")
    with pytest.raises(FileNotFoundError):
        read_secret_file(folder / "none" / "none")


def test_no_error_shows_what_the_file_holds(folder: Path) -> None:
    write_secret_file(folder / "key", b"canary" * 6)
    with pytest.raises(KeyFileError) as caught:
        load_identity(folder / "key", create=True)
    assert "canary" not in repr(caught.value)


def test_a_key_file_is_read_up_to_a_bound(folder: Path) -> None:
    path = folder / "devices.json"
    write_secret_file(path, b"x" * KEY_FILE)
    assert len(read_secret_file(path)) == KEY_FILE
    write_secret_file(path, b"x" * (KEY_FILE + 1))
    with pytest.raises(KeyFileError, match="larger than"):
        read_secret_file(path)
