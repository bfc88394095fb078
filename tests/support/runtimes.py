"""A Codex runtime for tests, and an ear that can wait for what it tells."""

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import trio

from adapter.codex import CodexRuntime
from adapter.limits import APPROVAL_MS
from adapter.processes.binary import Codex
from adapter.runtime.events import Emitted, RuntimeEvent
from adapter.runtime.reader import Reader
from adapter.runtime.threads import NewThread
from adapter.runtime.writer import ThreadWriter
from clients.cli.scripted_answers import Rule
from clients.cli.scripted_model import ScriptedModel
from tests.support.codex import HERE, CodexHome, open_codex_home
from transport.protocol.approvals import Approval
from transport.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    EventData,
    Notice,
    TurnCompleted,
    TurnStarted,
)
from transport.protocol.turns import Turn

DataT = TypeVar("DataT", bound=EventData)
FIRST = "key-0123456789abcdef"  # of the turn that makes a thread


def now_ms() -> int:
    """Return milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def open_gate() -> None:
    """A guard that lets everything pass."""


@dataclass
class Seen:
    """Everything that was emitted, in order; `seen` itself is the `Emit`."""

    events: list[RuntimeEvent] = field(default_factory=list[RuntimeEvent])
    _news: trio.lowlevel.ParkingLot = field(default_factory=trio.lowlevel.ParkingLot)

    def __call__(self, event: RuntimeEvent) -> None:
        self.events.append(event)
        self._news.unpark_all()

    def data(self, kind: type[DataT]) -> list[DataT]:
        """Return the data of all events of one kind so far."""
        return [
            event.data
            for event in self.events
            if isinstance(event, Emitted) and isinstance(event.data, kind)
        ]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return when the condition holds; looked at after each event."""
        while not condition():
            await self._news.park()

    async def turn_completed(self, turn_id: str) -> Turn:
        """Wait for the end of a turn."""
        found: list[Turn] = []

        def ended() -> bool:
            found[:] = [
                d.turn for d in self.data(TurnCompleted) if d.turn.id == turn_id
            ]
            return bool(found)

        await self.until(ended)
        return found[0]

    async def approval(self) -> Approval:
        """Wait for the first approval that has no end yet."""
        found: list[Approval] = []

        def asked() -> bool:
            done = {d.approval.id for d in self.data(ApprovalResolved)}
            found[:] = [
                d.approval
                for d in self.data(ApprovalRequested)
                if d.approval.id not in done
            ]
            return bool(found)

        await self.until(asked)
        return found[0]

    def resolved(self) -> list[Approval]:
        """Return all approvals that ended, as they ended."""
        return [d.approval for d in self.data(ApprovalResolved)]

    def turns_started(self) -> list[str]:
        """Return the ids of all turns that began."""
        return [d.turn.id for d in self.data(TurnStarted)]

    def notices(self) -> list[str]:
        """Return the codes of all notices."""
        return [d.code for d in self.data(Notice)]


@dataclass
class Running:
    """A runtime whose reader is up."""

    runtime: CodexRuntime
    reader: Reader
    seen: Seen
    records: Path

    @asynccontextmanager
    async def writer(
        self, thread_id: str | None = None
    ) -> AsyncGenerator[ThreadWriter]:
        """Open a writer, and resume a thread where one is named."""
        async with self.runtime.open_writer(self.seen, guard=open_gate) as writer:
            if thread_id is not None:
                await writer.resume(thread_id, guard=open_gate)
            yield writer


@asynccontextmanager
async def open_codex_runtime(
    codex: Codex, home: Path, *, approval_ms: int = APPROVAL_MS
) -> AsyncGenerator[Running]:
    """Run a reader of a runtime on `home` beside the block; nothing of ours is left."""
    records = home.parent / "records"
    runtime = CodexRuntime(
        codex=codex,
        home=home,
        records=records,
        now_ms=now_ms,
        approval_ms=approval_ms,
    )
    seen = Seen()
    async with runtime.open_reader(seen) as reader:
        yield Running(runtime=runtime, reader=reader, seen=seen, records=records)
    assert runtime.own_pids() == set()
    assert list(records.iterdir()) == []


@dataclass
class Stage:
    """A home with its scripted model, and a runtime of ours on it."""

    home: CodexHome
    run: Running
    codex: Path

    @property
    def seen(self) -> Seen:
        return self.run.seen

    @property
    def model(self) -> ScriptedModel:
        return self.home.model

    async def new_thread(self, writer: ThreadWriter, text: str = "first") -> str:
        """Make a thread with one completed turn in this writer."""
        new = NewThread(cwd=str(self.home.workspace))
        loaded = await writer.start_thread(new, guard=open_gate)
        turn = await writer.start_turn([text], client_key=FIRST, guard=open_gate)
        await self.seen.turn_completed(turn.id)
        return loaded.thread.id


@asynccontextmanager
async def open_stage(
    version: str,
    *rules: Rule,
    extra: str = "",
    features: Sequence[str] = (),
    approval_ms: int = APPROVAL_MS,
) -> AsyncGenerator[Stage]:
    """Open a home, and a runtime of this version on it; see `open_codex_home`."""
    codex = Codex(path=HERE[version], version=version)
    async with (
        open_codex_home(*rules, extra=extra, features=features) as home,
        open_codex_runtime(codex, home.home, approval_ms=approval_ms) as run,
    ):
        yield Stage(home=home, run=run, codex=codex.path)
