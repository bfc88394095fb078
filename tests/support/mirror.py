"""A client that shows threads, by the rules of PROTOCOL.md section 2 and no others."""

from typing import Any

from transport.client import Client, ClientEvent, DeltaSeen, EventSeen, Resumed
from transport.errors import NotFound
from transport.protocol import approvals, threads
from transport.protocol.approvals import ApprovalState
from transport.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    ItemCompleted,
    ItemStarted,
    Open,
    ThreadChanged,
    ThreadRemoved,
    ThreadStarted,
    TurnCompleted,
    TurnStarted,
)
from transport.protocol.items import AgentMessage, Item, ItemStatus
from transport.protocol.methods import APPROVAL_LIST, THREAD_LIST, THREAD_READ
from transport.protocol.turns import Turn

OPEN_STATES = (ApprovalState.PENDING, ApprovalState.ANSWERING)


class Mirror:
    """What a client shows. Items are agent messages: id → (status, text)."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.threads: dict[str, str | None] = {}
        self.turns: dict[str, dict[str, str]] = {}
        self.items: dict[str, dict[str, tuple[str, str]]] = {}
        self.asked: set[str] = set()
        self.verdicts: list[str] = []
        self._refs: dict[int, tuple[str, str]] = {}
        self.idle = False

    async def serve(self, *, deltas: bool = True) -> None:
        """Subscribe, and show what comes."""
        async with self._client.subscribe("all", deltas=deltas) as events:
            while True:
                self.idle = True
                event = await anext(events)
                self.idle = False
                await self.take(event)

    async def take(self, event: ClientEvent) -> None:
        match event:
            case Resumed():
                self.verdicts.append(event.verdict)
                if event.verdict != "ok":
                    await self.read_all()
                self._refs = {}
                for one in event.open:
                    self._begin(one)
            case DeltaSeen():
                self._grow(event.ref, event.text)
            case EventSeen():
                await self._see(event)

    async def read_all(self) -> None:
        """Read again what is shown."""
        page = await self._client.call(THREAD_LIST, threads.ThreadListParams(limit=100))
        self.threads, self.turns, self.items = {}, {}, {}
        for thread in page.threads:
            await self._read(thread.id)
        ask = approvals.ApprovalListParams()
        found = await self._client.call(APPROVAL_LIST, ask)
        self.asked = {one.id for one in found.approvals}

    async def _read(self, thread_id: str) -> None:
        params = threads.ThreadReadParams(thread_id=thread_id, turns=100)
        try:
            read = await self._client.call(THREAD_READ, params)
        except NotFound:
            return
        self.threads[thread_id] = read.thread.title
        self.turns[thread_id] = {}
        self.items[thread_id] = {}
        for turn in read.turns:
            self._turn(thread_id, turn)
            for item in turn.items or ():
                self._item(thread_id, item)

    def _turn(self, thread_id: str, turn: Turn) -> None:
        self.turns.setdefault(thread_id, {})[turn.id] = str(turn.status)

    def _item(self, thread_id: str, item: Item) -> None:
        if isinstance(item, AgentMessage):
            shown = (str(item.status), item.text)
            self.items.setdefault(thread_id, {})[item.id] = shown

    def _begin(self, one: Open) -> None:
        assert one.thread_id is not None
        self._refs[one.ref] = (one.thread_id, one.item.id)
        self._item(one.thread_id, one.item)

    def _grow(self, ref: int, text: str) -> None:
        thread_id, item_id = self._refs[ref]
        status, before = self.items[thread_id][item_id]
        self.items[thread_id][item_id] = (status, before + text)

    async def _see(self, event: EventSeen) -> None:
        thread_id = event.thread_id or ""
        match event.data:
            case ThreadStarted(thread=thread) | ThreadChanged(thread=thread):
                if thread.id not in self.threads:
                    await self._read(thread.id)
                if thread.id in self.threads:
                    self.threads[thread.id] = thread.title
            case ThreadRemoved(thread_id=gone):
                for shown in (self.threads, self.turns, self.items):
                    shown.pop(gone, None)
            case TurnStarted(turn=turn) | TurnCompleted(turn=turn):
                self._turn(thread_id, turn)
            case ItemStarted(ref=ref, item=item):
                self._refs[ref] = (thread_id, item.id)
                self._item(thread_id, item)
            case ItemCompleted(item=item):
                self._item(thread_id, item)
            case ApprovalRequested(approval=approval):
                self.asked.add(approval.id)
            case ApprovalResolved(approval=approval):
                self.asked.discard(approval.id)
            case _:
                pass

    def shows(self, *, growing: bool = True) -> dict[str, Any]:
        """Return all of it, comparable. `growing`: with texts that are not whole yet."""
        known = sorted(self.threads)
        items = {one: dict(self.items.get(one, {})) for one in known}
        for of_thread in items.values():
            for item_id, (status, _) in of_thread.items():
                if not growing and status == ItemStatus.IN_PROGRESS:
                    of_thread[item_id] = (status, "")
        return {
            "threads": {one: self.threads[one] for one in known},
            "turns": {one: self.turns.get(one, {}) for one in known},
            "items": items,
            "asked": self.asked,
        }
