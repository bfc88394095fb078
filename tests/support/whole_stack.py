"""An Agent's real edge and door on the fake runtime, and real clients, all in memory.

`Stack` is everything between `run_agent` and the sockets; `Cuttable` is a connection that
ends after so many bytes, in the middle of whatever they are; `Mirror` is a client that
shows threads, by the rules of PROTOCOL.md section 2 and no others.
"""

import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

import trio
from trio.testing import (
    MemoryReceiveStream,
    MemorySendStream,
    memory_stream_pair,
    wait_all_tasks_blocked,
)

from agent.door import Door, build_door
from agent.edge import build_doors
from agent.events.feed import Feed
from agent.events.journal import Journal
from agent.pairing.device_records import Device
from agent.reach import Reach
from agent.sessions.acts import Acts
from agent.sessions.serve import Doors
from agent.sessions.session_table import SessionTable
from agent.sessions.sessions import Session
from agent.state import State, open_state
from tests.support.agents import client_info, make_config
from tests.support.door import FakeWatch, clocks, inline, wall_ms
from tests.support.fake_runtime import FakeRuntime
from transport.channel import Channel, Mode, connect_channel
from transport.client import Client, ClientEvent, DeltaSeen, EventSeen, Resumed
from transport.errors import NotFound, UnreachableError
from transport.identities import PrivateKey, Secret
from transport.limits import HANDSHAKE_S
from transport.protocol import approvals, threads
from transport.protocol.admin import DeviceGrantParams
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
from transport.protocol.gateway import Ceiling
from transport.protocol.items import AgentMessage, Item, ItemStatus
from transport.protocol.methods import APPROVAL_LIST, THREAD_LIST, THREAD_READ
from transport.protocol.turns import Turn

OPEN_STATES = (ApprovalState.PENDING, ApprovalState.ANSWERING)


class Cuttable(trio.abc.Stream):
    """A stream that can be cut, at once or in the middle of what it carries."""

    def __init__(
        self, inner: trio.StapledStream[MemorySendStream, MemoryReceiveStream]
    ) -> None:
        self._inner = inner
        self._left: float = math.inf

    def cut(self, after: int) -> None:
        """End it when so many more bytes have passed."""
        self._left = after
        if after == 0:
            self._inner.receive_stream.put_eof()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._inner.send_all(bytes(data)[: self._take(len(data))])
        await self._end_if_cut()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await self._end_if_cut()
        data = bytes(await self._inner.receive_some(max_bytes))
        part = data[: self._take(len(data))]
        if not part:
            await self._end_if_cut()
        return part

    def _take(self, count: int) -> int:
        taken = int(min(count, self._left))
        self._left -= taken
        return taken

    async def _end_if_cut(self) -> None:
        if self._left <= 0:
            await trio.aclose_forcefully(self._inner)
            raise trio.BrokenResourceError

    async def wait_send_all_might_not_block(self) -> None:
        await self._inner.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._inner.aclose()


