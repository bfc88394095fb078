"""What an error of Codex means, told by its text: the codes say too little. Sans-IO.

Almost everything is -32600. The texts are those of codex 0.144 to 0.171; one that we
do not know stays what it is.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from adapter.errors import (
    CodexRefusedError,
    ThreadArchivedError,
    ThreadForkedError,
    ThreadLockedError,
    ThreadUnknownError,
    TurnUnknownError,
)

NO_GOAL: Final = "no goal exists"
LOCKED: Final = "already has an active writer"
ARCHIVED: Final = " is archived. Run "  # resume, goal/get

UNKNOWN: Final = (
    "thread not loaded:",  # thread/read, turns/list: it means unknown
    "no rollout found",  # resume, goal/*
    "thread not found:",  # turn/*
    "invalid thread id",
    "invalid session id",  # resume
)
FORKED: Final = "forked history still references it"  # delete
NO_TURN: Final = ("turn not found:", "identifies an in-progress turn")  # fork
BEHIND: Final = "is behind durable rollout"  # fork, while the source writes items

EMPTY_ROLLOUT: Final = ("rollout", "is empty")  # what a killed thread/start may leave

MOVING: Final = (  # while another process archives or unarchives, for some ms
    "invalid paginated history lineage",
    "failed to read lineage metadata",
)
UNSURE: Final = (  # then too; but also of a thread that is not there, or has no turn
    "list_turns is not supported yet",
    "no rollout found",
    "thread not loaded",
    "thread not found",
)
NO_BOUNDARY: Final = "does not have a persisted start boundary"  # revert, fork
NOT_STEERABLE: Final = ("cannot steer a ", "ActiveTurnNotSteerable")
NOT_OFFERED: Final = (
    "unknown variant",
    "feature is disabled",
    "not supported",
    "only supports",
)


def refined(error: CodexRefusedError) -> CodexRefusedError:
    """Return the same refusal as the class that says what it means."""
    if LOCKED in error.message:
        return ThreadLockedError(error.method, error.code, error.message)
    if ARCHIVED in error.message:
        return ThreadArchivedError(error.method, error.code, error.message)
    if FORKED in error.message:
        return ThreadForkedError(error.method, error.code, error.message)
    if any(text in error.message for text in NO_TURN):
        return TurnUnknownError(error.method, error.code, error.message)
    empty = all(part in error.message for part in EMPTY_ROLLOUT)
    if empty or any(text in error.message for text in UNKNOWN):
        return ThreadUnknownError(error.method, error.code, error.message)
    return error


def passes(error: CodexRefusedError, *, again: bool) -> bool:
    """Whether a read that failed so may be right the next time.

    `again`: it has failed in an unsure way just before, which is believed then.
    """
    texts = MOVING if again else MOVING + UNSURE
    return any(text in error.message for text in texts)


def not_offered(error: CodexRefusedError) -> bool:
    """Whether this codex does not have the method at all."""
    return any(text in error.message for text in NOT_OFFERED)


def not_steerable(error: CodexRefusedError) -> bool:
    """Whether the turn that runs is a review or a compaction, which take no words."""
    return any(text in error.message for text in NOT_STEERABLE)


@contextmanager
def no_goal_is_fine() -> Generator[None]:
    """Let a refusal pass that only says that there is no goal (any more)."""
    try:
        yield
    except CodexRefusedError as exc:
        if NO_GOAL not in exc.message:
            raise
