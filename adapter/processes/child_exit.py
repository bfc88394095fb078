"""Waiting for a child's exit without reaping it. Trio shell.

Not reaped, its pid stays its own: its group can be signalled without hitting another.
What is needed to wait is held from the start, so that waiting cannot fail.
"""

import os
import select
import sys

import trio

if sys.platform == "darwin":

    def hold_exit(pid: int) -> int | None:
        """Return what `wait_exit` needs: nothing."""
        return None

    async def wait_exit(pid: int, held: int | None) -> None:
        """Return when this child has ended; it is left a zombie. Not run on a Mac yet."""
        queue = trio.lowlevel.current_kqueue()

        def change(flags: int) -> None:
            kind, note = select.KQ_FILTER_PROC, select.KQ_NOTE_EXIT
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

    def hold_exit(pid: int) -> int | None:
        """Return what `wait_exit` needs. Raises: OSError: no descriptor is left."""
        return os.pidfd_open(pid)

    async def wait_exit(pid: int, held: int | None) -> None:
        """Return when this child has ended; it is left a zombie, and `held` is closed."""
        assert held is not None, pid
        try:
            await trio.lowlevel.wait_readable(held)
        finally:
            os.close(held)