class Stack:
    """One device's Agent. It can be restarted on its state folder."""

    def __init__(self, folder: Path, runtime: FakeRuntime, *, ring: int) -> None:
        self._folder = folder
        self._ring = ring
        self.runtime = runtime
        self.key = PrivateKey.generate()
        self.psk = b"p" * 32
        self.device_id = ""
        self.door: Door
        self.feed: Feed
        self._doors: Doors | None = None
        self._connections: trio.Nursery | None = None

    async def serve(
        self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Run it until cancelled."""
        for stored in self.runtime.threads.values():
            stored.locked_by = None
        config = make_config(self._folder)
        config.state_dir.mkdir(mode=0o700, exist_ok=True)
        with open_state(config) as state:
            self._know(state)
            state.store.recover()
            async with trio.open_nursery() as nursery:
                await self._build(state, nursery)
                task_status.started()
                try:
                    await trio.sleep_forever()
                finally:
                    self._doors = self._connections = None

    def _know(self, state: State) -> None:
        if not len(state.devices):
            device = Device(
                id="00000000000000aa",
                public=self.key.public,
                psk=Secret(self.psk),
                name="phone",
                scopes=frozenset({"read", "write", "approve"}),
                ceiling=Ceiling(
                    sandbox="workspace-write",
                    approval_policy=["untrusted", "on-request"],
                    roots=[],
                ),
                follows_threads=True,
                created_at=1,
                paired_by_check=True,
            )
            state.devices.add(device)
        self.device_id = state.devices.all()[0].id
        self.agent_key = state.identity.public

    async def _build(self, state: State, nursery: trio.Nursery) -> None:
        config = make_config(self._folder)
        self.feed = feed = Feed(Journal(max_events=self._ring))
        self.door = build_door(
            config,
            runtime=self.runtime,
            emit=feed.emit,
            head=lambda: feed.journal.head,
            now_ms=wall_ms,
            handler_nursery=nursery,
            store=state.store,
            audit=state.audit,
            reserve=state.reserve,
            watch=FakeWatch(),
            clocks=clocks,
            run=inline,
        )
        nursery.start_soon(self.door.supervisor.serve)
        await self.door.supervisor.tried.wait()
        self.door.keeper.look()
        table: SessionTable[Session] = SessionTable(most=64, most_per_device=16)
        self._doors = build_doors(
            config,
            state=state,
            door=self.door,
            feed=feed,
            acts=Acts(nursery),
            table=table,
            reach=Reach(),
        )
        self._devices, self._table = state.devices, table
        self._connections = nursery

    def grant(self, **rights: Any) -> None:
        """Change the device's rights, as the owner does at the workstation."""
        assert self._doors is not None
        params = {"device_id": self.device_id, **rights}
        self._devices.grant(DeviceGrantParams.model_validate(params))
        for session in self._table.of(self.device_id):
            session.change(self._doors.rights_of(self.device_id))

    async def dial(self, ends: list[Cuttable]) -> Channel:
        """Connect; `ends` gets the connection."""
        await trio.lowlevel.checkpoint()
        if self._doors is None or self._connections is None:
            raise UnreachableError("it is down")
        ours, theirs = memory_stream_pair()
        self._connections.start_soon(self._serve, self._doors, theirs)
        stream = Cuttable(ours)
        ends.append(stream)
        with trio.move_on_after(HANDSHAKE_S):
            return await connect_channel(
                stream,
                mode=Mode.SESSION,
                agent_key=self.agent_key,
                identity=self.key,
                psk=self.psk,
                padded=False,
            )
        await trio.aclose_forcefully(stream)
        raise UnreachableError("silence")

    async def _serve(self, doors: Doors, stream: trio.abc.Stream) -> None:
        try:
            with suppress(Exception):  # a connection's faults are its own
                await doors.serve_unix(cast("trio.SocketStream", stream))
        finally:
            await trio.aclose_forcefully(stream)


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


class Watcher:
    """A client with its mirror, and the connections that it has had."""

    def __init__(self, stack: Stack, instance: str) -> None:
        self.ends: list[Cuttable] = []
        self.up = False
        info = client_info(instance=instance)
        dial = partial(stack.dial, self.ends)
        self.client = Client(dial, info, lambda link: setattr(self, "up", link.up))
        self.mirror = Mirror(self.client)

    async def serve(
        self,
        *,
        deltas: bool = True,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Show until cancelled."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self.client.serve)
            task_status.started()
            await self.mirror.serve(deltas=deltas)

    @property
    def settled(self) -> bool:
        return self.up and self.mirror.idle

    def cut(self, after: int) -> None:
        """End the connection when so many more bytes have passed."""
        if self.ends:
            self.ends[-1].cut(after)


@asynccontextmanager
async def watching(
    stack: Stack, instance: str, *, deltas: bool = True
) -> AsyncGenerator[Watcher]:
    """A client that shows threads, for the length of the block."""
    watcher = Watcher(stack, instance)
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(watcher.serve, deltas=deltas))
        yield watcher
        nursery.cancel_scope.cancel()


async def quiet() -> None:
    """Return when nothing moves any more without time: no task, and no thread but the
    one that asks."""
    threads_used = trio.to_thread.current_default_thread_limiter()
    await wait_all_tasks_blocked()
    while threads_used.borrowed_tokens > 1:
        await wait_all_tasks_blocked(0.001)
