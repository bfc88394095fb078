"""Codex notifications to v2 events: one state machine for one app-server. Sans-IO.

PROTOCOL.md section 6. The table is in `adapter/events/notifications.py`, the state that it
changes in `adapter/events/live.py`. Nothing that Codex says raises here: a shape that does not
fit, or a name that nobody knows, is a notice and a count.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from adapter.errors import AnswerShapeError
from adapter.events import live_threads, live_turns
from adapter.events.live import Live
from adapter.events.notices import Notices, event_of, notice
from adapter.events.notifications import NOTIFICATIONS, Ignored
from adapter.events.passing import Passed
from adapter.events.rules import Rule
from adapter.limits import MISFIT_NAMES
from adapter.runtime.events import RuntimeEvent
from adapter.shapes.settings import thread_settings_from
from adapter.shapes.shapes import MISFITS, Shape, maybe_id
from transport.protocol.events import Notice, NoticeLevel
from transport.protocol.items import Item
from transport.protocol.threads import Thread, ThreadStatus
from transport.protocol.turns import Turn

_UNFIT: Final = (AnswerShapeError, *MISFITS)


class Normalizer:
    """What one app-server process tells, as v2 events; knows what runs in it."""

    def __init__(
        self, *, provenance: str = "codex", slept_ms: Callable[[], int] = lambda: 0
    ) -> None:
        """`slept_ms`: for how long the computer has slept since some moment."""
        self._live = Live(provenance, slept_ms)
        self._notices = Notices()
        self._misfits: dict[str, int] = {}
        self._ignored: dict[str, int] = {}

    # Taking in

    def notification(
        self, method: str, params: Mapping[str, Any], at: int
    ) -> list[RuntimeEvent]:
        """Take one notification in; never raises on what Codex said. `at`: ms."""
        row = NOTIFICATIONS.get(method)
        try:
            match row:
                case Rule():
                    return row.apply(self._live, params, at)
                case Passed():
                    return self._pass_on(row, params, at)
                case Ignored():
                    self._ignored[method] = self._ignored.get(method, 0) + 1
                    return []
                case None:
                    return self._unfit(method, "is not known", params, at)
        except _UNFIT:
            return self._unfit(method, "has an unknown shape", params, at)

    def unread(
        self, method: str, params: Mapping[str, Any], at: int
    ) -> list[RuntimeEvent]:
        """Say that a notification was too long to be read; `params`: what is known."""
        return self._unfit(method, "is too long", params, at)

    def end_unread(self, thread_id: str, at: int) -> list[RuntimeEvent]:
        """The thread's turn has ended, how could not be read: it seems interrupted."""
        return live_turns.end_unread(self._live, thread_id, at)

    def adopt(
        self, thread: Mapping[str, Any], turns: Sequence[Mapping[str, Any]]
    ) -> None:
        """Note what an answer to start or resume told: the raw thread, its newest turns.

        `turns` are newest first. Raises: AnswerShapeError.
        """
        with Shape("thread"):
            live_threads.adopt(self._live, thread, turns)

    def settle(self, answer: Mapping[str, Any]) -> None:
        """Note the settings in an answer to start or resume, after `adopt`.

        Raises: AnswerShapeError.
        """
        settings = thread_settings_from(answer)
        thread_id = str(answer["thread"]["id"])
        node = self._live.tree.node(thread_id)
        if node.base is not None:
            node.base = node.base.model_copy(update={"settings": settings})
            node.shown = self._live.tree.look(node)

    def reverted(self, thread_id: str, left: str, at: int) -> list[RuntimeEvent]:
        """Turns were taken back while nothing ran; `left`: the newest that stays."""
        return live_threads.reverted(self._live, thread_id, left, at)

    def died(self, at: int, reason: str) -> list[RuntimeEvent]:
        """The process crashed: close all that was open, and say `notice runtimeDied`."""
        events = self.ended(at)
        roots: list[str | None] = [*self._live.tree.roots] or [None]
        for root in roots:
            said = notice(NoticeLevel.ERROR, "runtimeDied", reason, root)
            events.append(event_of(said, root=None, at=at))
        return events

    def ended(self, at: int) -> list[RuntimeEvent]:
        """The process ended as it should: close what was open, without a notice."""
        return live_threads.all_over(self._live, at)

    # Asking

    @property
    def busy(self) -> bool:
        """A running turn, an open item, a background command, an active goal; children too."""
        live = self._live
        if live.items or live.still_running:
            return True
        return any(node.active for node in live.tree.nodes.values())

    @property
    def misfits(self) -> Mapping[str, int]:
        """How often a method's shape did not fit, or its name was unknown."""
        return self._misfits

    @property
    def ignored(self) -> Mapping[str, int]:
        """How often a method was ignored on purpose."""
        return self._ignored

    @property
    def skipped(self) -> Mapping[str, int]:
        """How often something was left out, by the reason for it."""
        return self._live.skipped

    def thread(self, thread_id: str) -> Thread | None:
        """Return the thread as of now (mode live, lease held), once it is described."""
        node = self._live.tree.nodes.get(thread_id)
        return None if node is None else self._live.tree.look(node)

    def root_of(self, thread_id: str) -> str | None:
        """Return the root of a sub-agent's thread; `None`: it is a root itself."""
        return self._live.tree.root_of(thread_id)

    def tree(self, thread_id: str) -> frozenset[str]:
        """Return the thread and all known sub-agents below it."""
        return self._live.tree.below(thread_id)

    def item(self, thread_id: str, item_id: str) -> Item | None:
        """Return an open item with its text so far."""
        opened = self._live.items.get(thread_id, item_id)
        return None if opened is None else opened.now()

    def status(self, thread_id: str) -> ThreadStatus:
        """Return what the thread does now; never idle while its turn has not ended."""
        node = self._live.tree.nodes.get(thread_id)
        return ThreadStatus.UNKNOWN if node is None else node.status

    def running_turn(self, thread_id: str) -> str | None:
        """Return the thread's running turn."""
        node = self._live.tree.nodes.get(thread_id)
        return None if node is None else node.running

    def codex_turn(self, turn_id: str) -> str:
        """Return the id under which Codex runs a turn: that of a review is another."""
        return self._live.runs_as(turn_id)

    def last_turn(self, thread_id: str) -> str | None:
        """Return the newest turn that was adopted or began here."""
        node = self._live.tree.nodes.get(thread_id)
        return None if node is None else node.last_turn

    def live_turn(self, turn_id: str) -> Turn | None:
        """Return a turn that runs here, with its items so far."""
        record = self._live.turns.get(self._live.turn_id(turn_id))
        if record is None:
            return None
        items: list[Item] = []
        for item_id, ended in record.items.items():
            item = ended or self.item(record.thread_id, item_id)
            if item is not None:
                items.append(item)
        return record.turn(items)

    def ended_turn(self, turn_id: str) -> Turn | None:
        """Return a turn that ended here lately, without items."""
        return self._live.ended.get(self._live.turn_id(turn_id))

    def knows_turn(self, turn_id: str) -> bool:
        """Whether the turn was adopted or began here."""
        return self._live.knows(self._live.turn_id(turn_id))

    # Telling a person

    def _pass_on(
        self, row: Passed, params: Mapping[str, Any], at: int
    ) -> list[RuntimeEvent]:
        message = row.say(params)
        if message is None:
            return []
        said = self._notice(row.level, row.code, message, params)
        root = self._root_of(said)
        if row.repeats:
            return [event_of(said, root=root, at=at)]
        return self._notices.once(said, root=root, at=at)

    def _unfit(
        self, method: str, what: str, params: object, at: int
    ) -> list[RuntimeEvent]:
        """Count it, and say it once for a method: it would come again and again."""
        method = method[:128]
        if method not in self._misfits and len(self._misfits) >= MISFIT_NAMES:
            method = "…"
        self._misfits[method] = self._misfits.get(method, 0) + 1
        if self._misfits[method] > 1:
            return []
        words = f"a message of Codex {what} here and was left out: {method}"
        said = self._notice(NoticeLevel.WARNING, "unknownMessage", words, params)
        return [event_of(said, root=self._root_of(said), at=at)]

    def _notice(
        self, level: NoticeLevel, code: str, message: str, params: object
    ) -> Notice:
        return notice(level, code, message, _thread_of(params))

    def _root_of(self, said: Notice) -> str | None:
        return None if said.thread_id is None else self.root_of(said.thread_id)


def _thread_of(params: object) -> str | None:
    if not isinstance(params, Mapping):
        return None
    thread_id = cast("Mapping[str, object]", params).get("threadId")
    return maybe_id(thread_id) if isinstance(thread_id, str) else None
