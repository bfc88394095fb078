"""What was told of which threads, and which are to be read for news. Sans-IO.

PROTOCOL.md section 3 (Modes). `follow` knows one thread; here are all of them, as many as
are remembered.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterator

from adapter.runtime.events import RuntimeEvent
from agent.following.follow import Told
from agent.limits import TOLD_THREADS


class ToldThreads:
    """The threads of which something was told; the one longest ago is forgotten first."""

    def __init__(self) -> None:
        self._told: OrderedDict[str, Told] = OrderedDict()

    def __len__(self) -> int:
        return len(self._told)

    def __contains__(self, thread_id: str) -> bool:
        return thread_id in self._told

    def names(self) -> Collection[str]:
        """Return which they are."""
        return self._told.keys()

    def get(self, thread_id: str) -> Told | None:
        """Return what was told of a thread."""
        return self._told.get(thread_id)

    def fresh(self, thread_id: str) -> Told:
        """Return the record of a thread of which nothing was told; not kept yet."""
        return Told(thread_id, root=self._root_of(thread_id))

    def keep(self, told: Told) -> Told:
        """Remember it from now on."""
        self._told[told.thread_id] = told
        while len(self._told) > TOLD_THREADS:
            self._told.popitem(last=False)
        return told

    def heard(self, thread_id: str, event: RuntimeEvent) -> None:
        """Take down what a writer of ours has told."""
        told = self._told.get(thread_id)
        if told is None:
            told = self.keep(Told(thread_id, root=event.root_thread_id))
        self._told.move_to_end(thread_id)
        told.note(event)

    def note(self, thread_id: str, event: RuntimeEvent) -> None:
        """Take down what was told beside every writer, if the thread is remembered."""
        if (told := self._told.get(thread_id)) is not None:
            told.note(event)

    def drop(self, thread_id: str) -> None:
        """The thread is gone."""
        self._told.pop(thread_id, None)

    def clear(self) -> None:
        """Forget all of them."""
        self._told.clear()

    def runs(self, thread_id: str) -> bool:
        """Whether a turn of the thread was told to have begun, and not to have ended."""
        told = self._told.get(thread_id)
        return told is not None and told.turns.is_running

    def children_at_work(self, thread_id: str) -> Collection[str]:
        """Return the thread's sub-agents, while it runs."""
        told = self._told.get(thread_id)
        return told.children if told is not None and told.turns.is_running else ()

    def saw_begin(self, thread_id: str) -> bool:
        """Whether a sub-agent's start was seen, so that all of it is news."""
        return any(one.children.get(thread_id) is False for one in self._told.values())

    def _root_of(self, thread_id: str) -> str | None:
        for one in self._told.values():
            if thread_id in one.children:
                return one.root or one.thread_id
        return None


class News:
    """Threads that are to be read now, because something has happened in them."""

    def __init__(self) -> None:
        self._since: dict[str, int | None] = {}
        self._look_new: set[str] = set()

    def __iter__(self) -> Iterator[str]:
        return iter([*self._since])

    def add(self, thread_id: str, since: int | None = None) -> None:
        """Something has happened. `since`: until when (ms) the thread is known."""
        self._since.setdefault(thread_id, since)

    def take(self, thread_id: str) -> int | None:
        """The thread is read now: return until when it is known."""
        return self._since.pop(thread_id, None)

    def note_look(self, thread_id: str) -> None:
        """The thread itself looks new: it has another title, say."""
        self._look_new.add(thread_id)

    def looks_new(self, thread_id: str) -> bool:
        """Whether that was noted, and not told yet."""
        return thread_id in self._look_new

    def look_told(self, thread_id: str) -> None:
        """How the thread looks was told."""
        self._look_new.discard(thread_id)

    def keep_looks(self, threads: Collection[str]) -> None:
        """Of all other threads it need not be told: they could not be read."""
        self._look_new.intersection_update(threads)

    def drop(self, thread_id: str) -> None:
        """The thread is gone."""
        self._since.pop(thread_id, None)
        self._look_new.discard(thread_id)

    def clear(self) -> None:
        """Nothing is news."""
        self._since.clear()
        self._look_new.clear()
