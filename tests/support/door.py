"""The whole door around the in-memory runtime, for shell tests on a mock clock."""

from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import trio

from adapter.runtime.events import Emitted, RuntimeEvent
from agent.access.scopes import Caller, local_caller
from agent.config import Config
from agent.door import Door, build_door
from agent.gate.engines import Foreign, Look, Named, Role
from agent.offload import Runner
from agent.records.ages import Instant
from agent.records.audit import Audit
from agent.records.reserve import Reserve
from agent.records.store import Store
from agent.sessions.acts import Acts
from tests.support.fake_runtime import FakeRuntime
from tests.support.fake_threads import AT
from transport.protocol.gateway import Ceiling, Writer, WriterKind
from transport.protocol.turns import TextInput, TurnStartParams

T = TypeVar("T")
LOCAL = local_caller()
DESKTOP = Foreign(
    pid=4_242,
    since=AT,
    named=Named(
        role=Role.APP, kind=WriterKind.DESKTOP, name="Codex desktop", sure=True
    ),
    locks=False,
)
OLD_CLI = Foreign(
    pid=4_343,
    since=AT,
    named=Named(
        role=Role.ENGINE, kind=WriterKind.CLI, name="Codex in a terminal", sure=True
    ),
    locks=False,
)
HOLDER = Writer(kind=WriterKind.CLI, name="Codex in a terminal", pid=777, since=AT)


class FakeWatch:
    """A process table that the test writes. `looks` counts the looks."""

    def __init__(self) -> None:
        self.foreign: list[Foreign] = []
        self.locks: dict[str, Writer] = {}
        self.looks = 0

    def look(self) -> Look:
        self.looks += 1
        return Look(foreign=tuple(self.foreign))

    def holders(self, thread_ids: Collection[str]) -> dict[str, Writer]:
        return {one: self.locks[one] for one in thread_ids if one in self.locks}


class House:
    """A door, the runtime behind it, and everything it has told."""

    def __init__(self, door: Door, runtime: FakeRuntime, watch: FakeWatch) -> None:
        self.door = door
        self.runtime = runtime
        self.watch = watch
        self.events: list[RuntimeEvent] = []
        self.callers: dict[str, Caller] = {"local": LOCAL}  # who is known now

    def named(self, name: str) -> list[Emitted]:
        """Return the whole events of one name, in order."""
        return [
            event
            for event in self.events
            if isinstance(event, Emitted) and event.data.event == name
        ]

    def open_desktop(self) -> None:
        """The desktop appears; nobody has looked yet."""
        self.watch.foreign.append(DESKTOP)

    def see_desktop(self) -> None:
        """The desktop appears, and a look has seen it: the gate is closed."""
        self.open_desktop()
        self.door.keeper.look()

    def hold(self, thread_id: str) -> None:
        """Another program, `HOLDER`, takes the thread's lock."""
        self.runtime.threads[thread_id].locked_by = HOLDER.pid
        self.watch.locks[thread_id] = HOLDER

    def give_back(self, thread_id: str) -> None:
        """The other program lets the thread's lock go."""
        self.runtime.threads[thread_id].locked_by = None
        del self.watch.locks[thread_id]

    async def close_desktop(self) -> None:
        """The desktop ends, and two looks have seen that."""
        self.watch.foreign.remove(DESKTOP)
        self.door.keeper.look()
        await trio.sleep(0.3)
        self.door.keeper.look()


def wall_ms() -> int:
    """The fakes' wall clock: it moves with trio's."""
    return AT + round(trio.current_time() * 1_000)


def clocks() -> Instant:
    """All clocks of the fakes: the machine started when the test did."""
    return Instant(wall=wall_ms(), boot="", up=round(trio.current_time() * 1_000))


async def inline(work: Callable[[], T], /) -> T:
    """Run `work` here, after a checkpoint: a mock clock would jump while a thread works."""
    await trio.lowlevel.checkpoint()
    return work()


def small_reserve(folder: Path) -> Reserve:
    """Return a reserve that is there and costs little."""
    reserve = Reserve(folder, size=4_096)
    assert reserve.lay_in()
    return reserve


@asynccontextmanager
async def open_house(
    tmp_path: Path,
    *,
    runtime: FakeRuntime | None = None,
    store: Store | None = None,
    audit: Audit | None = None,
    idle_s: float = 30.0,
    clocks: Callable[[], Instant] = clocks,
    run: Runner | None = None,
) -> AsyncGenerator[House]:
    """Run reader and door; leaving ends every writer. `clocks`: what they say now.

    `run`: how work that waits for a disk is done.
    """
    runtime = runtime or FakeRuntime()
    watch = FakeWatch()
    config = Config(
        state_dir=tmp_path,
        runtime_dir=tmp_path,
        codex_home=tmp_path / "codex",
        idle_s=idle_s,
    )
    store = store or Store.open(tmp_path / "ledger.sqlite")
    audit = audit or Audit(tmp_path / "audit.jsonl", now_ms=wall_ms)
    events: list[RuntimeEvent] = []
    try:
        async with trio.open_nursery() as reader_nursery:
            async with trio.open_nursery() as nursery:
                door = build_door(
                    config,
                    runtime=runtime,
                    emit=events.append,
                    head=lambda: len(events),
                    now_ms=lambda: clocks().wall,
                    handler_nursery=nursery,
                    store=store,
                    audit=audit,
                    reserve=small_reserve(tmp_path),
                    watch=watch,
                    clocks=clocks,
                    run=run or inline,
                )
                reader_nursery.start_soon(door.supervisor.serve)
                await door.supervisor.tried.wait()
                house = House(door, runtime, watch)
                house.events = events
                async with trio.open_nursery() as acting:
                    serve = partial(
                        door.delivering.serve, Acts(acting), house.callers.get
                    )
                    await acting.start(serve)
                    yield house
                    acting.cancel_scope.cancel(reason="test is over")
                nursery.cancel_scope.cancel(reason="test is over")
            reader_nursery.cancel_scope.cancel(reason="test is over")
    finally:
        store.close()
        audit.close()


def device(
    *scopes: str,
    roots: Collection[str] = ("/work",),
    sandbox: str = "workspace-write",
    policies: Collection[str] = ("untrusted", "on-request"),
    device_id: str = "d1",
) -> Caller:
    """Return a paired device with a ceiling."""
    return Caller(
        device_id=device_id,
        name=device_id,
        scopes=frozenset(scopes or ("read", "write", "approve")),
        ceiling=Ceiling(sandbox=sandbox, approval_policy=[*policies], roots=[*roots]),
    )


def send(
    thread_id: str = "thr",
    text: str = "go on",
    *,
    key: str = "key-0123456789abcdef",
    expected: str | None = None,
    wait_ms: int = 0,
    allow_pending: bool = False,
    **more: Any,
) -> TurnStartParams:
    """Return the params of a turn/start."""
    return TurnStartParams(
        thread_id=thread_id,
        input=[TextInput(type="text", text=text)],
        request_key=key,
        expected_last_turn_id=expected,
        wait_ms=wait_ms,
        allow_pending=allow_pending,
        **more,
    )
