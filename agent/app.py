"""The ownership tree of an Agent, and nothing else. Trio shell.

Opened top to bottom, closed bottom to top: state folder, store and audit → leftovers of
an earlier run → reader and watch → writers → acts → connections → doors → a signal. The
first signal closes from the bottom; a second cancels all of it.
"""

import logging
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

import trio

from adapter.codex import CodexRuntime
from adapter.processes.binary import find_codex
from adapter.processes.sweep import sweep
from adapter.runtime.runtime import Runtime
from agent.clocks import up_ms, wall_ms
from agent.config import Config, check_address
from agent.door import Door, build_door
from agent.edge import build_doors
from agent.edge_limits import (
    COMMAND_S,
    GOING_AWAY_S,
    OWNER_SPARES,
    PRUNE_S,
    RETRY_AFTER_MS,
)
from agent.events.feed import Feed
from agent.events.journal import Journal
from agent.gate.writers import Watch
from agent.hardening import descriptors, harden_process, raise_descriptors
from agent.limits import CATCH_UP_S, FIRST_START_S
from agent.lockfile import hold_folder, holder_of
from agent.offload import in_thread
from agent.reach import Reach, reachable
from agent.sessions.acts import Acts
from agent.sessions.serve import Doors, accept_forever
from agent.sessions.session_table import SessionTable, sessions_within
from agent.sessions.sessions import Session
from agent.sessions.unix_doors import accept_at
from agent.state import State, open_state
from transport.carriers import tcp
from transport.errors import CloseCode
from transport.protocol.events import SessionClosing
from transport.protocol.gateway import AgentInfo, RuntimeState

_LOG: Final = logging.getLogger(__name__)
ADMIN_SOCKET: Final = "admin.sock"
AGENT_SOCKET: Final = "agent.sock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """An Agent that serves. `tcp`: where it listens; `locked`: whether it starts locked;
    `runtime`: whether codex runs, as the owner is told; `stop`: does as the first signal."""

    admin_path: Path
    agent_path: Path
    tcp: tuple[str, ...]
    agent: AgentInfo
    agent_key: bytes
    locked: bool
    runtime: RuntimeState
    stop: Callable[[], None]


async def run_agent(
    config: Config,
    *,
    runtime: Runtime | None = None,
    watch: Watch | None = None,
    harden: bool = True,
    task_status: trio.TaskStatus[Running] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run an Agent until a signal to end, `Running.stop`, or until it is cancelled.

    `runtime`: another one than the codex of the config. `watch`: another look at foreign
    writers than the process table. `harden`: no core file and no debugger for this
    process, and descriptors enough (a test's process wants to stay as it is).

    Raises: BinaryNotFoundError, FolderInUseError, KeyFileError, DevicesFileError,
    StorageError, OSError (an address is taken): it cannot start, and nothing runs.
    """
    if harden:
        harden_process()
        raise_descriptors()
    await _wait_free(config.state_dir)
    with (
        hold_folder(config.state_dir) as in_place,
        open_state(config, in_place) as state,
    ):
        state.audit.note("start")
        if runtime is None:
            runtime = await _open_codex(config)
        # What an earlier run handed in and did not see the end of.
        state.reserve.insist(state.store.recover)
        async with _open_signals() as stop:
            await _run(config, state, runtime, watch, stop, task_status)
        state.audit.note("stop")


async def _wait_free(folder: Path) -> None:
    """Return when nobody has the folder, or it is more than a command of the owner's."""
    with trio.move_on_after(COMMAND_S):
        while holder_of(folder) is not None:  # noqa: ASYNC110 - a lock tells nobody
            await trio.sleep(COMMAND_S / 20)


async def _open_codex(config: Config) -> Runtime:
    """Return codex, with what an earlier Agent left alive of it ended."""
    find = partial(find_codex, config.codex, os.environ)
    codex = await trio.to_thread.run_sync(find)
    records = config.state_dir / "processes"
    for left in await trio.to_thread.run_sync(sweep, records):
        _LOG.warning("ended what an earlier Agent had left: %s", left)
    return CodexRuntime(
        codex=codex,
        home=config.codex_home,
        records=records,
        now_ms=wall_ms,
        up_ms=up_ms,
        approval_ms=config.approval_ms,
        find=find,
    )


