"""What a frame of a client is: a request, or keepalive. Sans-IO. PROTOCOL.md section 1.

The Agent is strict: a key that it does not know could be a safety key of a newer client.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agent.edge_limits import INVALID_REQUESTS, INVALID_S
from transport.errors import InvalidParams, Refusal, UnsupportedProtocol
from transport.protocol.base import Params
from transport.protocol.session import PROTOCOL_VERSION, VersionRange

P = TypeVar("P", bound=Params)

_U32: Final = 2**32
_REQUEST_KEYS: Final = frozenset({"id", "method", "params"})
_NAME: Final = 64  # characters of a client's word that a refusal repeats
_DEPTH: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A call: its id, its method, and params that nobody has looked at."""

    id: int
    method: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ping:
    """Wants a pong with this number."""

    number: int


@dataclass(frozen=True, slots=True)
class Pong:
    """The peer lives."""

    number: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Neither. `id` where the answer can say so."""

    id: int | None
    refusal: Refusal


def read_frame(frame: Mapping[str, Any]) -> Request | Ping | Pong | Unreadable:
    """Return what the frame is."""
    number = frame.get("ping")
    if len(frame) == 1 and _is_u32(number):
        return Ping(cast("int", number))
    number = frame.get("pong")
    if "method" not in frame and _is_u32(number):
        return Pong(cast("int", number))
    return _read_request(frame)


def _read_request(frame: Mapping[str, Any]) -> Request | Unreadable:
    number = frame.get("id")
    if not _is_u32(number):
        return Unreadable(None, _invalid("id", "an integer of 32 bits is needed"))
    call_id = cast("int", number)
    if not _REQUEST_KEYS.issuperset(frame):
        extra = next(key for key in frame if key not in _REQUEST_KEYS)
        return Unreadable(call_id, _invalid(extra, "not a key of a request"))
    method = frame.get("method")
    if not isinstance(method, str):
        return Unreadable(call_id, _invalid("method", "a name is needed"))
    params = frame.get("params", {})
    if not isinstance(params, dict):
        return Unreadable(call_id, _invalid("params", "a map is needed"))
    return Request(id=call_id, method=method, params=cast("dict[str, Any]", params))


def read_params(model: type[P], params: Mapping[str, Any]) -> P:
    """Return validated params.

    Raises: InvalidParams naming the field. A null is refused too: on this side it is
    not the same as absence.
    """
    null = _find_null(params)
    if null is not None:
        raise _invalid(null, "null is not a value here; leave the key out")
    try:
        return model.model_validate(params, by_alias=True, by_name=False)
    except ValidationError as exc:
        errors = exc.errors(include_url=False, include_input=False)
        told = max(errors, key=lambda error: len(_place_of(error)))
        raise _invalid(".".join(_place_of(told)) or "params", told["msg"]) from None


def choose_version(asked: VersionRange) -> str:
    """Return the version to speak. Raises: UnsupportedProtocol with ours."""
    ours = _number(PROTOCOL_VERSION)
    if _number(asked.min) <= ours <= _number(asked.max):
        return PROTOCOL_VERSION
    raise UnsupportedProtocol(
        f"This Agent speaks protocol {PROTOCOL_VERSION}; update whichever is older.",
        data={"min": PROTOCOL_VERSION, "max": PROTOCOL_VERSION},
    )


class InvalidCount:
    """Says when a peer has sent so much nonsense that it is no client of ours."""

    def __init__(self) -> None:
        self._at: deque[float] = deque(maxlen=INVALID_REQUESTS)

    def add(self, now: float) -> bool:
        """Count one; return whether it was the one too many. `now` in seconds."""
        self._at.append(now)
        full = len(self._at) == INVALID_REQUESTS
        return full and now - self._at[0] <= INVALID_S


def _number(version: str) -> tuple[int, int]:
    major, minor = version.split(".")
    return int(major), int(minor)


def _is_u32(value: object) -> bool:
    return type(value) is int and 0 <= value < _U32


def _invalid(field: str, reason: str) -> InvalidParams:
    shown = "".join(c if c.isprintable() else "?" for c in field[:_NAME])
    return InvalidParams(f"{shown}: {reason}.", data={"field": shown, "reason": reason})


def _place_of(error: ErrorDetails) -> list[str]:
    """Return the keys without the words by which pydantic tells unions apart."""
    return [str(part) for part in error["loc"] if "[" not in str(part)]


def _find_null(value: object, name: str = "params", depth: int = 0) -> str | None:
    if value is None:
        return name
    if depth > _DEPTH:  # the codec allows no more
        return None
    for key, one in _inside(value, name):
        if (found := _find_null(one, key, depth + 1)) is not None:
            return found
    return None


def _inside(value: object, name: str) -> list[tuple[str, object]]:
    if isinstance(value, dict):
        return list(cast("dict[str, object]", value).items())
    if isinstance(value, list):
        places = enumerate(cast("list[object]", value))
        return [(f"{name}[{index}]", one) for index, one in places]
    return []
