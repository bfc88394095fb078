"""A thread is loaded into an app-server, and what comes back is read. Trio shell.

PROTOCOL.md section 3 (Lease).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import trio

from adapter.calls import reading_commands, thread_commands
from adapter.calls.refusals import not_offered
from adapter.errors import CodexRefusedError, ThreadLockedError
from adapter.limits import LOCK_RETRY_S
from adapter.runtime.acts import Guard
from adapter.runtime.threads import EffectiveSettings, Loaded
from adapter.servers.app_server import AppServer
from adapter.shapes.reviews import as_told
from adapter.shapes.settings import settings_from
from adapter.shapes.shapes import Shape, mapping, sequence, text
from adapter.shapes.threads import is_legacy, thread_from
from adapter.shapes.turns import turn_from
from transport.protocol.gateway import LeaseState
from transport.protocol.threads import Thread, ThreadMode


async def take_lock(
    server: AppServer,
    thread_id: str,
    *,
    guard: Guard,
    released_lately: Callable[[str], bool],
) -> dict[str, Any]:
    """Resume the thread and return Codex's answer.

    `released_lately`: we ourselves gave this thread's lock back a moment ago.
    """
    command = thread_commands.resume(thread_id)
    try:
        return await server.call(command, guard=guard)
    except ThreadLockedError:
        if not released_lately(thread_id):
            raise
    await trio.sleep(LOCK_RETRY_S)  # the lock was ours: it is told late
    return await server.call(command, guard=guard)


async def read_loaded(
    server: AppServer,
    thread_id: str,
    raw: Mapping[str, Any],
    answer: Mapping[str, Any],
) -> Loaded:
    """Return what was just loaded, its newest turn read through the same process.

    `raw`: the thread in the `answer` that told of it. Raises: AdapterError.
    """
    newest = await _newest_turns(server, thread_id)
    thread, settings = adopt(server, raw, answer, newest)
    legacy = is_legacy(raw)
    turns = [turn_from(turn, thread_id, legacy=legacy) for turn in newest]
    last_turn = turns[0] if turns else None
    return Loaded(thread=thread, settings=settings, last_turn=last_turn)


async def _newest_turns(server: AppServer, thread_id: str) -> list[Mapping[str, Any]]:
    """Return the newest turn as Codex tells it; nothing where there is none yet."""
    try:
        answer = await server.call(reading_commands.newest_turn(thread_id))
    except CodexRefusedError as exc:
        if not_offered(exc):  # a thread that has no turn yet
            return []
        raise
    with Shape("thread/turns/list"):
        rows = [mapping(turn) for turn in sequence(answer["data"])]
        # We load roots alone: what works for another turn here works for a review.
        goes_on = answer.get("nextCursor") is not None
        return as_told(rows, follows=False, goes_on=goes_on)


def adopt(
    server: AppServer,
    raw: Mapping[str, Any],
    answer: Mapping[str, Any],
    turns: Sequence[Mapping[str, Any]],
) -> tuple[Thread, EffectiveSettings]:
    """Make the normalizer know what was loaded; return the thread and its settings."""
    known = server.normalizer
    known.adopt(raw, turns)
    known.settle(answer)
    thread = known.thread(str(raw["id"])) or thread_from(
        raw, mode=ThreadMode.LIVE, lease=LeaseState.HELD
    )
    return thread, settings_from(answer)


def inner(answer: Mapping[str, Any], method: str, key: str) -> Mapping[str, Any]:
    """Return the map `key` of an answer. Raises: AnswerShapeError."""
    with Shape(method):
        return mapping(answer[key])


def id_of(raw: Mapping[str, Any], method: str) -> str:
    """Return the id of a thread or a turn as told. Raises: AnswerShapeError."""
    with Shape(method):
        return text(raw["id"])