def _endings() -> list[signal.Signals]:
    """A terminal that is closed is one, unless who started this wants it to go on."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # nohup
    return [signal.SIGINT, signal.SIGTERM, *([] if ignored else [signal.SIGHUP])]


@asynccontextmanager
async def _open_signals() -> AsyncGenerator[trio.Event]:
    """Yield an event that the first signal sets; a second one cancels the block."""
    stop = trio.Event()
    async with trio.open_nursery() as nursery:

        async def obey(*, task_status: trio.TaskStatus[None]) -> None:
            with trio.open_signal_receiver(*_endings()) as arriving:
                task_status.started()
                async for number in arriving:
                    # A terminal that is closed says so twice, from its two ends.
                    if stop.is_set() and number != signal.SIGHUP:
                        nursery.cancel_scope.cancel(reason="a second signal")
                    _LOG.info("signal %d: closing", number)
                    stop.set()

        await nursery.start(obey)
        yield stop
        nursery.cancel_scope.cancel(reason="the Agent has closed")


async def _run(
    config: Config,
    state: State,
    runtime: Runtime,
    watch: Watch | None,
    stop: trio.Event,
    task_status: trio.TaskStatus[Running],
) -> None:
    feed = Feed(Journal())
    async with trio.open_nursery() as readers:
        async with trio.open_nursery() as leases:
            door = build_door(
                config,
                runtime=runtime,
                emit=feed.emit,
                head=lambda: feed.journal.head,
                now_ms=wall_ms,
                handler_nursery=leases,
                store=state.store,
                audit=state.audit,
                reserve=state.reserve,
                watch=watch,
            )
            await _open_reader(door, state, readers)
            async with trio.open_nursery() as acting:
                acts = Acts(acting)
                await _serve(config, state, door, feed, acts, acting, stop, task_status)
                acting.cancel_scope.cancel(reason="the Agent closes")
            leases.cancel_scope.cancel(reason="the Agent closes")
        readers.cancel_scope.cancel(reason="the Agent closes")


async def _open_reader(door: Door, state: State, readers: trio.Nursery) -> None:
    readers.start_soon(door.supervisor.serve)
    with trio.move_on_after(FIRST_START_S):
        await door.supervisor.tried.wait()
    if door.watch is not None:
        await readers.start(door.watch.serve)
    else:
        door.keeper.look()
    readers.start_soon(_forget_old, door)
    readers.start_soon(_catch_up, state, door)
    readers.start_soon(door.offering.serve)
    readers.start_soon(door.uploads.serve)
    readers.start_soon(door.follower.serve)


async def _catch_up(state: State, door: Door) -> NoReturn:
    """What a full disk did not take is written once there is room; look whether there is."""
    while True:
        await trio.sleep(CATCH_UP_S)
        state.devices.catch_up()
        if state.audit.owes:
            await in_thread(state.audit.catch_up)
        if state.lock.is_owed:
            await in_thread(state.lock.catch_up)
        await door.backlog.catch_up()
        await door.keys.catch_up()
        await in_thread(state.reserve.may_begin)


async def _forget_old(door: Door) -> NoReturn:
    while True:
        await door.ledger.prune()
        await trio.sleep(PRUNE_S)


async def _serve(
    config: Config,
    state: State,
    door: Door,
    feed: Feed,
    acts: Acts,
    acting: trio.Nursery,
    stop: trio.Event,
    task_status: trio.TaskStatus[Running],
) -> None:
    table: SessionTable[Session] = SessionTable(
        most=_most_sessions(config), most_per_device=config.doors.sessions_per_device
    )
    reach = Reach()
    doors = build_doors(
        config,
        state=state,
        door=door,
        feed=feed,
        acts=acts,
        table=table,
        reach=reach,
    )
    await doors.recall()
    await acting.start(partial(door.delivering.serve, acts, doors.caller_of))
    async with trio.open_nursery() as connections:
        async with trio.open_nursery() as accepting:
            running = await _listen(config, door, doors, accepting, connections, stop)
            reach.urls = tuple(config.urls) or reachable(
                running.tcp, running.agent_path
            )
            task_status.started(running)
            await stop.wait()
            accepting.cancel_scope.cancel(reason="the Agent closes")
        _say_goodbye(table)
        connections.cancel_scope.deadline = trio.current_time() + GOING_AWAY_S


def _most_sessions(config: Config) -> int:
    bounds, allowed = config.doors, descriptors()
    most = sessions_within(allowed, wanted=bounds.sessions, half_open=bounds.half_open)
    if most < bounds.sessions:
        _LOG.warning(
            "%d open files are allowed here: devices have %d sessions at most",
            allowed,
            most,
        )
    return most


async def _listen(
    config: Config,
    door: Door,
    doors: Doors,
    accepting: trio.Nursery,
    connections: trio.Nursery,
    stop: trio.Event,
) -> Running:
    """Open every door, or none."""
    open_door = partial(accept_forever, handler_nursery=connections)
    addresses: list[str] = []
    for name, serve, spares in (
        (ADMIN_SOCKET, doors.serve_admin, OWNER_SPARES),
        (AGENT_SOCKET, doors.serve_unix, 0),
    ):
        path = config.runtime_dir / name
        open_socket = partial(
            accept_at, path, serve, handler_nursery=connections, spares=spares
        )
        await accepting.start(open_socket)
    for host, port in map(_host_and_port, dict.fromkeys(config.listen)):
        for tcp_listener in await tcp.listen(host, port):
            addresses.append(tcp.address(tcp_listener))
            await accepting.start(partial(open_door, tcp_listener, doors.serve_tcp))
    return Running(
        admin_path=config.runtime_dir / ADMIN_SOCKET,
        agent_path=config.runtime_dir / AGENT_SOCKET,
        tcp=tuple(addresses),
        agent=doors.edge.agent,
        agent_key=doors.identity.public,
        locked=doors.locked(),
        runtime=door.supervisor.owner_state,
        stop=stop.set,
    )


def _host_and_port(address: str) -> tuple[str, int]:
    # Those of the command line have not been through the config file's checks.
    host, _, port = check_address(address).rpartition(":")
    return host.strip("[]"), int(port)


def _say_goodbye(table: SessionTable[Session]) -> None:
    for session in table:
        closing = SessionClosing(
            code=str(CloseCode.GOING_AWAY),
            message="The Agent is being stopped at the workstation.",
            retry_after_ms=RETRY_AFTER_MS,
        )
        session.end(CloseCode.GOING_AWAY, closing)
