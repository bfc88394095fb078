"""Reading values that Codex sent: the type is checked where it is used. Sans-IO.

The generated types tell the checkers which keys exist; these functions make sure at run
time. What does not fit raises `MisfitError`, which never leaves the adapter's cores.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from pydantic import ValidationError

from adapter.errors import AnswerShapeError
from transport.protocol.base import ID_PATTERN

MISFITS: Final = (KeyError, TypeError, AttributeError, ValueError)
"""What reading an unexpected shape may raise; pydantic's errors are ValueErrors."""

_ID: Final = re.compile(ID_PATTERN)
_LATEST: Final = 2**53 // 1000  # seconds: the largest number that all JSON readers keep
_WORD: Final = 2**63  # Codex's whole numbers have 64 bits, and the wire carries no more


class MisfitError(ValueError):
    """A value has not the type that Codex documents."""


def why(error: Exception) -> str:
    """Return what is wrong with a shape, without the values: those are a thread's."""
    match error:
        case ValidationError():
            found = error.errors(include_url=False, include_input=False)
            places = [".".join(map(str, one["loc"])) for one in found]
            return "; ".join(
                f"{place}: {one['type']}"
                for place, one in zip(places, found, strict=True)
            )
        case MisfitError():
            return str(error)
        case KeyError():
            return f"no {error.args[0]!r}" if error.args else "a key is missing"
        case _:
            return type(error).__name__


class Shape:
    """Around what is read of an answer: what does not fit raises `AnswerShapeError`.

    `what`: the method that answered, or what it told of.
    """

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        """Nothing is needed."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, MISFITS):
            raise AnswerShapeError(self._what, why(error)) from error


def text(value: object) -> str:
    """Return a string that UTF-8 can hold (a lone surrogate becomes `?`)."""
    if not isinstance(value, str):
        raise MisfitError(f"a text was expected, not {type(value).__name__}")
    if value.isascii():
        return value
    return value.encode("utf-8", "replace").decode()


def maybe_text(value: object) -> str | None:
    """Return a text, or `None` for null."""
    return None if value is None else text(value)


def maybe_word(value: object) -> str | None:
    """Return at most 128 characters of a text, or `None` for null and for an empty one."""
    words = maybe_text(value)
    return words[:128] if words else None


def whole(value: object) -> int:
    """Return an integer of 64 bits; true and false are none."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise MisfitError(f"a number was expected, not {type(value).__name__}")
    if not -_WORD <= value < _WORD:
        raise MisfitError("a number of more than 64 bits")
    return value


def maybe_whole(value: object) -> int | None:
    """Return an integer, or `None` for null."""
    return None if value is None else whole(value)


def mapping(value: object) -> Mapping[str, Any]:
    """Return a JSON object."""
    if not isinstance(value, Mapping):
        raise MisfitError(f"an object was expected, not {type(value).__name__}")
    return cast("Mapping[str, Any]", value)


def sequence(value: object) -> Sequence[Any]:
    """Return a JSON array; null is an empty one."""
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise MisfitError(f"a list was expected, not {type(value).__name__}")
    return cast("Sequence[Any]", value)


def json_text(value: object) -> str:
    """Return a value of any shape as JSON, in characters that a person can read."""
    try:
        return text(json.dumps(value, ensure_ascii=False))
    except RecursionError as exc:
        raise MisfitError("a value is nested too deep") from exc


def wire_id(value: object) -> str:
    """Return an id that PROTOCOL.md allows; any other becomes its hash, always the same.

    An agent message's id is the model provider's own and may be anything.
    """
    word = text(value)
    if _ID.match(word):
        return word
    return f"id_{hashlib.sha256(word.encode()).hexdigest()[:32]}"


def maybe_id(value: object) -> str | None:
    """Return an id, or `None` for null and for an empty one."""
    return wire_id(value) if value else None


def seconds(value: object) -> int | None:
    """Return milliseconds of one of Codex's times in seconds; `None` where it is none.

    Codex's are of 64 bits, and so is what the wire can carry.
    """
    moment = maybe_whole(value)
    return None if moment is None or abs(moment) > _LATEST else moment * 1000
