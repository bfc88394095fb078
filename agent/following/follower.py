"""Follows what other programs do in threads that somebody is subscribed to. Trio shell.

PROTOCOL.md section 3 (Modes). What moved is seen in Codex's list (`list_watch`); which
threads are followed is chosen by `followed`; each is read and told by `read_back`. One
read at a time, for any thread only a fraction of the time, none while nobody is
subscribed: other readers hardly notice.
"""

from collections.abc import Callable, Iterable
from typing import Final, NoReturn

import trio

from adapter.runtime.events import Emit, Emitted, ItemDelta, RuntimeEvent
from agent.access.sight import Sight
from agent.app_servers.lease_registry import LeaseRegistry
from agent.app_servers.supervisor import Supervisor
from agent.changes import Changes
from agent.following.followed import Followed
from agent.following.interest import Interest, Paces
from agent.following.list_watch import ListWatch
from agent.following.read_back import ReadBack
from agent.following.snapshots import Snapshots
from agent.following.told_threads import News, ToldThreads
from agent.gate.gatekeeper import GateKeeper
from agent.gate.writers import Watch
from agent.limits import FOLLOW_S, FORGET_S, LISTED, SUBSCRIBE_S, TOLD_THREADS
from agent.mutations.thread_locks import ThreadLocks
from transport.protocol.events import (
    EventData,
    Notice,
    NoticeLevel,
    ThreadChanged,
    ThreadRemoved,
    ThreadReverted,
)
from transport.protocol.gateway import FollowedThread

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
        leases: LeaseRegistry,
        sight: Sight,
        watch: Watch,
        locks: ThreadLocks,
        emit: Emit,
        now_ms: Callable[[], int],
    ) -> None:
        self._supervisor = supervisor
        self._leases = leases
        self._emit = emit
        self._now_ms = now_ms
        self._interest = Interest()
        self._bell = Changes()
        self._paces = Paces()
        self._told = ToldThreads()
        self._news = News()
        self._list = ListWatch(supervisor=supervisor, sight=sight, now_ms=now_ms)
        snapshots = Snapshots(
            supervisor=supervisor, keeper=keeper, watch=watch, sight=sight
        )
        self._followed = Followed(
            interest=self._interest,
            paces=self._paces,
            told=self._told,
            news=self._news,
            listed=self._list,
            leases=leases,
            watch=watch,
            snapshots=snapshots,
            now_ms=now_ms,
        )
        self._read_back = ReadBack(
            snapshots=snapshots,
            told=self._told,
            news=self._news,
            paces=self._paces,
            leases=leases,
            locks=locks,
            emit=emit,
            now_ms=now_ms,
        )
        self._ours: set[str] = set()  # a writer of ours tells of them, or did just now
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
            likely = [*self._news, *self._followed.likely()]
            wanted = likely if threads is None else [*threads]
            for thread_id in [*dict.fromkeys(wanted)][:LISTED]:
                await self._read_back.sync(thread_id)

    def following(self) -> list[FollowedThread]:
        """Return the threads that are followed now because another program is there."""
        return self._followed.rows()

    # what our own processes say

    def heard(self, event: RuntimeEvent) -> None:
        """Take down what a writer of ours has told."""
        if event.thread_id is None or isinstance(event, ItemDelta):
            return
        self._ours.add(event.thread_id)
        if len(self._ours) > TOLD_THREADS:  # nobody is subscribed, so none was let go
            self._ours = {one for one in self._ours if self._leases.is_ours(one)}
        self._told.heard(event.thread_id, event)

    def heard_of_store(self, event: RuntimeEvent) -> None:
        """Take down what was told of a thread that no writer of ours has: that it is
        gone, or that we gave it another title."""
        match event:
            case Emitted(data=ThreadRemoved(thread_id=thread_id)):
                self._drop(thread_id)
                self._list.forget(thread_id)
            case Emitted(data=ThreadChanged(thread=thread)):
                self._list.note(thread)
                self._told.note(thread.id, event)
            case Emitted(data=ThreadReverted(thread_id=thread_id)):
                self._told.note(thread_id, event)
            case _:
                pass

    async def hand_over(self, thread_id: str, newest: str | None) -> None:
        """A writer of ours has loaded the thread: tell what others did before it does.

        `newest`: the thread's newest turn. Called under the thread's lock; never fails.
        """
        row, told = self._list.rows.get(thread_id), self._told.get(thread_id)
        if told is None and not (row and self._interest.covers(thread_id)):
            return
        if told is not None and told.turns.all_before(newest):
            return
        since = self._news.take(thread_id)
        if since is None and row is not None:
            since = row.updated_at
        await self._read_back.read(thread_id, since=since, ours=True)

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
        for thread_id in self._followed.choose():
            self._warn(thread_id)
        self._let_go_of_ours()
        for thread_id in self._news:
            await self._read_back.sync(thread_id)
        self._news.keep_looks(self._told.names())
        for thread_id, pace in self._paces:
            due = pace.due <= trio.current_time() and self._followed.may_move(thread_id)
            if due and self._interest:
                await self._read_back.sync(thread_id)

    def _let_go_of_ours(self) -> None:
        """What no writer of ours tells of any more is read once."""
        for thread_id in [one for one in self._ours if not self._leases.is_ours(one)]:
            self._ours.discard(thread_id)
            self._news.add(thread_id)

    async def _look_at_list(self) -> None:
        found = await self._list.look()
        for thread_id, since in found.changed.items():
            if (pace := self._paces.get(thread_id)) is not None:
                pace.hasten(trio.current_time())
            if self._interest.covers(thread_id) or thread_id in self._told:
                self._news.add(thread_id, since)
                if thread_id in found.looks_new:
                    self._news.note_look(thread_id)
        for thread_id in found.looks_new:
            if (row := self._list.rows.get(thread_id)) is not None:
                self._leases.renamed(thread_id, row.title)
        for thread_id, reason in found.gone.items():
            if not self._leases.is_ours(thread_id):
                self._drop(thread_id)
                data = ThreadRemoved(thread_id=thread_id, reason=reason)
                self._say(thread_id, data)

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
        self._list.start_anew()
        notice = Notice(
            level=NoticeLevel.INFO,
            code="historyGap",
            message="Nobody was watching for a while: read anew the threads that are shown.",
        )
        self._say(None, notice)

    def _drop(self, thread_id: str) -> None:
        """The thread is gone, and all that was kept of it."""
        self._told.drop(thread_id)
        self._news.drop(thread_id)
        self._ours.discard(thread_id)

    def _warn(self, thread_id: str) -> None:
        notice = Notice(
            level=NoticeLevel.WARNING,
            code="followLimit",
            message=_TOO_MANY,
            thread_id=thread_id,
        )
        self._say(thread_id, notice)

    def _say(self, thread_id: str | None, data: EventData) -> None:
        self._emit(Emitted(at=self._now_ms(), thread_id=thread_id, data=data))
