"""An in-memory runtime that a test can steer at every step. No process, no clock.

It implements `adapter.runtime`: the Runtime here, its Reader in `fake_reader`, its ThreadWriter
in `fake_writer`, over a small store of threads (`fake_threads`). Steps are named:
`reader.open`, `list_threads`, `read_thread`, `list_turns`, `pending_work`, `writer.open`,
`resume`, `start_thread`, `start_turn`, `interrupt`, `answer`, `writer.close`, `steer`,
`change_settings`, `background`, `stop_background`, `goal`, `set_goal`, `pause_goal`,
`clear_goal`, `fork_thread`, `compact`, `review`, `revert`; those of the store: see
`fake_store`. `runtime.at(step, action)` runs an action when the step is
reached, before its guard; `runtime.at(step + ":done", action)` when its effect has
happened and the answer is still on the way. An action may raise, block, or change the
world. `runtime.log` holds every step that was reached.

The test plays the model: `writer.begin_item`, `writer.delta`, `writer.end_item`,
`writer.finish_turn` (`fake_turns`), `writer.ask` (`fake_approvals`),
`runtime.writers[n].die()`.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from inspect import isawaitable

import trio

from adapter.errors import (
    ChildExitedError,
)
from adapter.runtime.acts import Guard
from adapter.runtime.events import Emit
from adapter.runtime.program import RuntimeInfo
from tests.support.fake_reader import FakeReader
from tests.support.fake_threads import Stored, make_thread, make_turn
from tests.support.fake_writer import FakeWriter
from transport.background import open_background
from transport.protocol.capabilities import (
    Capability,
    CapabilityStatus,
)

Action = Callable[[], Awaitable[object] | object]
LAST_WORDS = "what a process logs: a prompt, a command"
CAPABILITIES = (
    Capability(
        feature="thread/list", status=CapabilityStatus.SUPPORTED, evidence="played"
    ),
    Capability(
        feature="not/here", status=CapabilityStatus.SUPPORTED, evidence="played"
    ),
    Capability(
        feature="threadLocks", status=CapabilityStatus.SUPPORTED, evidence="played"
    ),
)


class FakeRuntime:
    """Runtime over `threads`. One writer per open block, in `writers`, dead ones too."""

    def __init__(self, *, version: str = "0.163.0", locks_threads: bool = True) -> None:
        self.threads: dict[str, Stored] = {}
        self.writers: list[FakeWriter] = []
        self.readers: list[FakeReader] = []
        self.log: list[str] = []
        self.info = RuntimeInfo(
            name="codex",
            version=version,
            pid=1_000,
            home="/home/u/.codex",
            locks_threads=locks_threads,
        )
        self.keeps_keys = True  # history shows which message came with which key
        self.capabilities: tuple[Capability, ...] = CAPABILITIES
        self.decided_alone: tuple[str, ...] = ()
        self.sandbox_fault: str | None = None
        self._actions: dict[str, list[Action]] = {}
        self._count = 0

    # the test's side

    def add(self, thread_id: str, *turn_ids: str, cwd: str = "/work/app") -> Stored:
        """Put a thread with completed turns on the fake's disk."""
        stored = Stored(make_thread(thread_id, cwd=cwd))
        stored.settings = replace(stored.settings, cwd=cwd)
        stored.turns = [make_turn(turn_id, thread_id) for turn_id in turn_ids]
        self.threads[thread_id] = stored
        return stored

    def at(self, step: str, action: Action) -> None:
        """Run `action` the next time that `step` is reached; several queue up."""
        self._actions.setdefault(step, []).append(action)

    def forget_actions(self) -> None:
        """Nothing that was planned with `at` happens any more."""
        self._actions.clear()

    @property
    def live(self) -> list[FakeWriter]:
        """Writers whose process has not been reaped."""
        return [writer for writer in self.writers if not writer.reaped]

    def writer_programs(self) -> list[RuntimeInfo]:
        """What the writers that live now are."""
        return [writer.info for writer in self.live]

    def own_pids(self) -> set[int]:
        """Processes of ours now alive."""
        return {writer.info.pid for writer in self.live}

    def next_id(self, prefix: str) -> str:
        """Return a fresh id."""
        self._count += 1
        return f"{prefix}-{self._count}"

    async def reach(self, step: str) -> None:
        """Log a step and run what the test put there."""
        self.log.append(step)
        actions = self._actions.get(step, [])
        if actions:
            result = actions.pop(0)()
            if isawaitable(result):
                await result

    # the Agent's side

    @asynccontextmanager
    async def open_reader(self, emit: Emit) -> AsyncGenerator[FakeReader]:
        """Start the reader."""
        await self.reach("reader.open")
        reader = FakeReader(self, emit)
        self.readers.append(reader)
        async with open_background(partial(_until_dead, reader.died, "codex reader")):
            yield reader

    @asynccontextmanager
    async def open_writer(
        self, emit: Emit, *, guard: Guard
    ) -> AsyncGenerator[FakeWriter]:
        """Start a writer; a process exists from the guard's yes on."""
        await self.reach("writer.open")
        guard()
        writer = FakeWriter(self, emit, pid=2_000 + len(self.writers))
        self.writers.append(writer)
        try:
            await self.reach("writer.open:done")
            ending = partial(_until_dead, writer.died, "codex writer")
            async with open_background(ending):
                yield writer
        finally:
            with trio.move_on_after(60, shield=True):
                await self.reach("writer.close")
            writer.reap()


async def _until_dead(
    died: trio.Event, name: str, *, task_status: trio.TaskStatus[None]
) -> None:
    task_status.started()
    await died.wait()
    raise ChildExitedError(name, -9, LAST_WORDS)
