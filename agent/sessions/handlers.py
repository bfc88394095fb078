"""Every method's handler, in one table. Trio shell, no decisions.

PROTOCOL.md section 4. The router has looked at scope and params before any of these runs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from agent.access.rights import Door
from agent.door import Door as CodexDoor
from agent.errors import AuditUnavailableError
from agent.gate.panic import PanicSwitch
from agent.mutations.refusals import storage_failed
from agent.offload import in_thread
from agent.pairing.owner import Owner
from agent.pairing.pair import Pairings
from agent.records.audit import Audit
from agent.sessions.content_handlers import content_handlers
from agent.sessions.mutation_handlers import mutation_handlers
from agent.sessions.router import Call, Handler
from agent.sessions.rows import Row, for_call
from transport.protocol import admin, gateway, methods, session


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """What the handlers call. `status` is everything but what the caller may not see.

    `opened`: a device has a new session.
    """

    door: CodexDoor
    pairings: Pairings
    owner: Owner
    audit: Audit
    panic: PanicSwitch
    status: Callable[[Call], gateway.GatewayStatus]
    opened: Callable[[str], None]


def build_handlers(house: House) -> dict[str, Handler]:
    """Return the handler of each method."""
    return dict(
        [
            *_session(house),
            *content_handlers(house.door),
            *mutation_handlers(house.door),
            *_owner(house),
        ]
    )


def _session(house: House) -> Iterator[Row]:
    offering = house.door.offering
    yield for_call(methods.SESSION_OPEN, partial(_open, house))
    yield for_call(methods.EVENTS_SUBSCRIBE, partial(_subscribe, house.door))
    yield for_call(methods.GATEWAY_STATUS, partial(_status, house))
    yield for_call(methods.GATEWAY_CAPABILITIES, offering.capabilities)
    yield for_call(methods.MODEL_LIST, offering.models)


def _owner(house: House) -> Iterator[Row]:
    """Return the rows of what is called at the workstation alone."""
    yield for_call(methods.DEVICE_LIST, house.owner.list_all)
    yield for_call(methods.DEVICE_GRANT, house.owner.grant)
    yield for_call(methods.DEVICE_REVOKE, house.owner.revoke)
    yield for_call(methods.PAIR_OPEN, partial(_pair_open, house))
    yield for_call(methods.PAIR_AWAIT, house.pairings.wait)
    yield for_call(methods.PAIR_DECIDE, house.pairings.decide)
    yield for_call(methods.AUDIT_LIST, partial(_audit_list, house.audit))
    yield for_call(methods.GATEWAY_LOCK, house.panic.lock)
    yield for_call(methods.GATEWAY_UNLOCK, house.panic.unlock)


async def _open(  # noqa: ASYNC124 - handlers are async, all of them
    house: House, call: Call, params: session.SessionOpenParams
) -> session.SessionOpenResult:
    result = call.desk.open(params)
    if call.rights.door is Door.DEVICE:
        house.opened(call.rights.device.id)
    return result


async def _subscribe(
    door: CodexDoor, call: Call, params: session.SubscribeParams
) -> session.SubscribeResult:
    await _check_exist(door, call, params)
    wanted = None if params.threads == "all" else params.threads
    await door.follower.prepare(wanted)
    return call.desk.subscribe(params)


async def _check_exist(
    door: CodexDoor, call: Call, params: session.SubscribeParams
) -> None:
    """A thread outside a device's roots is not there, for subscribing too."""
    caller = call.rights.caller
    if call.rights.sees is None or params.threads == "all":
        return
    for thread_id in params.threads:
        if not call.rights.sees(thread_id):
            await door.sight.thread(caller, thread_id)


async def _status(  # noqa: ASYNC124 - handlers are async, all of them
    house: House, call: Call, _params: gateway.GatewayStatusParams
) -> gateway.GatewayStatus:
    return house.status(call)


async def _pair_open(
    house: House, call: Call, params: admin.PairOpenParams
) -> admin.PairOpenResult:
    house.panic.check()
    return await house.pairings.open(call, params)


async def _audit_list(
    audit: Audit, _call: Call, params: admin.AuditListParams
) -> admin.AuditListResult:
    read = partial(audit.read, cursor=params.cursor, limit=params.limit)
    try:
        rows, following = await in_thread(read)
    except AuditUnavailableError as exc:
        raise storage_failed("audit log") from exc
    entries = [admin.AuditEntry.from_log(row) for row in rows]
    return admin.AuditListResult(entries=entries, next_cursor=following)
