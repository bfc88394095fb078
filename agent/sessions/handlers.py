"""Every method's handler, in one table. Trio shell, no decisions.

PROTOCOL.md section 4. The router has looked at scope and params before any of these runs.
"""

from collections.abc import Callable
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
from agent.sessions.router import Call, Handler
from transport.protocol import (
    admin,
    approvals,
    background,
    blobs,
    gateway,
    goals,
    methods,
    queue,
    session,
)
from transport.protocol import threads as thread_models
from transport.protocol import turns as turn_models


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """What the handlers call. `status` is everything but what the caller may not see."""

    door: CodexDoor
    pairings: Pairings
    owner: Owner
    audit: Audit
    panic: PanicSwitch
    status: Callable[[Call], gateway.GatewayStatus]


def build_handlers(house: House) -> dict[str, Handler]:
    """Return the handler of each method."""
    door, owner, pairings = house.door, house.owner, house.pairings

    async def session_open(
        call: Call, params: session.SessionOpenParams
    ) -> session.SessionOpenResult:
        result = call.desk.open(params)
        if call.rights.door is Door.DEVICE:
            device = call.rights.device.id
            note = partial(house.audit.note, "session/open", device=device)
            await in_thread(note)  # where it cannot be written, reading goes on
        return result

    async def subscribe(
        call: Call, params: session.SubscribeParams
    ) -> session.SubscribeResult:
        await _check_exist(door, call, params)
        wanted = None if params.threads == "all" else params.threads
        await door.follower.prepare(wanted)
        return call.desk.subscribe(params)

    async def status(  # noqa: ASYNC124 - handlers are async, all of them
        call: Call, _params: gateway.GatewayStatusParams
    ) -> gateway.GatewayStatus:
        return house.status(call)

    async def thread_list(
        call: Call, params: thread_models.ThreadListParams
    ) -> thread_models.ThreadListResult:
        return await door.reading.thread_list(call.rights.caller, params)

    async def thread_read(
        call: Call, params: thread_models.ThreadReadParams
    ) -> thread_models.ThreadReadResult:
        result = await door.reading.thread_read(call.rights.caller, params)
        door.pictures.learn_turns(result.turns)
        return result

    async def turn_list(
        call: Call, params: turn_models.TurnListParams
    ) -> turn_models.TurnListResult:
        result = await door.reading.turn_list(call.rights.caller, params)
        door.pictures.learn_turns(result.turns)
        return result

    async def approval_list(
        call: Call, params: approvals.ApprovalListParams
    ) -> approvals.ApprovalListResult:
        return await door.approving.list(call.rights.caller, params)

    async def approval_answer(
        call: Call, params: approvals.ApprovalAnswerParams
    ) -> approvals.ApprovalResult:
        return await door.approving.answer(call.rights.caller, params)

    async def thread_start(
        call: Call, params: thread_models.ThreadStartParams
    ) -> thread_models.ThreadStartResult:
        return await door.admission.start_thread(call.rights.caller, params)

    async def turn_start(
        call: Call, params: turn_models.TurnStartParams
    ) -> turn_models.TurnStartResult:
        return await door.admission.start_turn(call.rights.caller, params)

    async def turn_interrupt(
        call: Call, params: turn_models.TurnInterruptParams
    ) -> turn_models.TurnResult:
        return await door.admission.interrupt(call.rights.caller, params)

    async def turn_steer(
        call: Call, params: turn_models.TurnSteerParams
    ) -> turn_models.TurnSteerResult:
        return await door.admission.steer(call.rights.caller, params)

    async def thread_settings(
        call: Call, params: thread_models.ThreadSettingsParams
    ) -> thread_models.ThreadResult:
        return await door.admission.change_settings(call.rights.caller, params)

    async def blob_begin(
        call: Call, params: blobs.BlobBeginParams
    ) -> blobs.BlobBeginResult:
        return await door.blobs.begin(call.rights.caller, params)

    async def blob_chunk(
        call: Call, params: blobs.BlobChunkParams
    ) -> blobs.BlobChunkResult:
        return await door.blobs.chunk(call.rights.caller, params)

    async def blob_commit(
        call: Call, params: blobs.BlobCommitParams
    ) -> blobs.BlobCommitResult:
        return await door.blobs.commit(call.rights.caller, params)

    async def blob_read(
        call: Call, params: blobs.BlobReadParams
    ) -> blobs.BlobReadResult:
        return await door.pictures.read(call.rights.caller, params)

    async def pair_open(
        call: Call, params: admin.PairOpenParams
    ) -> admin.PairOpenResult:
        house.panic.check()
        return await pairings.open(call, params)

    async def audit_list(
        _call: Call, params: admin.AuditListParams
    ) -> admin.AuditListResult:
        read = partial(house.audit.read, cursor=params.cursor, limit=params.limit)
        try:
            rows, following = await in_thread(read)
        except AuditUnavailableError as exc:
            raise storage_failed("audit log") from exc
        entries = [admin.AuditEntry.from_log(row) for row in rows]
        return admin.AuditListResult(entries=entries, next_cursor=following)

    return {
        **content_handlers(door),
        methods.SESSION_OPEN.name: session_open,
        methods.EVENTS_SUBSCRIBE.name: subscribe,
        methods.GATEWAY_STATUS.name: status,
        methods.GATEWAY_CAPABILITIES.name: door.offering.capabilities,
        methods.MODEL_LIST.name: door.offering.models,
        methods.THREAD_LIST.name: thread_list,
        methods.THREAD_READ.name: thread_read,
        methods.TURN_LIST.name: turn_list,
        methods.APPROVAL_LIST.name: approval_list,
        methods.APPROVAL_ANSWER.name: approval_answer,
        methods.THREAD_START.name: thread_start,
        methods.TURN_START.name: turn_start,
        methods.TURN_STEER.name: turn_steer,
        methods.TURN_INTERRUPT.name: turn_interrupt,
        methods.THREAD_SETTINGS.name: thread_settings,
        **_queue(door),
        **_background(door),
        **_goal(door),
        methods.BLOB_BEGIN.name: blob_begin,
        methods.BLOB_CHUNK.name: blob_chunk,
        methods.BLOB_COMMIT.name: blob_commit,
        methods.BLOB_READ.name: blob_read,
        methods.DEVICE_LIST.name: owner.list_all,
        methods.DEVICE_GRANT.name: owner.grant,
        methods.DEVICE_REVOKE.name: owner.revoke,
        methods.PAIR_OPEN.name: pair_open,
        methods.PAIR_AWAIT.name: pairings.wait,
        methods.PAIR_DECIDE.name: pairings.decide,
        methods.AUDIT_LIST.name: audit_list,
        methods.GATEWAY_LOCK.name: house.panic.lock,
        methods.GATEWAY_UNLOCK.name: house.panic.unlock,
    }


