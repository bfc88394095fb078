"""Whoever comes back, at any point and with any cursor, shows what one shows who stayed.

The whole stack in memory: the fake runtime, the real door and edge, Noise, the real client
library. Hypothesis says what happens, and when and where connections are cut.
"""

import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pytest
import trio
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    rule,
    run_state_machine_as_test,
)
from trio.testing import MockClock

from agent.mutations.thread_wishes import Archive, Rename, Unarchive
from tests.support.door import LOCAL, send
from tests.support.fake_runtime import FakeRuntime
from tests.support.fake_writer import FakeWriter
from tests.support.journals import notice
from tests.support.whole_stack import Stack, Watcher, quiet, watching
from transport.errors import Refusal
from transport.protocol.approvals import ApprovalState
from transport.protocol.items import AgentMessage, ItemStatus
from transport.protocol.thread_acts import (
    ThreadArchiveParams,
    ThreadRenameParams,
    ThreadUnarchiveParams,
)

RING = 40
THREADS = st.sampled_from(["thr0", "thr1"])
RARELY = st.integers(0, 3)
TEXTS = st.text("abcü", min_size=1, max_size=3)


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
        if writer is not None and (more or not _opened(writer)):
            _begin(self, writer)

    async def act(self, wish: Any, params: Any) -> None:
        try:
            await self.stack.door.admission.fulfil(LOCAL, wish, params)
        except Refusal:
            return


class Coming(RuleBasedStateMachine):
    """Rules run in a thread of hypothesis; whatever they change, they change in trio's."""

    worlds: ClassVar["Worlds"]

    def __init__(self) -> None:
        super().__init__()
        self.world: World = trio.from_thread.run(self.worlds.begin)

    def do(self, act: Callable[..., Awaitable[None]], *args: Any) -> None:
        trio.from_thread.run(partial(self.world.carry, act, *args))

    def at_once(self, act: Callable[[], object]) -> None:
        async def run() -> None:
            act()
            await trio.lowlevel.checkpoint()

        self.do(run)

    def teardown(self) -> None:
        try:
            trio.from_thread.run(self.world.compare)
        finally:
            trio.from_thread.run(self.worlds.end, self.world)

    # what happens

    @rule(thread=THREADS)
    def a_turn_starts(self, thread: str) -> None:
        self.do(self.world.start, thread)

    @rule(thread=THREADS, more=st.booleans())
    def an_item_begins(self, thread: str, more: bool) -> None:
        self.do(self.world.begin_item, thread, more)

    @rule(thread=THREADS, texts=st.lists(TEXTS, min_size=1, max_size=12))
    def text_comes(self, thread: str, texts: list[str]) -> None:
        self.do(self.world.begin_item, thread, False)
        writer = self.world.writer(thread)
        if writer is not None:
            for text in texts:
                self.at_once(partial(_say, writer, text))

    @rule(thread=THREADS, text=TEXTS, after=st.integers(0, 600))
    def a_connection_is_cut_in_the_middle_of_text(
        self, thread: str, text: str, after: int
    ) -> None:
        self.a_connection_is_cut(0, after)
        self.text_comes(thread, [text] * 9)
        self.time_passes(3)

    @rule(thread=THREADS)
    def an_item_ends(self, thread: str) -> None:
        writer = self.world.writer(thread)
        if writer is not None:
            self.at_once(partial(_end, writer))

    @rule(thread=THREADS)
    def a_turn_ends(self, thread: str) -> None:
        writer = self.world.writer(thread)
        if writer is not None:
            self.at_once(partial(_finish, writer))

    @rule(thread=THREADS)
    def codex_asks(self, thread: str) -> None:
        writer = self.world.writer(thread)
        if writer is not None:
            self.at_once(writer.ask)

    @rule(thread=THREADS)
    def somebody_answers(self, thread: str) -> None:
        writer = self.world.writer(thread)
        if writer is not None and writer.approvals():
            asked = writer.approvals()[0].id
            self.at_once(partial(writer.resolve, asked, ApprovalState.ANSWERED))

    @rule(thread=THREADS, name=TEXTS)
    def a_thread_gets_a_name(self, thread: str, name: str) -> None:
        key = f"key-{next(self.world.keys):012}"
        params = ThreadRenameParams(thread_id=thread, name=name, request_key=key)
        self.do(self.world.act, Rename(), params)

    @rule(thread=THREADS, away=st.booleans())
    def a_thread_is_put_away_or_back(self, thread: str, away: bool) -> None:
        key = f"key-{next(self.world.keys):012}"
        if away:
            gone = ThreadArchiveParams(thread_id=thread, request_key=key)
            self.do(self.world.act, Archive(), gone)
        else:
            back = ThreadUnarchiveParams(thread_id=thread, request_key=key)
            self.do(self.world.act, Unarchive(), back)

    @rule(thread=THREADS, chance=RARELY)
    def a_writer_dies(self, thread: str, chance: int) -> None:
        writer = self.world.writer(thread)
        if writer is not None and chance == 0:
            self.at_once(writer.die)

    @rule(events=st.integers(1, RING + 10))
    def much_else_happens(self, events: int) -> None:
        self.do(self.world.much, events)

    # what happens to connections

    @rule(which=st.integers(0, 1), after=st.one_of(st.just(0), st.integers(0, 3_000)))
    def a_connection_is_cut(self, which: int, after: int) -> None:
        roamer = self.world.roamers[which]
        self.at_once(partial(roamer.cut, after))

    @rule(which=st.integers(0, 1), seq=st.sampled_from([0, 1, 1_000_000]))
    def a_cursor_is_another(self, which: int, seq: int) -> None:
        """From before the ring, or of a future that is not reached."""
        subscription = _subscription(self.world.roamers[which])
        if subscription is not None:
            subscription._cursor = seq
            self.a_connection_is_cut(which, 0)

    @rule(which=st.integers(0, 1), epoch=st.sampled_from(["e0.0", "", "x"]))
    def a_cursor_is_of_another_epoch(self, which: int, epoch: str) -> None:
        subscription = _subscription(self.world.roamers[which])
        if subscription is not None:
            subscription._epoch = epoch or "e"
            self.a_connection_is_cut(which, 0)

    @rule(seconds=st.integers(1, 40))
    def time_passes(self, seconds: int) -> None:
        self.do(self.world.pass_time, seconds)

    @rule(fenced=st.booleans())
    def rights_change(self, fenced: bool) -> None:
        place = self.world.folder / "thr0"
        roots = [str(place)] if fenced else [str(self.world.folder)]
        self.at_once(partial(self.world.stack.grant, roots=roots))

    @rule(chance=RARELY)
    def the_agent_is_started_anew(self, chance: int) -> None:
        if chance == 0:
            self.do(self.world.restart)

    @rule(chance=RARELY)
    def all_are_compared(self, chance: int) -> None:
        if chance == 0:
            self.do(self.world.compare)


