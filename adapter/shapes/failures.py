"""Why a turn failed: Codex's error, its code and its words. Sans-IO. PROTOCOL.md section 5.

The code is Codex's own: a word, or the only key of an object that says more. It is kept
open, for each version of Codex adds some.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from adapter.limits import NOTICE_CHARS, SLEPT_MS
from adapter.shapes.shapes import mapping, maybe_text, text
from adapter.shapes.texts import prefix, without_backtrace
from generated import codex
from transport.protocol.turns import TurnError

UNNAMED: Final = "other"  # Codex's own word for a failure that has none
_CODE_BYTES: Final = 128
_MINUTES_FROM_S: Final = 120


def turn_error(raw: object) -> TurnError | None:
    """Return why a turn failed; nothing where it did not. Raises one of `MISFITS`."""
    if raw is None:
        return None
    error = mapping(raw)
    code, status = _code(error.get("codexErrorInfo"))
    return TurnError(
        code=code, message=error_text(error)[:NOTICE_CHARS], http_status=status
    )


def error_text(raw: Mapping[str, Any]) -> str:
    """Return what Codex says of an error, for a person: the message and its cause."""
    error = cast("codex.TurnError", raw)
    message = without_backtrace(text(error["message"]))
    details = without_backtrace(maybe_text(error.get("additionalDetails")) or "")
    return f"{message}: {details}" if details and details not in message else message


def slept_through(words: str, slept_ms: int) -> str:
    """Return the words of a failure, and that the computer slept while it came about.

    A connection to the model seldom outlives that; Codex does not know why it broke.
    """
    if slept_ms < SLEPT_MS:
        return words
    seconds = round(slept_ms / 1_000)
    slept = (
        f"{seconds} s" if seconds < _MINUTES_FROM_S else f"{round(seconds / 60)} min"
    )
    note = f" (the computer was asleep for {slept} meanwhile)"
    return words[: NOTICE_CHARS - len(note)] + note


def _code(info: object) -> tuple[str, int | None]:
    """Return the code, and the HTTP status of the model provider where it is said."""
    if isinstance(info, str):
        return prefix(text(info), _CODE_BYTES) or UNNAMED, None
    if not isinstance(info, Mapping) or not info:
        return UNNAMED, None
    key, inside = next(iter(cast("Mapping[str, object]", info).items()))
    status: object = None
    if isinstance(inside, Mapping):
        status = cast("Mapping[str, object]", inside).get("httpStatusCode")
    known = status if isinstance(status, int) and status is not True else None
    return prefix(text(key), _CODE_BYTES), known
