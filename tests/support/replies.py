"""What Codex is told when a question is answered."""

from typing import Any

from adapter.approvals.questions import Question
from adapter.runtime.acts import NOTHING_FILLED, Filled


def told(
    question: Question, choice: str, filled: Filled = NOTHING_FILLED
) -> dict[str, Any]:
    """Return the reply to a choice."""
    return dict(question.choices[choice].reply(filled))
