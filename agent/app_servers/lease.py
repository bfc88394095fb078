"""One lease: a writer's state from its start to its end. Trio shell.

PROTOCOL.md section 3 (Lease). Whoever works with the writer says so (`used`); the task in
`lifecycle` that owns the writer waits for `changes`.
"""

from collections.abc import Generator
from contextlib import contextmanager

import trio

from adapter.runtime.threads import EffectiveSettings, Loaded
from adapter.runtime.writer import ThreadWriter
from agent.changes import Changes
from agent.limits import CHILDREN
from transport.protocol.threads import Thread


class Lease:
    """One writer from its start to its end. `key`: the thread's id once it has one.

    `asker`: the device that it was started for.
    """

    def __init__(
        self, key: str, thread_id: str | None, *, asker: str | None = None
    ) -> None:
        self.asker = asker
        self.key = key
        self.thread_id = thread_id
        self.writer: ThreadWriter | None = None
        self.loaded: Loaded | None = None
        self.thread: Thread | None = None  # as last told, title and all
        self.renamed: str | None = None  # beside the writer, which was not told
        self.has_goal = False
        self.goal_by: str | None = None  # the device whose goal may begin turns here
        self.children: dict[str, str | None] = {}  # whose turn began in this of ours
        self.changes = Changes()
        self.ended = trio.Event()
        self.lost = False
        self.to_end = trio.Event()  # whatever it does
        self.unwanted = False  # it ends as soon as nothing runs in it
        self.ended_at: float | None = None  # a turn; the next may begin by itself
        self.looked_at: float | None = None  # the one after which a goal was looked for
        self.quiet_since: float | None = None
        self._users = 0

    @contextmanager
    def used(self) -> Generator[ThreadWriter]:
        """Keep the writer while a call works with it."""
        self._users += 1
        try:
            yield self.started_writer
        finally:
            self._users -= 1
            self.changes.ring()

    def leave(self) -> None:
        """Nobody of ours wants it any more: it ends as soon as nothing runs in it."""
        self.unwanted = True
        self.changes.ring()

    @property
    def started_writer(self) -> ThreadWriter:
        """The writer, where it is certain that it was started."""
        assert self.writer is not None
        return self.writer

    def meet(self, child: str) -> None:
        """Note a sub-agent: what happens in its thread is this lease's, too."""
        if len(self.children) < CHILDREN:
            self.children.setdefault(child, None)

    def child_began(self, child: str) -> None:
        """Note in which turn of its own thread a sub-agent has begun to work."""
        if self.writer is not None and child in self.children:
            its = self.writer.running_turn_id or self.writer.last_turn_id
            self.children[child] = its

    @property
    def settings(self) -> EffectiveSettings:
        """The loaded thread's settings as they are now."""
        assert self.loaded is not None
        return self.started_writer.settings or self.loaded.settings

    def turn_ended(self) -> None:
        """A turn has ended, or a thread was loaded in which messages wait.

        Codex may begin the next message of its own queue now, by itself. A process that
        ends in that moment has taken the message, and nobody answers it.
        """
        self.ended_at = trio.current_time()
        self.changes.ring()

    @property
    def runs_nothing(self) -> bool:
        """Whether no turn runs in its own thread."""
        return self.writer is None or self.writer.running_turn_id is None

    @property
    def is_quiet(self) -> bool:
        """Whether nothing needs the writer now."""
        return not self._users and self.writer is not None and not self.writer.busy


async def cancel_at_end(
    lease: Lease, scope: trio.CancelScope, *, task_status: trio.TaskStatus[None]
) -> None:
    """Cancel what decides over the lease as soon as it is to end whatever it does."""
    task_status.started()
    await lease.to_end.wait()
    scope.cancel(reason="the writer is to end")


async def ring_when_busy(
    lease: Lease, writer: ThreadWriter, *, task_status: trio.TaskStatus[None]
) -> None:
    """Ring whenever the writer begins or ends to be busy."""
    task_status.started()
    while True:
        await writer.wait_busy()
        lease.changes.ring()
        await writer.wait_idle()
        lease.changes.ring()
