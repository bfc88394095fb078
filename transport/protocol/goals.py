"""A thread's goal: what Codex pursues turn by turn, by itself. Sans-IO. PROTOCOL.md 4."""

from typing import Annotated

from pydantic import Field

from transport.protocol.base import (
    OpenEnum,
    Params,
    ThreadMutationParams,
    WireId,
    WireModel,
)

Objective = Annotated[str, Field(min_length=1, max_length=4_000)]


class GoalStatus(OpenEnum):
    """How a goal stands; only an active one starts turns."""

    ACTIVE = "active"
    PAUSED = "paused"
    COMPLETE = "complete"
    OTHER = "other"


class Goal(WireModel):
    """What a thread is to reach."""

    objective: str
    status: GoalStatus


class GoalGetParams(Params):
    """`thread/goal/get`: loads nothing."""

    thread_id: WireId


class GoalGetResult(WireModel):
    """The goal; absent where the thread has none."""

    goal: Goal | None = None
    head: int


class GoalSetParams(ThreadMutationParams):
    """`thread/goal/set`: from now on Codex starts turns by itself until it is reached."""

    objective: Objective
    allow_pending: bool = False


class GoalPauseParams(ThreadMutationParams):
    """`thread/goal/pause`: no further turn starts for it."""


class GoalClearParams(ThreadMutationParams):
    """`thread/goal/clear`: the thread has no goal any more."""


class GoalResult(WireModel):
    """The goal after the act; absent where there is none."""

    goal: Goal | None = None
