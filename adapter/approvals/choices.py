"""The choices of a question, and what each one says to Codex. Sans-IO.

PROTOCOL.md section 5. A choice is named by us and made for one question: its reply holds
exactly what Codex is told, and nothing that a client sends reaches Codex in another way.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from adapter.runtime.acts import Filled
from transport.errors import InvalidParams
from transport.protocol.approvals import Choice, ChoiceEffect

Result = Mapping[str, Any]

ALLOW: Final = "allow"
ALLOW_FOR_SESSION: Final = "allowForSession"
ANSWER: Final = "answer"
DENY: Final = "deny"
CANCEL: Final = "cancel"

_REFUSING: Final = frozenset({ChoiceEffect.DENY, ChoiceEffect.CANCEL})


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One choice. `reply` makes what Codex is told; raises `InvalidParams`."""

    label: str
    effect: ChoiceEffect
    reply: Callable[[Filled], Result]

    @property
    def refuses(self) -> bool:
        """Whether it lets nothing through."""
        return self.effect in _REFUSING


Ways = Mapping[str, Way]


def fixed(label: str, effect: ChoiceEffect, result: Result) -> Way:
    """Return a choice that says one thing and takes nothing with it."""

    def reply(filled: Filled) -> Result:
        refuse_filled(filled.answers, "answers")
        refuse_filled(filled.content, "content")
        return result

    return Way(label=label, effect=effect, reply=reply)


def refuse_filled(given: object, field: str) -> None:
    """Raise where a client sent something that this choice has no use for."""
    if given is not None:
        raise unfit(field, f"This choice takes no {field}.")


def unfit(field: str, message: str) -> InvalidParams:
    """Return the refusal of an answer that does not fit its question."""
    return InvalidParams(message, data={"field": field, "reason": message})


def listed(ways: Ways) -> list[Choice]:
    """Return the choices as a client sees them."""
    return [
        Choice(id=name, label=way.label, effect=way.effect)
        for name, way in ways.items()
    ]


def refusals(ways: Ways) -> dict[str, Way]:
    """Return those that let nothing through."""
    return {name: way for name, way in ways.items() if way.refuses}


def print_of(choice: str, filled: Filled) -> str:
    """Return what tells one answer from another, without keeping what it says."""
    answers: Mapping[str, Sequence[str]] = filled.answers or {}
    said = [choice, answers, filled.content or {}]
    data = json.dumps(said, sort_keys=True, default=list).encode()
    return hashlib.sha256(data).hexdigest()
