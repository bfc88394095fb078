"""What a faulty codex plays that talks nonsense, too much or never, and its turn's end."""

from typing import Any, Final

from tests.support.faulty_codex import (
    ENDS,
    STARTED,
    Faulty,
    begun,
    delta,
    ended,
    message,
)
from transport.protocol.events import TurnCompleted
from transport.protocol.turns import TurnStatus

Step = dict[str, Any]
SMALL: Final = 100_000  # bytes: the bound of a line, in place of 64 MiB
WORDS: Final = "some words that a model says "


async def completes(run: Faulty) -> TurnStatus:
    """Return how the first turn that ended has ended."""
    return (await run.ear.first(TurnCompleted)).turn.status


def overlong(method: str, params: str, *, ask: int | None = None) -> Step:
    """Return a line as codex writes it, twice as long as the bound."""
    asks = "" if ask is None else f',"id":{ask}'
    return {
        "raw": f'{{"method":"{method}"{asks},"params":{{{params}'
        f'"reason":"{"x" * 2 * SMALL}"}}}}'
    }


def flood(deltas: int) -> list[Step]:
    """Return the steps of a turn that says so many deltas of one message."""
    said = [delta(WORDS, flood=deltas), ended(message("the end")), *ENDS]
    return [*STARTED, begun(message()), *said]
