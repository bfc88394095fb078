"""Waiting for a child's exit without reaping it. Trio shell.

Not reaped, its pid stays its own: its group can be signalled without hitting another.
What is needed to wait is there from the start, so that waiting cannot fail.
"""

import os
import select
import sys

import trio

if sys.platform == "darwin":

    class ExitWatch:
        """Tells when a child has ended; it is left a zombie. Not run on a Mac yet."""

        def __init__(self, pid: int) -> None:
            self._pid = pid

        def close(self) -> None:
            """Nothing is held."""

        async def wait(self) -> None:
            """Return when the child has ended."""
            queue = trio.lowlevel.current_kqueue()
            pid, kind, note = self._pid, select.KQ_FILTER_PROC, select.KQ_NOTE_EXIT

            def change(flags: int) -> None:
                queue.control([select.kevent(pid, kind, flags, note)], 0)

            def abort(_: object) -> trio.lowlevel.Abort:
                change(select.KQ_EV_DELETE)
                return trio.lowlevel.Abort.SUCCEEDED

            try:
                change(select.KQ_EV_ADD | select.KQ_EV_ONESHOT)
            except ProcessLookupError:  # it is just ending
                await trio.lowlevel.checkpoint()
                return
            await trio.lowlevel.wait_kevent(pid, select.KQ_FILTER_PROC, abort)

else:

    class ExitWatch:
        """Tells when a child has ended; it is left a zombie. Closed by `close`."""

        def __init__(self, pid: int) -> None:
            """Raises: OSError: no descriptor is left."""
            self._fd = os.pidfd_open(pid)

        def close(self) -> None:
            """Let go of it."""
            os.close(self._fd)

        async def wait(self) -> None:
            """Return when the child has ended."""
            await trio.lowlevel.wait_readable(self._fd)
