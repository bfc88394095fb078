"""The seam: what every runtime offers the Agent, in v2 vocabulary. Sans-IO (protocols).

One *reader* that never loads a thread, and a *writer* for each thread that we write to
(PROTOCOL.md section 3). Both tell what happens as `events`, by a plain call.
"""

from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from adapter.runtime.acts import Guard
from adapter.runtime.events import Emit
from adapter.runtime.program import RuntimeInfo
from adapter.runtime.reader import Reader
from adapter.runtime.writer import ThreadWriter


class Runtime(Protocol):
    """One kind of coding agent. Leaving a block ends its process, reaped."""

    def open_reader(self, emit: Emit) -> AbstractAsyncContextManager[Reader]:
        """Start the reader; inside, it is initialized. A dead reader leaves the block
        with `ChildExitedError`, one that a writer differs from with `CodexChangedError`.
        """
        ...

    def open_writer(
        self, emit: Emit, *, guard: Guard
    ) -> AbstractAsyncContextManager[ThreadWriter]:
        """Start a writer; inside, it is initialized, the same program as the reader
        (else `CodexChangedError`), and nothing is loaded. When it dies
        it has closed what was open (items, turn, approvals) and the block is left with
        `ChildExitedError`."""
        ...

    def writer_programs(self) -> Collection[RuntimeInfo]:
        """Return what our writers that live now are: an update may have come since."""
        ...

    def own_pids(self) -> set[int]:
        """Return our app-servers that live now: they are no foreign writers."""
        ...
