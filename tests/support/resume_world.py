"""The world of a state machine: an Agent in memory, who stays there and who is cut."""

from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

import trio
from trio.testing import MockClock

from tests.support.door import LOCAL, send
from tests.support.fake_runtime import FakeRuntime
from tests.support.fake_writer import FakeWriter
from tests.support.journals import notice
from tests.support.spoken import begin, opened
from tests.support.whole_stack import Stack, Watcher, quiet, watching
from transport.errors import Refusal

RING = 40


class World:
    """One example: an Agent, one client that stays and two that are cut."""

    def __init__(self, folder: Path, clock: MockClock) -> None:
        self.clock = clock
        self.folder = folder
        self.runtime = FakeRuntime()
        for name in ("thr0", "thr1"):
            place = folder / name
            place.mkdir()
            self.runtime.add(name, "t1" + name, cwd=str(place))
        self.stack = Stack(folder, self.runtime, ring=RING)
        self.keys = count()
        self.stayed: Watcher
        self.roamers: list[Watcher] = []
        self._agent: trio.CancelScope | None = None
        self._nursery: trio.Nursery | None = None
        self.over = trio.Event()

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            await nursery.start(self._serve)
            async with (
                watching(self.stack, "s" * 32) as self.stayed,
                watching(self.stack, "r" * 32) as one,
                watching(self.stack, "q" * 32, deltas=False) as two,
            ):
                self.roamers = [one, two]
                await self.settle()
                task_status.started()
                await self.over.wait()
            nursery.cancel_scope.cancel()

    async def _serve(self, *, task_status: trio.TaskStatus[None]) -> None:
        with trio.CancelScope() as self._agent:
            await self.stack.serve(task_status=task_status)

    async def settle(self) -> None:
        await quiet()

    async def carry(self, act: Callable[..., Awaitable[None]], *args: Any) -> None:
        """Let something happen; where it needs time, that passes."""
        over = trio.Event()

        async def run() -> None:
            await act(*args)
            over.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await quiet()
            while not over.is_set():
                self.clock.jump(0.5)
                await quiet()

    async def restart(self) -> None:
        assert self._agent is not None
        assert self._nursery is not None
        self._agent.cancel(reason="it is killed")
        await quiet()
        await self._nursery.start(self._serve)
        await self.all_back()

    async def pass_time(self, seconds: int) -> None:
        for _ in range(0, seconds, 3):
            self.clock.jump(3)
            await quiet()

    async def all_back(self) -> None:
        """Everybody is connected and has shown all that there is."""
        everyone = [self.stayed, *self.roamers]
        for _ in range(60):
            await quiet()
            if all(one.settled for one in everyone):
                return
            self.clock.jump(3)
        raise AssertionError([(one.up, one.mirror.idle) for one in everyone])

    async def compare(self) -> None:
        await self.all_back()
        for roamer, deltas in zip(self.roamers, (True, False), strict=True):
            shown = roamer.mirror.shows(growing=deltas)
            wanted = self.stayed.mirror.shows(growing=deltas)
            assert shown == wanted, (shown, wanted, roamer.mirror.verdicts)
        async with watching(self.stack, "f" * 32) as fresh:
            for _ in range(60):
                await quiet()
                if fresh.settled and fresh.mirror.verdicts:
                    break
                self.clock.jump(3)
            shown, wanted = fresh.mirror.shows(), self.stayed.mirror.shows()
            assert shown == wanted, (shown, wanted)

    def writer(self, thread_id: str) -> FakeWriter | None:
        for writer in self.runtime.live:
            if writer.thread_id == thread_id and writer.running_turn_id:
                return writer
        return None

    async def start(self, thread_id: str) -> None:
        if self.runtime.threads[thread_id].thread.archived:
            return  # codex does not resume it; the fake would
        params = send(thread_id, key=f"key-{next(self.keys):012}")
        try:
            await self.stack.door.admission.start_turn(LOCAL, params)
        except Refusal:
            return

    async def much(self, events: int) -> None:
        """What a client that is there can follow: it never falls out of the ring."""
        for number in range(events):
            self.stack.feed.emit(notice("n"))
            if number % (RING // 4) == 0:
                await quiet()

    async def begin_item(self, thread_id: str, more: bool) -> None:
        """Have an open item, in a turn where there is none; `more`: another one."""
        if self.writer(thread_id) is None:
            await self.start(thread_id)
        writer = self.writer(thread_id)
        if writer is not None and (more or not opened(writer)):
            begin(writer, self.runtime.next_id("item"))

    async def act(self, wish: Any, params: Any) -> None:
        try:
            await self.stack.door.admission.fulfil(LOCAL, wish, params)
        except Refusal:
            return


class Worlds:
    """Begins and ends the world of each example, in trio's thread."""

    def __init__(self, folder: Path, clock: MockClock, nursery: trio.Nursery) -> None:
        self._folder = folder
        self._clock = clock
        self._nursery = nursery
        self._numbers = count()

    async def begin(self) -> World:
        place = self._folder / str(next(self._numbers))
        place.mkdir()
        world = World(place, self._clock)
        await self._nursery.start(world.run)
        return world

    async def end(self, world: World) -> None:
        world.over.set()
        await quiet()
