"""Handlers of what changes something in Codex, and of what is asked about it. Trio shell,
no decisions.

PROTOCOL.md section 4; the table of all is in `agent/sessions/handlers.py`.
"""

from collections.abc import Iterator
from typing import TypeVar

from agent.access.scopes import Caller
from agent.door import Door
from agent.mutations.thread_wishes import Archive, Delete, Rename, Unarchive, Wish
from agent.sessions.rows import Row, for_caller
from transport.protocol import methods
from transport.protocol.base import ThreadMutationParams, WireModel

P = TypeVar("P", bound=ThreadMutationParams)
R = TypeVar("R", bound=WireModel)


def mutation_handlers(door: Door) -> Iterator[Row]:
    """Return the rows of turns, threads, queue, background commands, goals."""
    yield from _turns(door)
    yield from _threads(door)
    yield from _waiting(door)
    yield from _goals(door)


def _turns(door: Door) -> Iterator[Row]:
    admission = door.admission
    yield for_caller(methods.TURN_START, admission.start_turn)
    yield for_caller(methods.TURN_STEER, admission.steer)
    yield for_caller(methods.TURN_INTERRUPT, admission.interrupt)
    yield for_caller(methods.REVIEW_START, admission.review)
    yield for_caller(methods.APPROVAL_LIST, door.approvals.list)
    yield for_caller(methods.APPROVAL_ANSWER, door.approving.answer)


def _threads(door: Door) -> Iterator[Row]:
    admission = door.admission
    yield for_caller(methods.THREAD_START, admission.start_thread)
    yield for_caller(methods.THREAD_FORK, admission.fork)
    yield for_caller(methods.THREAD_SETTINGS, admission.change_settings)
    yield for_caller(methods.THREAD_COMPACT, admission.compact)
    yield for_caller(methods.THREAD_REVERT, admission.revert)
    yield _wish(door, Rename())
    yield _wish(door, Archive())
    yield _wish(door, Unarchive())
    yield _wish(door, Delete())


def _wish(door: Door, wish: Wish[P, R]) -> Row:
    async def act(caller: Caller, params: P) -> R:
        return await door.admission.fulfil(caller, wish, params)

    return for_caller(wish.method, act)


def _waiting(door: Door) -> Iterator[Row]:
    yield for_caller(methods.QUEUE_LIST, door.acts.queue.waiting)
    yield for_caller(methods.QUEUE_DELETE, door.admission.delete_queued)
    yield for_caller(methods.BACKGROUND_LIST, door.acts.background.list)
    yield for_caller(methods.BACKGROUND_STOP, door.admission.stop_background)


def _goals(door: Door) -> Iterator[Row]:
    yield for_caller(methods.GOAL_GET, door.acts.goal.get)
    yield for_caller(methods.GOAL_SET, door.admission.set_goal)
    yield for_caller(methods.GOAL_PAUSE, door.admission.pause_goal)
    yield for_caller(methods.GOAL_CLEAR, door.admission.clear_goal)
