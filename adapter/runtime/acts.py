"""What goes with an act: a last look, a message, an answer. Sans-IO (values)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from transport.protocol.turns import Turn

Guard = Callable[[], None]
"""Called right before an act's bytes are written, with no checkpoint in between.

It looks at the world once more and raises (a `Refusal`) to stop the act; then nothing
has been sent and the exception passes through unchanged.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalImage:
    """A picture of the person, in a file of the Agent's own. `path` is absolute."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMention:
    """A file inside the thread's folder: `name` as the person wrote it, relative."""

    name: str
    path: str


InputPart = str | LocalImage | FileMention
"""One part of a message: text, or what only the Agent may name by its path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steered:
    """A message that went into a running turn. `pending`: Codex has it, and the model
    takes it with its next call."""

    turn: Turn
    pending: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """What a person filled in, for a choice whose effect is `answer`.

    `answers`: texts by the id of a question. `content`: a form's values by field.
    """

    answers: Mapping[str, Sequence[str]] | None = None
    content: Mapping[str, Any] | None = None


NOTHING_FILLED: Final = Filled()