def _subscription(roamer: Watcher) -> Any:
    feed = roamer.client._feed  # pyright: ignore[reportPrivateUsage] # no client forges
    return None if feed is None else feed.subscription


def _begin(world: World, writer: FakeWriter) -> None:
    assert writer.running_turn_id is not None
    item_id = world.runtime.next_id("item")
    message = AgentMessage(
        id=item_id,
        turn_id=writer.running_turn_id,
        status=ItemStatus.IN_PROGRESS,
        text="",
    )
    writer.begin_item(message)


def _opened(writer: FakeWriter) -> list[AgentMessage]:
    turn = writer.live_turn(writer.running_turn_id or "")
    items = [] if turn is None else turn.items or []
    return [
        item
        for item in items
        if isinstance(item, AgentMessage) and item.status is ItemStatus.IN_PROGRESS
    ]


def _say(writer: FakeWriter, text: str) -> None:
    for item in _opened(writer)[:1]:
        writer.delta(item.id, text)


def _end(writer: FakeWriter) -> None:
    for item in _opened(writer)[:1]:
        done = {"status": ItemStatus.COMPLETED}
        writer.end_item(item.model_copy(update=done))


def _finish(writer: FakeWriter) -> None:
    for asked in writer.approvals():
        writer.resolve(asked.id, ApprovalState.WITHDRAWN)
    writer.finish_turn()


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


async def _explore(examples: int, steps: int, clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        with tempfile.TemporaryDirectory() as folder:

            class Machine(Coming):
                worlds = Worlds(Path(folder), clock, nursery)

            bounds = settings(
                max_examples=examples,
                stateful_step_count=steps,
                deadline=None,
                database=None,
                phases=[Phase.generate],  # shrinking would take minutes
                print_blob=False,
                suppress_health_check=[HealthCheck.too_slow],
            )
            try:
                await trio.to_thread.run_sync(
                    partial(run_state_machine_as_test, Machine, settings=bounds)
                )
            finally:
                clock.autojump_threshold = 0  # what ends may take its time


def test_whoever_comes_back_shows_what_one_shows_who_stayed() -> None:
    clock = MockClock()
    trio.run(_explore, 6, 25, clock, clock=clock)


@pytest.mark.long
def test_whoever_comes_back_after_long_stories_shows_the_same() -> None:
    clock = MockClock()
    trio.run(_explore, 60, 50, clock, clock=clock)
