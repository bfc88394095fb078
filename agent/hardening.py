"""What keeps keys out of other processes' and the disk's reach. Blocking I/O. SECURITY.md."""

import ctypes
import logging
import resource
import sys
from typing import Final

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


def _hide() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        _LOG.warning("the kernel did not take PR_SET_DUMPABLE 0")