def _queue(door: CodexDoor) -> dict[str, Handler]:
    async def rows(call: Call, params: queue.QueueListParams) -> queue.QueueListResult:
        return await door.acts.queue.waiting(call.rights.caller, params)

    async def delete(
        call: Call, params: queue.QueueDeleteParams
    ) -> queue.QueueDeleteResult:
        return await door.admission.delete_queued(call.rights.caller, params)

    return {methods.QUEUE_LIST.name: rows, methods.QUEUE_DELETE.name: delete}


def _background(door: CodexDoor) -> dict[str, Handler]:
    async def rows(
        call: Call, params: background.BackgroundListParams
    ) -> background.BackgroundListResult:
        return await door.acts.background.list(call.rights.caller, params)

    async def stop(
        call: Call, params: background.BackgroundStopParams
    ) -> background.BackgroundStopResult:
        return await door.admission.stop_background(call.rights.caller, params)

    return {methods.BACKGROUND_LIST.name: rows, methods.BACKGROUND_STOP.name: stop}


def _goal(door: CodexDoor) -> dict[str, Handler]:
    async def get(call: Call, params: goals.GoalGetParams) -> goals.GoalGetResult:
        return await door.acts.goal.get(call.rights.caller, params)

    async def set_one(call: Call, params: goals.GoalSetParams) -> goals.GoalResult:
        return await door.admission.set_goal(call.rights.caller, params)

    async def pause(call: Call, params: goals.GoalPauseParams) -> goals.GoalResult:
        return await door.admission.pause_goal(call.rights.caller, params)

    async def clear(call: Call, params: goals.GoalClearParams) -> goals.GoalResult:
        return await door.admission.clear_goal(call.rights.caller, params)

    return {
        methods.GOAL_GET.name: get,
        methods.GOAL_SET.name: set_one,
        methods.GOAL_PAUSE.name: pause,
        methods.GOAL_CLEAR.name: clear,
    }


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
