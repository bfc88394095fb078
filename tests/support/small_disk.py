"""A small disk that nobody else sees, which can be filled to its last byte.

A tmpfs in a mount namespace of its own. What shall see it is run in there (`before`); it
stays until the block is left, whoever of these ends. Needs Linux and root.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_FILLER: Final = "filler"
_PDEATHSIG: Final = 1  # linux/prctl.h
# In a user namespace the Agent could not tell other people's codex from the owner's.
_UNSHARE: Final = ["unshare", "--mount"]


def is_offered() -> bool:
    """Whether such a disk can be had here."""
    trial = [*_UNSHARE, "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/mnt"]
    try:
        return subprocess.run(trial, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class SmallDisk:
    """A disk on a folder. `before`: what to put before a command that shall see it."""

    before: list[str]
    _keeper: subprocess.Popen[str]  # noqa: TID251 - ends with the block

    def fill(self) -> None:
        """Take all the room that is left; done when this returns."""
        self._order("fill")

    def free(self) -> None:
        """Give it back."""
        self._order("free")

    def _order(self, word: str) -> None:
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        self._keeper.stdin.write(f"{word}\n")
        self._keeper.stdin.flush()
        assert self._keeper.stdout.readline() == "done\n"


@contextmanager
def open_small_disk(folder: Path, size: str) -> Generator[SmallDisk]:
    """Mount a disk of this size (as in `4m`) on a folder, for the length of the block."""
    command = [*_UNSHARE, sys.executable, "-m", __name__, str(folder), size]
    with subprocess.Popen(  # noqa: TID251 - ends with the block
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as keeper:
        assert keeper.stdout is not None
        assert keeper.stdout.readline() == "done\n"
        space = f"--mount=/proc/{keeper.pid}/ns/mnt"
        try:
            yield SmallDisk(["nsenter", space, f"--wdns={Path.cwd()}"], keeper)
        finally:
            keeper.kill()


def _obey(folder: Path, word: str) -> None:
    filler = folder / _FILLER
    if word == "free":
        filler.unlink()
        return
    with filler.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4_096)


def main() -> None:
    """Mount, and obey until the input ends."""
    folder, size = Path(sys.argv[1]), sys.argv[2]
    ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
    mode = f"size={size},mode=700,uid={os.getuid()}"
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", mode, "tmpfs", str(folder)], check=True
    )
    print("done", flush=True)
    for line in sys.stdin:
        _obey(folder, line.strip())
        print("done", flush=True)


if __name__ == "__main__":
    main()
