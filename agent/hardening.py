"""What this process may have, and what others may see of it. Blocking I/O. SECURITY.md.

Keys stay out of other processes' and the disk's reach. Descriptors: macOS and launchd
give 256, which is less than 256 sessions need.
"""

import ctypes
import logging
import resource
import sys
from typing import Final

from agent.edge_limits import DESCRIPTORS

_LOG: Final = logging.getLogger(__name__)
_PR_SET_DUMPABLE: Final = 4  # linux/prctl.h


def harden_process() -> None:
    """No core file of this process, and no peeking into its memory by its own user.

    On macOS only the former: there the system itself asks who may debug another process
    (taskgated), and PT_DENY_ATTACH would end an Agent that somebody debugs on purpose.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        _hide()


def raise_descriptors() -> None:
    """Let this process open `DESCRIPTORS` files, where it may, and never fewer than now.

    No more than that: codex and all that it runs inherit the limit, and there is no step
    between fork and exec in which they could get the old one back. A program that uses
    select() writes past its tables from 1,024 on; so many Linux gives by itself.
    """
    soft, hard = _descriptors()
    wanted = min(hard, DESCRIPTORS)
    if wanted <= soft:
        return
    hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard_limit))
    except (OSError, ValueError) as exc:
        _LOG.warning("the system allows no more than %d open files (%s)", soft, exc)


def descriptors() -> int:
    """Return how many descriptors this process may have."""
    return _descriptors()[0]


def _descriptors() -> tuple[int, int]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (
        sys.maxsize if one == resource.RLIM_INFINITY else one for one in limits
    )
    return soft, hard


def _hide() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        _LOG.warning("the kernel did not take PR_SET_DUMPABLE 0")
