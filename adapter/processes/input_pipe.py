"""The write end of a child's input: never waits unless asked to. Trio shell.

Lines are written by plain calls, so that a last look and the first byte have no checkpoint
between them.
"""

import os
from contextlib import suppress
from typing import IO

import trio


class InputPipe:
    """Owns `pipe`. Whoever reads it is told its end by `close_input`."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        os.set_blocking(pipe.fileno(), False)

    def write_now(self, data: bytes | memoryview) -> int:
        """Write what fits without waiting; 0 when the pipe is full.

        Raises: trio.BrokenResourceError: the child takes no input any more.
        """
        if self._pipe.closed:
            raise trio.BrokenResourceError
        try:
            return os.write(self._pipe.fileno(), data)
        except BlockingIOError:
            return 0
        except OSError as exc:
            raise trio.BrokenResourceError from exc

    async def wait_writable(self) -> None:
        """Return when `write_now` may write. Raises: trio.BrokenResourceError."""
        try:
            await trio.lowlevel.wait_writable(self._pipe.fileno())
        except (ValueError, trio.ClosedResourceError) as exc:
            raise trio.BrokenResourceError from exc

    def close_input(self) -> None:
        """Say the end of input; the child then ends by itself."""
        if not self._pipe.closed:
            trio.lowlevel.notify_closing(self._pipe.fileno())
            with suppress(OSError):
                self._pipe.close()
