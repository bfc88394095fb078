"""Follows what other programs do in threads that somebody is subscribed to. Trio shell.

PROTOCOL.md section 3 (Modes), around `follow` (the difference), `interest` (whose turn it
is), `list_watch` (what moved) and `snapshots` (what is there). One read at a time, for any
thread only a fraction of the time, none while nobody is subscribed: other readers hardly
notice. A thread is read and told under its lock, so that a writer of ours never begins in
between.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, NoReturn

import trio

from adapter.errors import AdapterError
from adapter.runtime.events import Emit, Emitted, ItemDelta, RuntimeEvent
from agent.access.sight import Sight
from agent.app_servers.lease_pool import LeasePool
from agent.app_servers.supervisor import Supervisor
from agent.changes import Changes
from agent.following.follow import Told
from agent.following.interest import Interest, Paces
from agent.following.list_watch import ListWatch
from agent.following.snapshots import Snapshots
from agent.gate.gatekeeper import GateKeeper
from agent.gate.writers import Watch
from agent.limits import (
    FOLLOW_S,
    FORGET_S,
    LISTED,
    RECENT_MS,
    SUBSCRIBE_S,
    TOLD_THREADS,
)
from agent.mutations.thread_locks import ThreadLocks
from transport.errors import Refusal
from transport.protocol.events import (
    EventData,
    Notice,
    NoticeLevel,
    ThreadChanged,
    ThreadRemoved,
    ThreadReverted,
)
from transport.protocol.gateway import FollowedThread, LeaseState, Writer

_TOO_MANY: Final = (
    "Too many threads are followed at once: this one is read only when Codex's list says "
    "that it changed."
)


class Follower:
    """All threads that are followed. `locks`: the same that mutations take."""

    def __init__(
        self,
        *,
        supervisor: Supervisor,
        keeper: GateKeeper,
        pool: LeasePool,
        sight: Sight,
        watch: Watch,
        locks: ThreadLocks,
        emit: Emit,
        now_ms: Callable[[], int],
    ) -> None:
        self._supervisor = supervisor
        self._pool = pool
        self._watch = watch
        self._locks = locks
        self._emit = emit
        self._now_ms = now_ms
        self._interest = Interest()
        self._bell = Changes()
        self._paces = Paces()
        self._list = ListWatch(supervisor=supervisor, sight=sight, now_ms=now_ms)
        self._snapshots = Snapshots(
            supervisor=supervisor, keeper=keeper, watch=watch, sight=sight
        )
        self._told: OrderedDict[str, Told] = OrderedDict()
        self._news: dict[str, int | None] = {}  # to be read now; known until (ms)
        self._look_new: set[str] = set()  # … because the thread itself changed
        self._too_many: set[str] = set()
        self._ours: set[str] = set()  # a writer of ours tells of them, or did just now
        self._holders: dict[str, Writer] = {}
        self._there: dict[str, tuple[Writer | None, bool]] = {}
        self._idle_since: float | None = trio.current_time()

    # what sessions say

    def want(self, session: object, threads: frozenset[str] | None) -> None:
        """A session subscribes to these threads, or to all; it replaces what it wanted."""
        self._interest.want(session, threads)
        self._rest()

    def forget(self, session: object) -> None:
        """A session has ended."""
        self._interest.forget(session)
        self._rest()

    def _rest(self) -> None:
        """Work while somebody is subscribed, and only then."""
        if self._interest:
            self._idle_since = None
            self._bell.ring()
        elif self._idle_since is None:
            self._idle_since = trio.current_time()
            self._paces.clear()

    async def prepare(self, threads: Iterable[str] | None) -> None:
        """Bring the journal up to what history shows now, before somebody subscribes.

        What comes after is news. Never fails, and takes `SUBSCRIBE_S` at most: what was
        not reached is caught up with later.
        """
        if not self._supervisor.is_up:
            return
        self._start_anew()
        with trio.move_on_after(SUBSCRIBE_S):
            await self._look_at_list()
            wanted = [*self._news, *self._likely()] if threads is None else [*threads]
            for thread_id in [*dict.fromkeys(wanted)][:LISTED]:
                await self._sync(thread_id)

    def following(self) -> list[FollowedThread]:
        """Return the threads that are followed now because another program is there."""
        lockless = self._snapshots.crowded
        return [
            FollowedThread(
                thread_id=thread_id,
                writer=self._holders.get(thread_id),
                since=pace.since,
            )
            for thread_id, pace in self._paces
            if thread_id in self._holders or lockless
        ]

    # what our own processes say

    def heard(self, event: RuntimeEvent) -> None:
        """Take down what a writer of ours has told."""
        if event.thread_id is None or isinstance(event, ItemDelta):
            return
        self._ours.add(event.thread_id)
        if len(self._ours) > TOLD_THREADS:  # nobody is subscribed, so none was let go
            self._ours = {one for one in self._ours if self._is_ours(one)}
        told = self._told.get(event.thread_id)
        if told is None:
            told = self._keep(Told(event.thread_id, root=event.root_thread_id))
        self._told.move_to_end(event.thread_id)
        told.note(event)

    def heard_of_store(self, event: RuntimeEvent) -> None:
        """Take down what was told of a thread that no writer of ours has: that it is
        gone, or that we gave it another title."""
        match event:
            case Emitted(data=ThreadRemoved(thread_id=thread_id)):
                self._drop(thread_id)
                self._list.forget(thread_id)
            case Emitted(data=ThreadChanged(thread=thread)):
                self._list.note(thread)
                if (told := self._told.get(thread.id)) is not None:
                    told.note(event)
            case Emitted(data=ThreadReverted(thread_id=thread_id)):
                if (told := self._told.get(thread_id)) is not None:
                    told.note(event)
            case _:
                pass

    async def hand_over(self, thread_id: str, newest: str | None) -> None:
        """A writer of ours has loaded the thread: tell what others did before it does.

        `newest`: the thread's newest turn. Called under the thread's lock; never fails.
        """
        row, told = self._list.rows.get(thread_id), self._told.get(thread_id)
        if told is None and not (row and self._interest.covers(thread_id)):
            return
        if told is not None and told.knows_all_before(newest):
            return
        since = self._news.pop(thread_id, None)
        if since is None and row is not None:
            since = row.updated_at
        await self._read(thread_id, since=since, ours=True)

    # the work

    async def serve(
        self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> NoReturn:
        """Follow until cancelled."""
        task_status.started()
        while True:
            while not self._interest:
                await self._bell.wait()
            await self._tick()
            with trio.move_on_after(FOLLOW_S):
                await self._bell.wait()

    async def _tick(self) -> None:
        if not self._supervisor.is_up:
            return
        if trio.current_time() >= self._list.due:
            await self._look_at_list()
        self._choose()
        for thread_id in [one for one in self._ours if not self._is_ours(one)]:
            self._ours.discard(thread_id)
            self._news.setdefault(thread_id, None)
        for thread_id in [*self._news]:
            await self._sync(thread_id)
        self._look_new &= self._told.keys()  # others could not be read
        for thread_id, pace in self._paces:
            due = pace.due <= trio.current_time() and self._may_move(thread_id)
            if due and self._interest:
                await self._sync(thread_id)

    def _may_move(self, thread_id: str) -> bool:
        """Whether something can happen that Codex's list would not show first."""
        told = self._told.get(thread_id)
        if told is None or told.is_running or thread_id not in self._list.rows:
            return True
        return thread_id in self._holders or self._snapshots.crowded

    def _start_anew(self) -> None:
        """Nobody looked for long: what happened meanwhile is not told one by one."""
        now = trio.current_time()
        if self._idle_since is None or now - self._idle_since < FORGET_S:
            return
        self._idle_since = None
        if not self._told and not self._list.rows:
            return
        self._told.clear()
        self._news.clear()
        self._look_new.clear()
        self._list.start_anew()
        notice = Notice(
            level=NoticeLevel.INFO,
            code="historyGap",
            message="Nobody was watching for a while: read anew the threads that are shown.",
        )
        self._say(None, notice)

    # which threads

    def _choose(self) -> None:
        wanted = [*self._interest.named()]
        if self._interest.in_all:
            wanted += self._likely()
        ours = [one for one in wanted if self._is_ours(one)]
        wanted = [one for one in wanted if one not in ours]
        children = [
            child
            for one in wanted
            if (told := self._told.get(one)) is not None and told.is_running
            for child in told.children
        ]
        over = self._paces.choose([*wanted, *children], at=self._now_ms())
        self._holders = self._watch.holders([one for one, _ in self._paces])
        self._see_who_came()
        self._say_too_many(over)

    def _see_who_came(self) -> None:
        """A thread is read at once where another program came to it, or left."""
        crowded = self._snapshots.crowded
        there = {one: (self._holders.get(one), crowded) for one, _ in self._paces}
        for thread_id, who in there.items():
            if self._there.get(thread_id, who) != who:
                self._news.setdefault(thread_id, None)
        self._there = there

    def _likely(self) -> list[str]:
        """Return the threads of the list in which something may happen, likeliest first."""
        rows = self._list.rows
        held = self._watch.holders(list(rows))
        recent = self._now_ms() - RECENT_MS
        runs = [one for one in rows if (t := self._told.get(one)) and t.is_running]
        lately = [one.id for one in rows.values() if one.updated_at >= recent]
        if not (self._snapshots.crowded or held):
            lately = []
        return [*dict.fromkeys([*runs, *held, *lately])]

    def _say_too_many(self, over: list[str]) -> None:
        named = set(self._interest.named())
        self._too_many &= set(over)
        for thread_id in over:
            if thread_id in named and thread_id not in self._too_many:
                self._too_many.add(thread_id)
                notice = Notice(
                    level=NoticeLevel.WARNING,
                    code="followLimit",
                    message=_TOO_MANY,
                    thread_id=thread_id,
                )
                self._say(thread_id, notice)

    def _say(self, thread_id: str | None, data: EventData) -> None:
        self._emit(Emitted(at=self._now_ms(), thread_id=thread_id, data=data))

    # Codex's list

    async def _look_at_list(self) -> None:
        found = await self._list.look()
        for thread_id, since in found.changed.items():
            if (pace := self._paces.get(thread_id)) is not None:
                pace.hasten(trio.current_time())
            if self._interest.covers(thread_id) or thread_id in self._told:
                self._news.setdefault(thread_id, since)
                self._look_new |= found.looks_new & {thread_id}
        for thread_id in found.looks_new:
            if (row := self._list.rows.get(thread_id)) is not None:
                self._pool.renamed(thread_id, row.title)
        for thread_id, reason in found.gone.items():
            if not self._is_ours(thread_id):
                self._drop(thread_id)
                data = ThreadRemoved(thread_id=thread_id, reason=reason)
                self._say(thread_id, data)

    # one thread

    async def _sync(self, thread_id: str) -> None:
        """Tell what history shows beyond what was told; nothing of threads of ours."""
        since = self._news.pop(thread_id, None)
        if self._is_ours(thread_id) or self._locks.is_taken(thread_id):
            return  # a mutation is on its way; it hands over
        async with self._locks.holding(thread_id):
            if not self._is_ours(thread_id):
                await self._read(thread_id, since=since)

    async def _read(
        self, thread_id: str, *, since: int | None, ours: bool = False
    ) -> None:
        began = trio.current_time()
        told = self._told.get(thread_id)
        fresh = told or Told(thread_id, root=self._root_of(thread_id))
        if told is None and since is None and self._begins(thread_id):
            since = 0
        events: list[RuntimeEvent] = []
        try:
            now = await self._snapshots.take(thread_id, fresh, since)
        except (AdapterError, Refusal):
            pass  # believed by nobody: it is read again
        else:
            at = self._now_ms()
            if told is None:
                self._keep(fresh)
            events = fresh.advance(
                now,
                at=at,
                since=since,
                certain=ours,
                looks_new=thread_id in self._look_new,
            )
            self._look_new.discard(thread_id)
            for event in events:
                self._emit(event)
        if (pace := self._paces.get(thread_id)) is not None:
            ended = trio.current_time()
            pace.was_read(
                ended,
                took=ended - began,
                changed=bool(events),
                running=fresh.is_running,
            )

    # what is known

    def _is_ours(self, thread_id: str) -> bool:
        """Whether a writer of ours tells of the thread, or is about to."""
        if self._pool.lease_of(thread_id) is not None:
            return True
        return self._pool.state(thread_id) in (
            LeaseState.LOADING,
            LeaseState.RELEASING,
        )

    def _root_of(self, thread_id: str) -> str | None:
        for one in self._told.values():
            if thread_id in one.children:
                return one.root or one.thread_id
        return None

    def _begins(self, thread_id: str) -> bool:
        """Whether a sub-agent's start was seen, so that all of it is news."""
        return any(one.children.get(thread_id) is False for one in self._told.values())

    def _drop(self, thread_id: str) -> None:
        """The thread is gone, and all that was kept of it."""
        self._told.pop(thread_id, None)
        self._news.pop(thread_id, None)
        self._look_new.discard(thread_id)
        self._ours.discard(thread_id)

    def _keep(self, told: Told) -> Told:
        self._told[told.thread_id] = told
        while len(self._told) > TOLD_THREADS:
            self._told.popitem(last=False)
        return told
