"""Reader and writers are one program on one home, also where it is updated. Trio shell.

PROTOCOL.md section 3 (Reader and writers). The gate is judged by what the reader says: a
writer that is another version may take no locks where the reader would, or read a thread
in another way. So it is not used, and the reader is started anew.
"""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import trio

from adapter.errors import CodexChangedError, ReaderFirstError
from adapter.runtime.program import RuntimeInfo
from transport.background import open_background


class OneProgram:
    """What the app-servers of one runtime say they are."""

    def __init__(self) -> None:
        self._reader: RuntimeInfo | None = None
        self._differs = trio.Event()
        self._writers: dict[int, RuntimeInfo] = {}

    @property
    def writers(self) -> tuple[RuntimeInfo, ...]:
        """What the writers that live now are."""
        return tuple(self._writers.values())

    @asynccontextmanager
    async def read_by(self, info: RuntimeInfo) -> AsyncGenerator[None]:
        """Be the reader of the block; CodexChangedError leaves it where a writer differs."""
        self._reader, self._differs = info, trio.Event()
        try:
            async with open_background(self._until_it_differs):
                yield
        finally:
            self._reader = None

    async def _until_it_differs(self, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        await self._differs.wait()
        raise CodexChangedError

    def check_read(self) -> None:
        """Raise ReaderFirstError where no reader is initialized."""
        if self._reader is None:
            raise ReaderFirstError("a writer needs the reader to be initialized first")

    @contextmanager
    def written_by(self, info: RuntimeInfo) -> Generator[None]:
        """Be a writer for the block.

        Raises: ReaderFirstError, CodexChangedError: it must not be used.
        """
        self._writers[info.pid] = info
        try:
            self.check_read()
            if self._reader is not None and not info.agrees_with(self._reader):
                self._differs.set()
                raise CodexChangedError
            yield
        finally:
            del self._writers[info.pid]
