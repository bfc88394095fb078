"""The Codex runtime: joins reader and writers on one CODEX_HOME. Trio shell.

PROTOCOL.md section 3. Implements `adapter/runtime/runtime.py`.
"""

import logging
import os
import secrets
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import trio

from adapter.errors import BinaryNotFoundError, CodexGoneError
from adapter.limits import APPROVAL_MS, NOTICES_SAID, OWN_RELEASE_S
from adapter.processes.binary import Codex
from adapter.runtime.acts import Guard
from adapter.runtime.events import Emit, Emitted, RuntimeEvent
from adapter.runtime.program import RuntimeInfo
from adapter.runtime.reader import Reader
from adapter.runtime.runtime import Runtime
from adapter.runtime.writer import ThreadWriter
from adapter.servers.app_server import open_app_server
from adapter.servers.one_program import OneProgram
from adapter.servers.reader import CodexReader
from adapter.servers.setup import Setup
from adapter.servers.writer import CodexWriter
from transport.background import open_background
from transport.protocol.events import Notice

_LOG: Final = logging.getLogger(__name__)
CONFIG_WARNING: Final = "configWarning"


def _timers_ms() -> int:
    return round(trio.current_time() * 1_000)


class CodexRuntime(Runtime):
    """App-servers of one codex on one CODEX_HOME."""

    def __init__(
        self,
        *,
        codex: Codex,
        home: Path | None,
        records: Path,
        now_ms: Callable[[], int],
        up_ms: Callable[[], int] = _timers_ms,
        find: Callable[[], Codex] | None = None,
        approval_ms: int = APPROVAL_MS,
        config: Sequence[str] = (),
    ) -> None:
        """`home`: the CODEX_HOME, `None`: what the environment says. `records`: a
        folder of ours for {pid, start time, argv}. `config`: `-c` settings. `now_ms`:
        the wall clock; `up_ms`: the clock of deadlines, which a sleep should not stop.
        `find`: looks for codex again where an update has moved it; may block."""
        environ = dict(os.environ)
        if home is not None:
            environ["CODEX_HOME"] = str(home)
        self._setup = Setup(
            codex=codex,
            environ=environ,
            records=records,
            config=config,
            now_ms=now_ms,
            up_ms=up_ms,
            mint=mint_approval_id,
            approval_ms=approval_ms,
        )
        self._find = find
        self._looking = trio.Lock()
        self._program = OneProgram()
        self._pids: set[int] = set()
        self._released: dict[str, float] = {}
        self._warned: set[str] = set()

    def writer_programs(self) -> Collection[RuntimeInfo]:
        """Return what our writers that live now are."""
        return self._program.writers

    def own_pids(self) -> set[int]:
        """Return the app-servers of ours that live now."""
        return set(self._pids)

    @asynccontextmanager
    async def open_reader(self, emit: Emit) -> AsyncGenerator[Reader]:
        """Start the reader; it is the first of our processes, always."""
        await self._find_again()
        async with open_app_server(
            self._setup, self._once(emit), name="codex reader", pids=self._pids
        ) as server:
            reader = CodexReader(server)
            async with (
                open_background(reader.serve_scans),
                self._program.read_by(server.info),
            ):
                yield reader

    @asynccontextmanager
    async def open_writer(
        self, emit: Emit, *, guard: Guard
    ) -> AsyncGenerator[ThreadWriter]:
        """Start a writer.

        Raises: ReaderFirstError, CodexGoneError, what `guard` raises: nothing was
        started. CodexChangedError: it was no more than started.
        """
        self._program.check_read()
        await self._find_again()
        writer: CodexWriter | None = None
        try:
            async with open_app_server(
                self._setup,
                self._once(emit),
                name="codex writer",
                pids=self._pids,
                guard=guard,
            ) as server:
                writer = CodexWriter(server, released_lately=self._released_lately)
                with self._program.written_by(server.info):
                    async with open_background(writer.watch_shell):
                        yield writer
        finally:
            if writer is not None and writer.thread_id is not None:
                self._note_release(writer.thread_id)

    async def _find_again(self) -> None:
        """Follow codex where an update has moved it (its versioned folder is gone).

        Raises: CodexGoneError.
        """
        async with self._looking:
            lost = self._setup.codex.path
            if self._find is None or lost.is_file():
                return
            try:
                codex = await trio.to_thread.run_sync(self._find)
            except BinaryNotFoundError as exc:
                raise CodexGoneError(f"{lost} is not there any more. {exc}") from exc
            _LOG.warning("codex has moved from %s to %s", lost, codex.path)
            self._setup = replace(self._setup, codex=codex)

    def _once(self, emit: Emit) -> Emit:
        """Tell a warning about the configuration once, not by each process anew."""

        def tell(event: RuntimeEvent) -> None:
            data = event.data if isinstance(event, Emitted) else None
            if isinstance(data, Notice) and data.code == CONFIG_WARNING:
                if data.message in self._warned:
                    return
                if len(self._warned) < NOTICES_SAID:
                    self._warned.add(data.message)
            emit(event)

        return tell

    def _note_release(self, thread_id: str) -> None:
        now = trio.current_time()
        self._released = {
            known: at
            for known, at in self._released.items()
            if now - at <= OWN_RELEASE_S
        }
        self._released[thread_id] = now

    def _released_lately(self, thread_id: str) -> bool:
        at = self._released.get(thread_id)
        return at is not None and trio.current_time() - at <= OWN_RELEASE_S


def mint_approval_id() -> str:
    """Return a fresh opaque id with 128 random bits."""
    return f"apr_{secrets.token_hex(16)}"
