"""The thread that a fake writer has loaded, and its turn: the test plays the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import trio

from adapter.runtime.acts import InputPart
from adapter.runtime.events import Emit, Emitted, ItemClosed, ItemDelta, ItemOpened
from tests.support.fake_threads import AT, Stored, make_turn
from transport.protocol.events import (
    DeltaChannel,
    EventData,
    TurnCompleted,
    TurnStarted,
)
from transport.protocol.items import AgentMessage, Item, ItemStatus
from transport.protocol.turns import Turn, TurnStatus

if TYPE_CHECKING:
    from tests.support.fake_runtime import FakeRuntime


class FakeTurns:
    """One thread and what runs in it. `sent`: texts that reached the model, with their key."""

    def __init__(self, runtime: FakeRuntime, emit: Emit) -> None:
        self.emit = emit
        self.sent: list[tuple[str, str]] = []
        self.parts: list[tuple[InputPart, ...]] = []  # of each message, whole
        self._runtime = runtime
        self._stored: Stored | None = None
        self._known: set[str] = set()
        self._ended: set[str] = set()
        self._last: str | None = None
        self._turn: Turn | None = None
        self._open: dict[str, Item] = {}
        self._news = trio.Event()

    @property
    def thread_id(self) -> str | None:
        return self._stored.thread.id if self._stored else None

    @property
    def running_turn_id(self) -> str | None:
        return self._turn.id if self._turn else None

    @property
    def last_turn_id(self) -> str | None:
        return self._last

    def knows_turn(self, turn_id: str) -> bool:
        return turn_id in self._known

    def has_ended(self, turn_id: str) -> bool:
        return turn_id in self._ended

    def live_turn(self, turn_id: str) -> Turn | None:
        if self._turn is None or self._turn.id != turn_id:
            return None
        items = [*(self._turn.items or ()), *self._open.values()]
        return self._turn.model_copy(update={"items": items})

    def stir(self) -> None:
        """Wake who waits for busy or idle, after a change of `busy_too`."""
        self._news.set()
        self._news = trio.Event()

    def begin_turn(self, parts: Sequence[InputPart], *, client_key: str) -> Turn:
        """Start a turn at once (a test calls this for others' queued messages too)."""
        assert self._stored is not None
        self.parts.append(tuple(parts))
        self.sent.extend((part, client_key) for part in parts if isinstance(part, str))
        turn_id = self._runtime.next_id("turn")
        turn = make_turn(turn_id, self._stored.thread.id, TurnStatus.IN_PROGRESS)
        self._turn = turn.model_copy(update={"items": []})
        self._known.add(turn_id)
        self._last = turn_id
        key = client_key if self._runtime.keeps_keys else None
        said = [
            item.model_copy(update={"client_key": key}) for item in turn.items or ()
        ]
        interrupted = turn.model_copy(
            update={"status": TurnStatus.INTERRUPTED, "items": said}
        )
        self._stored.turns.append(interrupted)  # how history tells a running turn
        self._runtime.threads.setdefault(self._stored.thread.id, self._stored)
        self._tell(TurnStarted(turn=self._turn.model_copy(update={"items": None})))
        return self._turn

    def begin_item(self, item: Item) -> None:
        """Open an item of the running turn."""
        self._open[item.id] = item
        self._tell_open(item)

    def delta(
        self, item_id: str, text: str, channel: DeltaChannel = DeltaChannel.TEXT
    ) -> None:
        """Stream text of an open item."""
        assert self.thread_id is not None
        item = self._open[item_id]
        if isinstance(item, AgentMessage):
            self._open[item_id] = item.model_copy(update={"text": item.text + text})
        self.emit(
            ItemDelta(
                at=AT,
                thread_id=self.thread_id,
                item_id=item_id,
                channel=channel,
                part=0,
                text=text,
            )
        )

    def end_item(self, item: Item) -> None:
        """Close an item, whole; the disk has it from now on."""
        assert self.thread_id is not None
        self._open.pop(item.id, None)
        if self._turn is not None:
            self._turn = self._turn.model_copy(
                update={"items": [*(self._turn.items or ()), item]}
            )
        self.emit(ItemClosed(at=AT, thread_id=self.thread_id, item=item))

    def say(self, text: str) -> None:
        """Play a whole agent message: started, one delta, completed."""
        assert self._turn is not None
        message = AgentMessage(
            id=self._runtime.next_id("item"),
            turn_id=self._turn.id,
            status=ItemStatus.IN_PROGRESS,
            text="",
        )
        self.begin_item(message)
        self.delta(message.id, text)
        done = {"status": ItemStatus.COMPLETED, "text": text}
        self.end_item(message.model_copy(update=done))

    def finish_turn(self, status: TurnStatus = TurnStatus.COMPLETED) -> Turn:
        """End the running turn: open items first, then turn/completed."""
        assert self._turn is not None
        assert self._stored is not None
        for item in list(self._open.values()):
            self.end_item(item.model_copy(update={"status": ItemStatus.INTERRUPTED}))
        turn = self._turn.model_copy(
            update={"status": status, "completed_at": AT + 1_000}
        )
        self._turn = None
        self._ended.add(turn.id)
        began = [old for old in self._stored.turns if old.id == turn.id]
        kept = [old for old in self._stored.turns if old.id != turn.id]
        said = [item for old in began for item in old.items or ()]
        whole = turn.model_copy(update={"items": [*said, *(turn.items or ())]})
        self._stored.turns = [*kept, whole]
        self._tell(TurnCompleted(turn=turn.model_copy(update={"items": None})))
        return turn

    def _tell(self, data: EventData) -> None:
        self.emit(Emitted(at=AT, thread_id=self.thread_id, data=data))
        self._news.set()
        self._news = trio.Event()

    def _tell_open(self, item: Item) -> None:
        assert self.thread_id is not None
        self.emit(ItemOpened(at=AT, thread_id=self.thread_id, item=item))

    def _load(self, stored: Stored) -> None:
        self._stored = stored
        self._known = {turn.id for turn in stored.turns[-1:]}
        self._last = stored.turns[-1].id if stored.turns else None
