"""What a device shows of one thread, from events alone, and what must be true of them."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import trio

from tests.support.agents import client_info
from transport.background import open_background
from transport.client import (
    Client,
    ClientEvent,
    DeltaSeen,
    EventSeen,
    Resumed,
    Target,
    open_client,
)
from transport.protocol.approvals import Approval
from transport.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    DeltaChannel,
    ItemCompleted,
    ItemStarted,
    ThreadChanged,
    TurnCompleted,
    TurnStarted,
)
from transport.protocol.items import AgentMessage, Item


@dataclass
class Screen:
    """What a device shows of one thread.

    `grown`: messages as deltas made them; `torn`: those whose whole text is another.
    `heard`: seqs of all events but `item/started`, which a resume may hand over as open.
    """

    thread: dict[str, Any] = field(default_factory=dict[str, Any])
    turns: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    items: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    grown: dict[str, str] = field(default_factory=dict[str, str])
    torn: list[str] = field(default_factory=list[str])
    verdicts: list[str] = field(default_factory=list[str])
    done: list[str] = field(default_factory=list[str])
    asked: list[Approval] = field(default_factory=list[Approval])
    resolved: list[Approval] = field(default_factory=list[Approval])
    heard: list[int] = field(default_factory=list[int])
    _names: dict[int, str] = field(default_factory=dict[int, str])
    _news: trio.lowlevel.ParkingLot = field(default_factory=trio.lowlevel.ParkingLot)

    async def run(
        self, client: Client, thread: str, *, task_status: trio.TaskStatus[None]
    ) -> None:
        """Show until cancelled; started when all from now on is shown."""
        async with client.subscribe([thread]) as events:
            async for event in events:
                self.take(event)
                if isinstance(event, Resumed) and event.verdict == "new":
                    task_status.started()
                self._news.unpark_all()

    def take(self, event: ClientEvent) -> None:
        """Show one event."""
        match event:
            case Resumed(verdict=verdict, open=rows):
                self.verdicts.append(verdict)
                for row in rows:
                    self._open(row.ref, row.item)
            case DeltaSeen(ref=ref, channel=DeltaChannel.TEXT, text=text):
                self.grown[self._names[ref]] += text
            case EventSeen(data=ItemStarted(ref=ref, item=item)):
                self._open(ref, item)
            case EventSeen():
                self.heard.append(event.seq)
                self._see(event)
            case _:
                pass

    def _see(self, event: EventSeen) -> None:
        match event.data:
            case ItemCompleted(item=item):
                self._complete(item)
            case TurnStarted(turn=turn) | TurnCompleted(turn=turn):
                self.turns[turn.id] = turn.wire()
            case ThreadChanged(thread=thread):
                self.thread = thread.wire()
            case ApprovalRequested(approval=approval):
                self.asked.append(approval)
            case ApprovalResolved(approval=approval):
                self.resolved.append(approval)
            case _:
                pass

    def _open(self, ref: int, item: Item) -> None:
        self._names[ref] = item.id
        self.items[item.id] = item.wire()
        self.grown[item.id] = item.text if isinstance(item, AgentMessage) else ""

    def _complete(self, item: Item) -> None:
        self.items[item.id] = item.wire()
        self.done.append(item.id)
        grown = self.grown.get(item.id, "")
        if isinstance(item, AgentMessage) and not item.text.startswith(grown):
            self.torn.append(grown)

    async def until(self, what: Callable[[], bool]) -> None:
        """Return when that is so; looked at after each event."""
        while not what():
            await self._news.park()

    def shows(self, text: str) -> bool:
        """Whether some message has grown so far."""
        return any(text in said for said in self.grown.values())

    def has(self, text: str) -> bool:
        """Whether some item is complete and says exactly that."""
        return any(self.items[item].get("text") == text for item in self.done)

    def is_over(self, turn_id: str | None = None) -> bool:
        """Whether that turn has ended, or any."""
        return any(
            turn["status"] == "completed"
            for known, turn in self.turns.items()
            if turn_id in (None, known)
        )


@asynccontextmanager
async def open_screen(
    target: Target, thread: str, name: str
) -> AsyncGenerator[tuple[Client, Screen]]:
    """A device that shows a thread, for the length of the block."""
    screen = Screen()
    info = client_info(name, name[0] * 32)
    async with (
        open_client(target, info) as client,
        open_background(partial(screen.run, client, thread)),
    ):
        yield client, screen
