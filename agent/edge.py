"""Joins what stands between devices and the door: journal, sessions, pairing. Trio shell.

No decisions: it only tells the parts of each other. `agent/app.py` owns what runs.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version

import trio

from adapter.runtime.events import Emitted, RuntimeEvent
from agent.access.rights import Rights
from agent.access.rules import device_rights, owner_rights
from agent.access.scopes import LOCAL
from agent.access.sight import Sight
from agent.clocks import boot_s, wall_ms
from agent.config import Config
from agent.door import Door
from agent.events.feed import Feed
from agent.gate.panic import PanicSwitch
from agent.offload import in_thread
from agent.pairing.owner import Owner
from agent.pairing.pair import Household, Pairings
from agent.reach import Reach
from agent.records.audit import Audit
from agent.sessions.acts import Acts
from agent.sessions.admittance import Admittance, Bounds
from agent.sessions.eviction import Eviction, hang_up
from agent.sessions.handlers import House, build_handlers
from agent.sessions.incidents import Incidents, Note
from agent.sessions.router import Call, Router
from agent.sessions.serve import Doors
from agent.sessions.session_table import SessionTable
from agent.sessions.sessions import Edge, Session
from agent.state import State
from transport.identities import agent_id
from transport.limits import SESSION_LIMITS
from transport.protocol.events import ThreadChanged, ThreadStarted
from transport.protocol.gateway import AgentInfo, GatewayStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """What the edge is built of."""

    config: Config
    state: State
    door: Door
    feed: Feed
    acts: Acts
    table: SessionTable[Session]
    agent: AgentInfo


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
    given = _Given(
        config=config,
        state=state,
        door=door,
        feed=feed,
        acts=acts,
        table=table,
        agent=_agent(config, state),
    )
    pairings = Pairings(_household(given, reach), state.devices)
    incidents = Incidents(_note_beside(state.audit, acts), trio.current_time)
    eviction = _eviction(given)
    panic = _panic(given, pairings, eviction)
    rights_now = partial(device_rights, state.devices, door.sight, start)
    rights_of = partial(_bound_rights, panic, rights_now)
    house = House(
        door=door,
        pairings=pairings,
        owner=_owner(given, rights_of, eviction),
        audit=state.audit,
        panic=panic,
        status=partial(_status, given, trio.current_time()),
        opened=partial(_opened, incidents),
    )
    door.leases.listen(partial(_learn_folder, door.sight))
    feed.listen(door.pictures.hear)
    return Doors(
        edge=_edge(given, house, incidents),
        identity=state.identity,
        devices=state.devices,
        pairings=pairings,
        admittance=Admittance(_bounds(config), now=trio.current_time()),
        incidents=incidents,
        rights_of=rights_of,
        local_rights=owner_rights(start),
        locked=lambda: panic.is_locked,
        recall=panic.recall,
    )


def _agent(config: Config, state: State) -> AgentInfo:
    return AgentInfo(
        id=agent_id(state.identity.public), name=config.name, version=own_version()
    )


def _household(given: _Given, reach: Reach) -> Household:
    """Return what the pairing of a device needs to know of this Agent."""
    return Household(
        agent=given.agent,
        agent_key=given.state.identity.public,
        default_ceiling=given.config.default_ceiling(),
        urls=lambda: reach.urls,
        record=given.state.audit.record,
        replaced=partial(hang_up, given.table),
        boot_now=boot_s,
        now_ms=wall_ms,
        random_bytes=secrets.token_bytes,
    )


def _eviction(given: _Given) -> Eviction:
    backlog = given.door.backlog
    return Eviction(
        table=given.table,
        acts=given.acts,
        audit=given.state.audit,
        withdraw=backlog.withdraw,
        forget=backlog.catch_up,
        goals_of=given.door.admission.goals_of,
        stops_of=given.door.admission.stops_of,
    )


def _panic(given: _Given, pairings: Pairings, eviction: Eviction) -> PanicSwitch:
    return PanicSwitch(
        given.state.lock,
        keeper=given.door.keeper,
        acts=given.acts,
        audit=given.state.audit,
        eviction=eviction,
        devices=partial(_all_devices, given),
        withdraw_offer=pairings.withdraw,
    )


def _all_devices(given: _Given) -> list[str]:
    """Return all that are known, and whoever else has a session or a message here."""
    known = [one.id for one in given.state.devices.all()]
    present = [one.device_id for one in given.table]
    waiting = [one.device_id for one in given.door.backlog.book.shown()]
    return [one for one in dict.fromkeys(known + present + waiting) if one != LOCAL]


def _owner(
    given: _Given, rights_of: Callable[[str], Rights], eviction: Eviction
) -> Owner:
    return Owner(
        devices=given.state.devices,
        table=given.table,
        acts=given.acts,
        audit=given.state.audit,
        rights_of=rights_of,
        eviction=eviction,
        forget_blobs=given.door.uploads.forget,
    )


def _edge(given: _Given, house: House, incidents: Incidents) -> Edge:
    """Return what all sessions share."""
    door = given.door
    approval = {"approval_ms": given.config.approval_ms}
    return Edge(
        feed=given.feed,
        router=Router(build_handlers(house)),
        table=given.table,
        agent=given.agent,
        limits=SESSION_LIMITS.model_copy(update=approval),
        gate=lambda: door.keeper.state,
        runtime=lambda: door.supervisor.state,
        seen=given.state.devices.seen,
        denied=partial(_denied, incidents),
        acts=given.acts,
        now_ms=wall_ms,
        wanted=door.follower.want,
        left=door.follower.forget,
    )


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


def _status(given: _Given, started_at: float, call: Call) -> GatewayStatus:
    door, caller = given.door, call.rights.caller
    return GatewayStatus(
        agent=given.agent,
        runtime=(
            door.supervisor.owner_state if caller.is_local else door.supervisor.state
        ),
        gate=door.keeper.state,
        warnings=door.offering.warnings(),
        leases=[
            row for row in door.leases.rows() if door.sight.sees(caller, row.thread_id)
        ],
        following=[
            row
            for row in door.follower.following()
            if door.sight.sees(caller, row.thread_id)
        ],
        sessions=len(given.table),
        uptime_ms=round((trio.current_time() - started_at) * 1000),
        epoch=call.rights.epoch,
        head=given.feed.journal.head,
    )


def _note_beside(audit: Audit, acts: Acts) -> Note:
    """Return what writes down who comes: whoever knocks makes nobody wait for the disk."""

    def note(event: str, **fields: str | int) -> None:
        audit.leave(event, **fields)
        acts.carry(partial(in_thread, audit.catch_up))

    return note


def _denied(incidents: Incidents, device_id: str, method: str) -> None:
    incidents.happened("denied", device=device_id, method=method)


def _opened(incidents: Incidents, device_id: str) -> None:
    incidents.happened("session/open", device=device_id)


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
