"""A thread's goal: the requests about it, and as Codex tells it. Sans-IO."""

from collections.abc import Mapping
from typing import Any, Final

from adapter.calls.commands import Command, command
from adapter.limits import REASON_BYTES
from adapter.shapes.shapes import Shape, mapping, text
from adapter.shapes.texts import cut
from generated.codex import (
    ThreadGoalClearParams,
    ThreadGoalGetParams,
    ThreadGoalSetParams,
)
from transport.protocol.goals import Goal, GoalStatus

_STATUSES: Final = {
    "active": GoalStatus.ACTIVE,
    "paused": GoalStatus.PAUSED,
    "complete": GoalStatus.COMPLETE,
}


def get_goal(thread_id: str, *, timeout_s: float | None = None) -> Command:
    """The thread's goal."""
    params: ThreadGoalGetParams = {"threadId": thread_id}
    return command("thread/goal/get", params, timeout_s=timeout_s)


def set_goal(thread_id: str, objective: str) -> Command:
    """Pursue something: in a loaded thread turns start by themselves."""
    params: ThreadGoalSetParams = {
        "threadId": thread_id,
        "objective": objective,
        "status": "active",
    }
    return command("thread/goal/set", params)


def pause_goal(thread_id: str, *, timeout_s: float | None = None) -> Command:
    """Start no further turn for the goal."""
    params: ThreadGoalSetParams = {"threadId": thread_id, "status": "paused"}
    return command("thread/goal/set", params, timeout_s=timeout_s)


def clear_goal(thread_id: str) -> Command:
    """Have no goal any more."""
    params: ThreadGoalClearParams = {"threadId": thread_id}
    return command("thread/goal/clear", params)


def goal_from(raw: Mapping[str, Any]) -> Goal | None:
    """Return the goal in an answer or a notification. Raises one of `MISFITS`."""
    goal = raw.get("goal")
    if goal is None:
        return None
    found = mapping(goal)
    return Goal(
        objective=cut(text(found["objective"]), REASON_BYTES),
        status=_STATUSES.get(text(found["status"]), GoalStatus.OTHER),
    )


def answered_goal(answer: Mapping[str, Any], method: str) -> Goal | None:
    """Return the goal in an answer. Raises: AnswerShapeError."""
    with Shape(method):
        return goal_from(answer)


def active_goal(answer: Mapping[str, Any]) -> str | None:
    """Return the objective in an answer to goal/get, if that goal is active."""
    goal = answered_goal(answer, "thread/goal/get")
    if goal is None or goal.status is not GoalStatus.ACTIVE:
        return None
    return goal.objective
