"""How a thread and its turns stand, put together from all that is known. Sans-IO.

PROTOCOL.md section 5. The store cannot tell a turn that runs in another process from one
that was cut short: both read `interrupted` without an end. Who holds the thread decides;
what is concluded so is marked `inferred`.
"""

from collections.abc import Collection
from dataclasses import dataclass

from transport.protocol.gateway import LeaseState, Writer
from transport.protocol.threads import Thread, ThreadMode, ThreadStatus
from transport.protocol.turns import Turn, TurnStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """What other programs have to do with a thread. `holder`: has its lock; `lockless`:
    some program that takes no locks may be at work in it."""

    holder: Writer | None = None
    lockless: bool = False


def mode_of(others: Others) -> ThreadMode:
    """Return where the events come from of a thread that no writer of ours has."""
    there = others.holder is not None or others.lockless
    return ThreadMode.FOLLOW if there else ThreadMode.STILL


def is_open_ended(turn: Turn) -> bool:
    """Whether history does not know how this turn ended."""
    return turn.status is TurnStatus.INTERRUPTED and turn.completed_at is None


def judged_turn(turn: Turn, others: Others, *, newest: bool) -> Turn:
    """Return a turn of history with what can be concluded about its end.

    Only the newest turn of a thread can be running.
    """
    if not is_open_ended(turn):
        return turn
    status = TurnStatus.INTERRUPTED
    if newest and others.holder is not None:
        status = TurnStatus.IN_PROGRESS
    elif newest and others.lockless:
        status = TurnStatus.UNKNOWN
    return turn.model_copy(update={"status": status, "inferred": True})


def judged_thread(
    thread: Thread, others: Others, *, newest: Turn | None = None, turns_known: bool
) -> Thread:
    """Return a thread that no writer of ours has, with lease, writer and status.

    `newest`: its newest turn as judged, where `turns_known`.
    """
    update: dict[str, object] = {
        "mode": mode_of(others),
        "lease": LeaseState.NONE,
        "writer": others.holder,
    }
    if newest is not None:
        update["last_turn_id"] = newest.id
    if others.holder is not None:
        update["lease"] = LeaseState.ELSEWHERE
    status, inferred = _status(thread, others, newest, turns_known=turns_known)
    return thread.model_copy(
        update={**update, "status": status, "inferred": inferred or None}
    )


def _status(
    thread: Thread, others: Others, newest: Turn | None, *, turns_known: bool
) -> tuple[ThreadStatus, bool]:
    if thread.status is not ThreadStatus.UNKNOWN:
        return thread.status, False
    if newest is not None and newest.status is TurnStatus.FAILED:
        return ThreadStatus.FAILED, False
    if newest is not None and newest.status is TurnStatus.IN_PROGRESS:
        return ThreadStatus.RUNNING, True
    if newest is not None and newest.status is TurnStatus.UNKNOWN:
        return ThreadStatus.UNKNOWN, True
    elsewhere = others.holder is not None or others.lockless
    if elsewhere and not turns_known:
        return ThreadStatus.UNKNOWN, True
    return ThreadStatus.IDLE, elsewhere


def newest_first(
    turns: Collection[Turn], *, order: str, first_page: bool
) -> str | None:
    """Return the id of the thread's newest turn where this page shows which it is."""
    if order == "desc" and first_page and turns:
        return next(iter(turns)).id
    return None
