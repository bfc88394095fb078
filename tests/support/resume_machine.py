"""What may happen to an Agent and to who is connected to it: rules of a state machine."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, ClassVar

import trio
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from agent.mutations.thread_wishes import Archive, Rename, Unarchive
from tests.support.resume_world import RING, World, Worlds
from tests.support.spoken import end, finish, say
from tests.support.whole_stack import Watcher
from transport.protocol.approvals import ApprovalState
from transport.protocol.thread_acts import (
    ThreadArchiveParams,
    ThreadRenameParams,
    ThreadUnarchiveParams,
)

THREADS = st.sampled_from(["thr0", "thr1"])
RARELY = st.integers(0, 3)
TEXTS = st.text("abcü", min_size=1, max_size=3)


class Coming(RuleBasedStateMachine):
    """Rules run in a thread of hypothesis; whatever they change, they change in trio's."""

    worlds: ClassVar[Worlds]

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
                self.at_once(partial(say, writer, text))

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
            self.at_once(partial(end, writer))

    @rule(thread=THREADS)
    def a_turn_ends(self, thread: str) -> None:
        writer = self.world.writer(thread)
        if writer is not None:
            self.at_once(partial(finish, writer))

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
