"""The threads of one app-server: a root and its sub-agents, and how each looks. Sans-IO.

PROTOCOL.md sections 5 and 6. Codex says little about a sub-agent's thread: its turns and
items simply come, under its own thread id. Who its parent is, is learnt from the item
that spawned it, from a turn's rootTurnId, or because one writer loads one thread and all
others in it are its children.
"""

from dataclasses import dataclass
from typing import Final

from adapter.limits import KNOWN_THREADS
from transport.protocol.gateway import LeaseState
from transport.protocol.goals import Goal, GoalStatus
from transport.protocol.threads import Thread, ThreadMode, ThreadStatus

_WAITING: Final = frozenset(
    {ThreadStatus.WAITING_ON_APPROVAL, ThreadStatus.WAITING_ON_INPUT}
)

_ACTIVE: Final = _WAITING | {ThreadStatus.RUNNING}


@dataclass(slots=True, kw_only=True)
class Node:
    """One thread. `said`: the status that Codex told last.

    `untold`: thread/started is still to be told, with the first turn. `ran`: a turn of
    it was told. `shown`: the thread as clients saw it last.
    """

    id: str
    parent: str | None = None
    adopted: bool = False
    base: Thread | None = None
    shown: Thread | None = None
    untold: bool = False
    ran: bool = False
    said: ThreadStatus = ThreadStatus.UNKNOWN
    running: str | None = None
    last_turn: str | None = None
    goal: Goal | None = None
    legacy: bool = False
    prompt: str = ""
    name: str | None = None

    @property
    def status(self) -> ThreadStatus:
        """Idle is believed only when no turn runs: Codex says it before turn/completed."""
        if self.running is None or self.said in _WAITING:
            return self.said
        return ThreadStatus.RUNNING

    @property
    def active(self) -> bool:
        """A turn runs, or Codex says that something does, or a goal will start one."""
        return self.running is not None or self.said in _ACTIVE or self.pursues

    @property
    def pursues(self) -> bool:
        """Whether an active goal starts turns."""
        return self.goal is not None and self.goal.status is GoalStatus.ACTIVE

    def rest(self, *, failed: bool) -> None:
        """The running turn has ended; Codex should have said so before, with idle."""
        if self.running is None and self.said in _ACTIVE:
            self.said = ThreadStatus.FAILED if failed else ThreadStatus.IDLE


class Tree:
    """All threads seen in a process."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self._roots: set[str] = set()

    def node(self, thread_id: str) -> Node:
        """Return a thread's node; a new one is a child where one root was adopted."""
        if (found := self.nodes.get(thread_id)) is not None:
            return found
        parent = next(iter(self._roots)) if len(self._roots) == 1 else None
        return self._new(thread_id, parent=parent, untold=parent is not None)

    def drop(self, thread_id: str) -> None:
        """The thread is gone; if it comes back it is described anew."""
        self.nodes.pop(thread_id, None)
        self._roots.discard(thread_id)

    def _new(
        self, thread_id: str, *, parent: str | None = None, untold: bool = False
    ) -> Node:
        if len(self.nodes) >= KNOWN_THREADS:
            self._forget_some()
        node = Node(id=thread_id, parent=parent, untold=untold)
        self.nodes[thread_id] = node
        return node

    def _forget_some(self) -> None:
        """A reader hears of threads for weeks: forget the older half of those of which
        nothing has to be kept; where all are at work, the oldest that were not loaded."""
        others = [one for one in self.nodes.values() if not one.adopted]
        idle = [one for one in others if not one.active]
        for node in (idle or others)[: KNOWN_THREADS // 2]:
            del self.nodes[node.id]

    def adopt(self, thread: Thread, *, parent: str | None) -> Node:
        """Note a thread that we loaded; a root unless it has a parent here."""
        node = self.nodes.get(thread.id)
        if node is None:
            node = self._new(thread.id)
        node.adopted = True
        node.base = thread
        known = parent in self.nodes and thread.id not in self._line(parent)
        node.parent = parent if known else None
        if node.parent is None:
            self._roots.add(thread.id)
        return node

    def begun(self, thread: Thread) -> Node:
        """Note `thread/started`: told with its first turn, for none exists without.

        Behind the answer that loaded the thread it says nothing new: what was told since
        that answer, as settings are, is newer.
        """
        node = self.nodes.get(thread.id)
        if node is None:
            node = self._new(thread.id)
        if not node.adopted:
            node.base = thread
        node.untold = not node.ran
        self.link(thread.id, thread.parent_id)
        return node

    def link(self, child: str, parent: str | None) -> None:
        """Note whose child a thread is; an adopted root never becomes one."""
        node = self.nodes.get(child)
        if node is None:
            node = self._new(child, untold=True)
        if parent is None or node.adopted or child in self._line(parent):
            return
        if node.parent is None and node.base is None and not node.ran:
            node.untold = True
        node.parent = parent

    @property
    def roots(self) -> list[str]:
        """Return the threads that were adopted as roots."""
        return sorted(self._roots)

    def root_of(self, thread_id: str) -> str | None:
        """Return the root of a sub-agent's thread, `None` for a root."""
        node = self.nodes.get(thread_id)
        if node is None:
            return next(iter(self._roots)) if len(self._roots) == 1 else None
        if node.parent is None:
            return None
        above = node.parent
        while (parent := self._parent(above)) is not None:
            above = parent
        return above

    def below(self, thread_id: str) -> frozenset[str]:
        """Return a thread and all known threads below it."""
        return frozenset(
            one for one in (*self.nodes, thread_id) if thread_id in self._line(one)
        )

    def look(self, node: Node) -> Thread | None:
        """Return the thread as it is now; `None` where Codex never described it."""
        base = node.base or self._child(node)
        if base is None:
            return None
        node.base = base
        return base.model_copy(
            update={
                "status": node.status,
                "mode": ThreadMode.LIVE,
                "lease": LeaseState.HELD,
                "parent_id": node.parent or base.parent_id,
                "root_id": self.root_of(node.id),
                "last_turn_id": node.last_turn,
            }
        )

    def _child(self, node: Node) -> Thread | None:
        """Describe a sub-agent that Codex did not: it works where its root does."""
        root = self.nodes.get(self.root_of(node.id) or "")
        if root is None or root.base is None or root is node:
            return None
        return Thread(
            id=node.id,
            title=node.name,
            preview=node.prompt,
            cwd=root.base.cwd,
            source="subAgent",
            status=node.status,
            mode=ThreadMode.LIVE,
            lease=LeaseState.HELD,
            created_at=root.base.updated_at,
            updated_at=root.base.updated_at,
        )

    def _parent(self, thread_id: str) -> str | None:
        node = self.nodes.get(thread_id)
        return None if node is None else node.parent

    def _line(self, thread_id: str) -> list[str]:
        """Return the thread and those above it."""
        line = [thread_id]
        while (parent := self._parent(line[-1])) is not None:
            line.append(parent)
        return line
