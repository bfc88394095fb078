"""Joins what stands between devices and the door: journal, sessions, pairing. Trio shell.

No decisions: it only tells the parts of each other. `agent/app.py` owns what runs.
"""

import platform
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import trio

from adapter.runtime.events import Emitted, RuntimeEvent
from agent.access.rights import Rights
from agent.access.rules import device_rights, owner_rights
from agent.access.sight import Sight
from agent.clocks import boot_s, wall_ms
from agent.config import Config
from agent.door import Door
from agent.events.feed import Feed
from agent.gate.panic import PanicSwitch
from agent.pairing.owner import Owner, hang_up
from agent.pairing.pair import Household, Pairings
from agent.sessions.acts import Acts
from agent.sessions.admittance import Admittance, Bounds
from agent.sessions.handlers import House, build_handlers
from agent.sessions.incidents import Incidents
from agent.sessions.router import Call, Router
from agent.sessions.serve import Doors
from agent.sessions.session_table import SessionTable
from agent.sessions.sessions import Edge, Session
from agent.state import State
from transport.identities import agent_id
from transport.limits import SESSION_LIMITS
from transport.protocol.events import ThreadChanged, ThreadStarted
from transport.protocol.gateway import AgentInfo, GatewayStatus


class Reach:
    """Where devices reach the Agent; known once its doors are open."""

    def __init__(self) -> None:
        self.urls: tuple[str, ...] = ()


def build_doors(
    config: Config,
    *,
    state: State,
    door: Door,
    feed: Feed,
    acts: Acts,
    table: SessionTable[Session],
    reach: Reach,
) -> Doors:
    """Build the edge of an Agent; nothing runs yet."""
    start = f"e{secrets.token_hex(4)}"
    agent = AgentInfo(
        id=agent_id(state.identity.public), name=config.name, version=own_version()
    )
    household = _household(config, state, agent, table, reach)
    pairings = Pairings(household, state.devices)
    panic = PanicSwitch(
        state.lock,
        keeper=door.keeper,
        table=table,
        acts=acts,
        audit=state.audit,
        devices=lambda: [one.id for one in state.devices.all()],
        withdraw_offer=pairings.withdraw,
        stop_turns_of=door.admission.stop_turns_of,
        drop_queue_of=door.acts.queue.drop_device,
    )
    rights_now = partial(device_rights, state.devices, door.sight, start)
    rights_of = partial(_bound_rights, panic, rights_now)
    owner = Owner(
        devices=state.devices,
        table=table,
        acts=acts,
        audit=state.audit,
        rights_of=rights_of,
        stop_turns_of=door.admission.stop_turns_of,
        drop_queue_of=door.acts.queue.drop_device,
        forget_blobs=door.blobs.forget,
    )
    house = House(
        door=door,
        pairings=pairings,
        owner=owner,
        audit=state.audit,
        panic=panic,
        status=partial(_status, agent, door, feed, table, trio.current_time()),
    )
    door.pool.listen(partial(_learn_folder, door.sight))
    feed.listen(door.pictures.hear)
    incidents = Incidents(state.audit.note, trio.current_time)
    limits = SESSION_LIMITS.model_copy(update={"approval_ms": config.approval_ms})
    edge = Edge(
        feed=feed,
        router=Router(build_handlers(house)),
        table=table,
        agent=agent,
        limits=limits,
        gate=lambda: door.keeper.state,
        runtime=lambda: door.supervisor.state,
        seen=state.devices.seen,
        denied=partial(_denied, incidents),
        acts=acts,
        now_ms=wall_ms,
        wanted=door.follower.want,
        left=door.follower.forget,
    )
    return Doors(
        edge=edge,
        identity=state.identity,
        devices=state.devices,
        pairings=pairings,
        admittance=Admittance(_bounds(config), now=trio.current_time()),
        incidents=incidents,
        rights_of=rights_of,
        local_rights=owner_rights(start),
        locked=lambda: panic.is_locked,
    )


def reachable(listening: Sequence[str], socket: Path) -> tuple[str, ...]:
    """Return where devices are told to come, if the config file does not say it.

    An address that means "every interface" is none to dial: this machine's name is.
    """
    name = platform.node()
    urls = [
        url.replace("//0.0.0.0:", f"//{name}:").replace("//[::]:", f"//{name}:")
        for url in listening
    ]
    return tuple(dict.fromkeys(urls)) or (f"unix://{socket}",)


def own_version() -> str:
    """Return this program's version."""
    try:
        return version("threadgate")
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "0"


def _bound_rights(
    panic: PanicSwitch, rights_now: Callable[[str], Rights], device_id: str
) -> Rights:
    return panic.bound(rights_now(device_id))


def _household(
    config: Config,
    state: State,
    agent: AgentInfo,
    table: SessionTable[Session],
    reach: Reach,
) -> Household:
    return Household(
        agent=agent,
        agent_key=state.identity.public,
        default_ceiling=config.default_ceiling(),
        urls=lambda: reach.urls,
        record=state.audit.record,
        replaced=partial(hang_up, table),
        boot_now=boot_s,
        now_ms=wall_ms,
        random_bytes=secrets.token_bytes,
    )


def _status(
    agent: AgentInfo,
    door: Door,
    feed: Feed,
    table: SessionTable[Session],
    started_at: float,
    call: Call,
) -> GatewayStatus:
    caller = call.rights.caller
    return GatewayStatus(
        agent=agent,
        runtime=(
            door.supervisor.owner_state if caller.is_local else door.supervisor.state
        ),
        gate=door.keeper.state,
        warnings=door.offering.warnings(),
        leases=[
            row for row in door.pool.leases() if door.sight.sees(caller, row.thread_id)
        ],
        following=[
            row
            for row in door.follower.following()
            if door.sight.sees(caller, row.thread_id)
        ],
        sessions=len(table),
        uptime_ms=round((trio.current_time() - started_at) * 1000),
        epoch=call.rights.epoch,
        head=feed.journal.head,
    )


def _denied(incidents: Incidents, device_id: str, method: str) -> None:
    incidents.happened("denied", device=device_id, method=method)


def _learn_folder(sight: Sight, event: RuntimeEvent) -> None:
    """A thread that comes into being shows where it lives."""
    if isinstance(event, Emitted) and isinstance(
        event.data, ThreadStarted | ThreadChanged
    ):
        sight.learn([event.data.thread])


def _bounds(config: Config) -> Bounds:
    doors = config.doors
    return Bounds(
        half_open=doors.half_open,
        half_open_per_source=doors.half_open_per_source,
        rate=doors.handshakes_per_second,
        burst=doors.handshake_burst,
        total_rate=doors.handshakes_per_second_total,
        total_burst=doors.handshakes_per_second_total,
    )
