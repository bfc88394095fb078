"""A small disk of its own for a program: `python -m tests.support.small_disk DIR SIZE CMD…`.

Mounts a tmpfs on DIR in a mount namespace that nobody else sees, and runs CMD there.
Each line on DIR.orders fills the disk to its last byte (`fill`) or frees it (`free`);
DIR.done gets a line for each. Needs Linux and root.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from pathlib import Path

FILLER = "filler"
PDEATHSIG = 1  # linux/prctl.h: this program ends with the command
# In a user namespace the Agent could not tell other people's codex from the owner's.
UNSHARE = ["unshare", "--mount"]


def is_offered() -> bool:
    """Whether such a disk can be had here."""
    trial = [*UNSHARE, "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/mnt"]
    try:
        return subprocess.run(trial, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def before(folder: Path, size: str) -> list[str]:
    """Return what to put before a command."""
    for name in (orders(folder), done(folder)):
        os.mkfifo(name, 0o600)
    return [*UNSHARE, sys.executable, "-m", __name__, str(folder), size]


def orders(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.orders")


def done(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.done")


def order(folder: Path, word: str) -> None:
    """Fill or free the disk; done when this returns."""
    with orders(folder).open("w") as line:
        line.write(f"{word}\n")
    with done(folder).open() as line:
        line.readline()


def _obey(folder: Path, word: str) -> None:
    filler = folder / FILLER
    if word == "free":
        filler.unlink()
        return
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4_096)


def main() -> None:
    """Mount, then obey in the background of the command."""
    folder, size = Path(sys.argv[1]), sys.argv[2]
    mode = f"size={size},mode=700"
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", mode, "tmpfs", str(folder)], check=True
    )
    if os.fork():
        os.execvp(sys.argv[3], sys.argv[3:])  # noqa: S606 - the very command we were given
    ctypes.CDLL(None).prctl(PDEATHSIG, signal.SIGKILL)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    while True:
        with orders(folder).open() as line:
            _obey(folder, line.readline().strip())
        with done(folder).open("w") as line:
            line.write("done\n")


if __name__ == "__main__":
    main()
