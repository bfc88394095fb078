"""A door on the real codex and the real process table, without sessions."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio

from adapter.codex import CodexRuntime
from adapter.processes.binary import Codex
from adapter.runtime.events import RuntimeEvent
from agent.clocks import wall_ms
from agent.config import Config
from agent.door import Door, build_door
from agent.records.audit import Audit
from agent.records.store import Store
from tests.support.codex import BUNDLED, CodexHome, codex_binaries
from tests.support.door import small_reserve


@asynccontextmanager
async def open_door(
    home: CodexHome, *, version: str = BUNDLED, idle_s: float = 30.0
) -> AsyncGenerator[Door]:
    """A door on the real codex and the real process table."""
    state = home.home.parent / "state"
    state.mkdir()
    config = Config(
        state_dir=state, runtime_dir=state, codex_home=home.home, idle_s=idle_s
    )
    runtime = CodexRuntime(
        codex=Codex(path=codex_binaries()[version], version=version),
        home=home.home,
        records=state / "processes",
        now_ms=wall_ms,
    )
    store = Store.open(state / "ledger.sqlite")
    audit = Audit(state / "audit.jsonl", now_ms=wall_ms)
    events: list[RuntimeEvent] = []
    async with trio.open_nursery() as readers:
        async with trio.open_nursery() as leases:
            door = build_door(
                config,
                runtime=runtime,
                emit=events.append,
                head=lambda: len(events),
                now_ms=wall_ms,
                handler_nursery=leases,
                store=store,
                audit=audit,
                reserve=small_reserve(state),
            )
            readers.start_soon(door.supervisor.serve)
            await door.supervisor.tried.wait()
            assert door.watch is not None
            await readers.start(door.watch.serve)
            yield door
            leases.cancel_scope.cancel(reason="test is over")
        readers.cancel_scope.cancel(reason="test is over")
    store.close()
    audit.close()


async def wait_open(door: Door) -> None:
    """Return when the gate is open: an engine's version is asked for when it is seen."""
    door.keeper.look()
    await door.keeper.wait_open()
