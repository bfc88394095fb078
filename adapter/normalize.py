"""Codex notifications to v2 events: one state machine for one app-server. Sans-IO.

PROTOCOL.md section 6. The table is in `adapter/notifications.py`, the state it works on
in `adapter/live.py`. Interface first; the bodies follow in the next commits.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from adapter.runtime import RuntimeEvent
from transport.protocol.items import Item
from transport.protocol.threads import Thread, ThreadStatus
from transport.protocol.turns import Turn


class Normalizer:
    """What one app-server process tells, as v2 events; knows what runs in it."""

    def __init__(self, *, provenance: str = "codex") -> None:
        raise NotImplementedError

    @property
    def busy(self) -> bool:
        """A running turn, an open item, a background command, an active goal; children too."""
        raise NotImplementedError

    @property
    def misfits(self) -> Mapping[str, int]:
        """How often a method's shape did not fit, or its name was unknown."""
        raise NotImplementedError

    def notification(
        self, method: str, params: Mapping[str, Any], at: int
    ) -> list[RuntimeEvent]:
        """Take one notification in; never raises on what Codex said. `at`: ms."""
        raise NotImplementedError

    def adopt(
        self, thread: Mapping[str, Any], turns: Sequence[Mapping[str, Any]]
    ) -> None:
        """Note what an answer to start or resume told (the raw thread, its newest turns)."""
        raise NotImplementedError

    def settle(self, answer: Mapping[str, Any]) -> None:
        """Note the settings in an answer to start or resume (for `Thread.settings`)."""
        raise NotImplementedError

    def died(self, at: int, reason: str) -> list[RuntimeEvent]:
        """The process crashed: close all that was open, and say `notice runtimeDied`."""
        raise NotImplementedError

    def ended(self, at: int) -> list[RuntimeEvent]:
        """The process ended as it should: close what was open, without a notice."""
        raise NotImplementedError

    def thread(self, thread_id: str) -> Thread | None:
        """The thread as of now (mode live, lease held), once its object is known."""
        raise NotImplementedError

    def root_of(self, thread_id: str) -> str | None:
        """The root of a sub-agent's thread; `None`: it is a root (or unknown) itself."""
        raise NotImplementedError

    def tree(self, thread_id: str) -> frozenset[str]:
        """The thread and all known sub-agents below it."""
        raise NotImplementedError

    def item(self, thread_id: str, item_id: str) -> Item | None:
        """An open item with its text so far."""
        raise NotImplementedError

    def status(self, thread_id: str) -> ThreadStatus:
        """What the thread does now; never idle while its turn has not ended."""
        raise NotImplementedError

    def running_turn(self, thread_id: str) -> str | None:
        """The thread's running turn."""
        raise NotImplementedError

    def last_turn(self, thread_id: str) -> str | None:
        """The newest turn that was adopted or began here."""
        raise NotImplementedError

    def live_turn(self, turn_id: str) -> Turn | None:
        """A turn that runs here, with its items so far."""
        raise NotImplementedError

    def ended_turn(self, turn_id: str) -> Turn | None:
        """A turn that ended here (the newest 256), without items."""
        raise NotImplementedError

    def knows_turn(self, turn_id: str) -> bool:
        """Whether the turn was adopted or began here."""
        raise NotImplementedError
