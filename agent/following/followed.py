"""Which threads are followed now, and who else is in them. Trio shell around `interest`.

PROTOCOL.md section 3 (Modes). The named ones first, then those of the list in which
something may happen, likeliest first, with the sub-agents that run for them.
"""

from collections.abc import Callable

from agent.app_servers.lease_registry import LeaseRegistry
from agent.following.interest import Interest, Paces
from agent.following.list_watch import ListWatch
from agent.following.snapshots import Snapshots
from agent.following.told_threads import News, ToldThreads
from agent.gate.writers import Watch
from agent.limits import RECENT_MS
from transport.protocol.gateway import FollowedThread, Writer


class Followed:
    """Chooses them anew for every round of reads. `paces`: when each is read."""

    def __init__(
        self,
        *,
        interest: Interest,
        paces: Paces,
        told: ToldThreads,
        news: News,
        listed: ListWatch,
        leases: LeaseRegistry,
        watch: Watch,
        snapshots: Snapshots,
        now_ms: Callable[[], int],
    ) -> None:
        self._interest = interest
        self._paces = paces
        self._told = told
        self._news = news
        self._list = listed
        self._leases = leases
        self._watch = watch
        self._snapshots = snapshots
        self._now_ms = now_ms
        self._too_many: set[str] = set()
        self._holders: dict[str, Writer] = {}
        self._there: dict[str, tuple[Writer | None, bool]] = {}

    def rows(self) -> list[FollowedThread]:
        """Return the threads that are followed because another program is there."""
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

    def choose(self) -> list[str]:
        """Choose them; return which are wanted by name and have become too many."""
        wanted = [*self._interest.named()]
        if self._interest.in_all:
            wanted += self.likely()
        wanted = [one for one in wanted if not self._leases.is_ours(one)]
        children = [
            child for one in wanted for child in self._told.children_at_work(one)
        ]
        over = self._paces.choose([*wanted, *children], at=self._now_ms())
        self._holders = self._watch.holders([one for one, _ in self._paces])
        self._see_who_came()
        return self._new_too_many(over)

    def likely(self) -> list[str]:
        """Return the threads of the list in which something may happen, likeliest first."""
        rows = self._list.rows
        held = self._watch.holders(list(rows))
        recent = self._now_ms() - RECENT_MS
        runs = [one for one in rows if self._told.runs(one)]
        lately = [one.id for one in rows.values() if one.updated_at >= recent]
        if not (self._snapshots.crowded or held):
            lately = []
        return [*dict.fromkeys([*runs, *held, *lately])]

    def may_move(self, thread_id: str) -> bool:
        """Whether something can happen that Codex's list would not show first."""
        told = self._told.get(thread_id)
        if told is None or told.turns.is_running or thread_id not in self._list.rows:
            return True
        return thread_id in self._holders or self._snapshots.crowded

    def _see_who_came(self) -> None:
        """A thread is read at once where another program came to it, or left."""
        crowded = self._snapshots.crowded
        there = {one: (self._holders.get(one), crowded) for one, _ in self._paces}
        for thread_id, who in there.items():
            if self._there.get(thread_id, who) != who:
                self._news.add(thread_id)
        self._there = there

    def _new_too_many(self, over: list[str]) -> list[str]:
        named = set(self._interest.named())
        self._too_many &= set(over)
        new = [one for one in over if one in named and one not in self._too_many]
        self._too_many.update(new)
        return new
