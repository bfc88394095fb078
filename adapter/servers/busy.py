"""Whether ending a writer now would cut something short. Trio shell.

PROTOCOL.md section 3 (Lease): a thread is given back when nothing of it goes on.
"""

from collections.abc import Generator
from contextlib import contextmanager

import trio

from adapter.limits import SHELL_LOOK_S, SHELL_WAIT_S
from adapter.servers.app_server import AppServer


class Busy:
    """What goes on in one app-server: Codex's work, our acts, its login shell."""

    def __init__(self, server: AppServer) -> None:
        self._server = server
        self._acts = 0
        self._loaded = trio.Event()
        self._shell_runs = False

    @property
    def now(self) -> bool:
        """Whether anything goes on."""
        server = self._server
        if server.gone:
            return False
        return (
            self._acts > 0
            or self._shell_runs
            or server.peer.in_flight > 0
            or self.at_work
        )

    @property
    def at_work(self) -> bool:
        """Whether anything of the thread or its sub-agents runs, or waits for an answer."""
        server = self._server
        return server.normalizer.busy or bool(server.ledger.pending())

    @contextmanager
    def acting(self) -> Generator[None]:
        """Be busy for the length of the block."""
        self._acts += 1
        self._server.tell()
        try:
            yield
        finally:
            self._acts -= 1
            self._server.tell()

    def note_loaded(self) -> None:
        """A thread is loaded: with the first one Codex starts a login shell."""
        self._shell_runs = not self._loaded.is_set()
        self._loaded.set()

    async def watch_shell(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Be busy while the login shell runs that loading a thread started (≤ 10 s)."""
        task_status.started()
        await self._loaded.wait()
        with trio.move_on_after(SHELL_WAIT_S):
            # Nothing tells when a grandchild ends.
            while self._server.child.shells_alive():  # noqa: ASYNC110
                await trio.sleep(SHELL_LOOK_S)
        self._shell_runs = False
        self._server.tell()
