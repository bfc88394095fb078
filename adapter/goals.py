"""A thread's goal, as far as it concerns us: whether it starts turns. Sans-IO."""

from collections.abc import Mapping
from typing import Any

from adapter.errors import AnswerShapeError
from adapter.shapes import MISFITS, mapping, text, why


def active_goal(answer: Mapping[str, Any]) -> str | None:
    """Return the objective in an answer to goal/get, if that goal is active."""
    try:
        goal = answer.get("goal")
        if goal is None or mapping(goal)["status"] != "active":
            return None
        return text(mapping(goal)["objective"])
    except MISFITS as exc:
        raise AnswerShapeError("thread/goal/get", why(exc)) from exc
