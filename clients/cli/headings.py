"""Whose the following lines are: told when it is another thread than before. Sans-IO."""

from clients.cli.plain import one_line
from clients.cli.style import Line, Span, dim, line
from transport.protocol.events import ThreadChanged, ThreadStarted
from transport.subscription import EventSeen


class Headings:
    """`names`: titles of threads; without them, in the text of one thread (`root`), only
    its sub-agents get a heading, and the way back from them.
    """

    def __init__(self, *, root: str | None, names: dict[str, str] | None) -> None:
        self._names = names
        self._agents: dict[str, str] = {}  # sub-agents seen, and their titles
        self._thread = root  # whose lines the last ones are

    def meet(self, event: EventSeen) -> None:
        """Learn which threads are sub-agents."""
        self.meet_thread(event.thread_id, event.root_thread_id)
        if event.thread_id in self._agents and isinstance(
            event.data, ThreadStarted | ThreadChanged
        ):
            title = event.data.thread.title
            self._agents[event.thread_id] = title or self._agents[event.thread_id]

    def meet_thread(self, thread_id: str | None, root_thread_id: str | None) -> None:
        """Learn that a thread with a root is a sub-agent."""
        if thread_id is not None and root_thread_id is not None:
            self._agents.setdefault(thread_id, "")

    def before(self, thread_id: str | None) -> list[Line]:
        """Return the heading that lines of this thread need, if they need one."""
        if thread_id is None or thread_id == self._thread:
            return []
        last, self._thread = self._thread, thread_id
        agent = thread_id in self._agents
        if self._names is None and not agent and last not in self._agents:
            return []
        title = self._agents.get(thread_id, "")
        name = one_line((self._names or {}).get(thread_id, title), 60)
        kind = dim("── sub-agent " if agent else "── ")
        return [line(kind, Span(thread_id, "name"), f"  {name}" if name else "")]
