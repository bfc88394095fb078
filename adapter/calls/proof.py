"""Whether what we asked of a turn really happens. Sans-IO. PROTOCOL.md section 4.

The answer to turn/start is no proof: on a running turn codex 0.145 and 0.147 answer
with an id that never starts. Proof is turn/started with the answered id, or our key in
a userMessage, which also names the turn that our text went into.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

ITEM_NEWS = frozenset({"item/started", "item/completed"})
PROCESS_ENDED: Final = "threadgate/processEnded"
"""What is told in Codex's place when its process has ended; no codex says it."""


class TurnProof:
    """Watches the stream of one thread from before the request is sent."""

    def __init__(self, thread_id: str, client_key: str) -> None:
        self._thread_id = thread_id
        self._client_key = client_key
        self._started: set[str] = set()
        self._with_key: str | None = None
        self._answered: str | None = None

    def accepted(self, answer: Mapping[str, Any]) -> None:
        """Note the answer to turn/start."""
        self._answered = _field(answer.get("turn"), "id")

    def notified(self, method: str, params: Mapping[str, Any]) -> None:
        """Look at one notification."""
        if params.get("threadId") != self._thread_id:
            return
        if method == "turn/started":
            turn_id = _field(params.get("turn"), "id")
            if turn_id is not None:
                self._started.add(turn_id)
        elif method in ITEM_NEWS and is_message(params.get("item"), self._client_key):
            self._with_key = _field(params, "turnId")

    @property
    def turn_id(self) -> str | None:
        """The turn that runs with our text, once that is certain."""
        if self._with_key is not None:
            return self._with_key
        return self._answered if self._answered in self._started else None


class RunProof:
    """Watches for a turn of Codex's own making: a compaction or a review.

    Nothing of ours is in it. A compaction shows itself by its item, or by its end where
    it came to none; a review by the turn that works for the answered one.
    """

    def __init__(self, thread_id: str, item_type: str) -> None:
        self._thread_id = thread_id
        self._item_type = item_type
        self._answered: str | None = None
        self._roots: dict[str, str] = {}
        self._turn_id: str | None = None

    def accepted(self, answer: Mapping[str, Any]) -> None:
        """Note the answer; that to a compaction says nothing."""
        self._answered = _field(answer.get("turn"), "id")

    def notified(self, method: str, params: Mapping[str, Any]) -> None:
        """Look at one notification."""
        if params.get("threadId") != self._thread_id:
            return
        turn = params.get("turn")
        turn_id = _field(turn, "id")
        if method == "turn/started" and turn_id is not None:
            self._roots[turn_id] = _field(turn, "rootTurnId") or turn_id
        elif method == "turn/completed" and turn_id in self._roots:
            self._turn_id = self._turn_id or self._roots[turn_id or ""]
        elif method in ITEM_NEWS and _field(params.get("item"), "type") == (
            self._item_type
        ):
            self._turn_id = _field(params, "turnId")

    @property
    def turn_id(self) -> str | None:
        """The turn, once it is certain that it runs, or did."""
        if self._answered is not None:
            roots = self._roots.values()
            return self._answered if self._answered in roots else None
        return self._turn_id


class SteerProof:
    """Watches a running turn for our words. `seen`: the model has them; `over`: it ended."""

    def __init__(self, thread_id: str, turn_id: str, client_key: str) -> None:
        self.thread_id = thread_id
        self.seen = False
        self.over = False
        self._turn_id = turn_id
        self._client_key = client_key

    def notified(self, method: str, params: Mapping[str, Any]) -> None:
        """Look at one notification, or at the end of all."""
        if method == PROCESS_ENDED:
            self.over = True
        if params.get("threadId") != self.thread_id:
            return
        if method in ITEM_NEWS and is_message(params.get("item"), self._client_key):
            self.seen = True
        elif method == "turn/completed":
            self.over = self.over or _field(params.get("turn"), "id") == self._turn_id
        elif method == "thread/closed":
            self.over = True


def is_message(item: object, client_key: str) -> bool:
    """Whether an item is the userMessage that was sent with this key."""
    return (
        _field(item, "type") == "userMessage" and _field(item, "clientId") == client_key
    )


def _field(value: object, name: str) -> str | None:
    if not isinstance(value, Mapping):
        return None
    found = cast("Mapping[str, object]", value).get(name)
    return found if isinstance(found, str) and found else None
