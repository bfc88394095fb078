"""An Agent's real edge and door on the fake runtime, and real clients, all in memory.

`Stack` is everything between `run_agent` and the sockets; a `Watcher` is a client whose
connection can be cut (`cuttable`) and who shows what it was told (`mirror`).
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

import trio
from trio.testing import (
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
from tests.support.cuttable import Cuttable
from tests.support.door import FakeWatch, clocks, inline, wall_ms
from tests.support.fake_runtime import FakeRuntime
from tests.support.mirror import Mirror
from transport.channel import Channel, Mode, connect_channel
from transport.client import Client
from transport.errors import UnreachableError
from transport.identities import PrivateKey, Secret
from transport.limits import HANDSHAKE_S
from transport.protocol.admin import DeviceGrantParams
from transport.protocol.gateway import Ceiling


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
