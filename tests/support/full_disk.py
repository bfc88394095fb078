"""A disk that takes nothing more: no byte of this process's files, by the kernel's word."""

import resource
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def full_disk() -> Generator[None]:
    """Let every write to a file fail for the length of the block.

    Files can be opened, made, renamed, removed and read, as on a full disk. Sockets and
    pipes are no files. Print nothing inside: that goes to a file of pytest's.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
