"""Plain maps to msgpack and back. Sans-IO; the only import of msgpack.

PROTOCOL.md section 1. The decoder believes nothing: counts and lengths are checked
before anything is allocated for them, and a map that says one thing twice is refused.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import msgpack

from transport.errors import LocalProtocolError, RemoteProtocolError
from transport.limits import (
    MAX_ARRAY,
    MAX_CONTAINERS,
    MAX_DEPTH,
    MAX_MAP,
    MAX_STRING,
)

_msgpack: Final = cast("Any", msgpack)  # untyped
_packer: Final = _msgpack.Packer()
# Codex may hand us half a surrogate pair (an escape in its JSON): one such character
# must not end a session, so it is replaced.
_lenient_packer: Final = _msgpack.Packer(unicode_errors="replace")


def pack(value: Mapping[str, Any]) -> bytes:
    """Return one packed map.

    Raises:
        LocalProtocolError: `value` holds what the wire cannot carry: a bug of ours.
    """
    try:
        try:
            return bytes(_packer.pack(value))
        except UnicodeEncodeError:
            return bytes(_lenient_packer.pack(value))
    except (TypeError, ValueError, OverflowError) as exc:
        raise LocalProtocolError(f"cannot be packed: {exc}") from exc


def unpack(data: bytes) -> dict[str, Any]:
    """Return the one map in `data`.

    Raises:
        RemoteProtocolError: anything else than one map of legal values.
    """
    builder = _Builder()
    try:
        value: object = _msgpack.unpackb(
            data,
            object_pairs_hook=builder.build_map,
            list_hook=builder.build_list,
            max_array_len=MAX_ARRAY,
            max_map_len=MAX_MAP,
            max_str_len=MAX_STRING,
            max_bin_len=MAX_STRING,
            max_ext_len=0,
            ext_hook=_refuse_ext,
        )
    except RemoteProtocolError:
        raise
    except Exception as exc:  # its errors have no common base
        raise RemoteProtocolError(f"not msgpack: {type(exc).__name__}") from exc
    if not isinstance(value, dict):
        raise RemoteProtocolError("a frame is a map")
    frame = cast("dict[str, Any]", value)  # its keys were checked while it was built
    _check(frame)
    return frame


class _Builder:
    """Builds containers while msgpack decodes, and counts them.

    256 KiB of empty maps would become 20 MB, and all lengths in it are legal.
    """

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_CONTAINERS

    def build_map(self, pairs: list[tuple[object, Any]]) -> dict[str, Any]:
        self._count()
        built: dict[str, Any] = {}
        for key, value in pairs:
            if not isinstance(key, str):
                raise RemoteProtocolError("a map key is not a string")
            built[key] = value
        if len(built) != len(pairs):
            raise RemoteProtocolError("a map has a key twice")
        return built

    def build_list(self, items: list[Any]) -> list[Any]:
        self._count()
        return items

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise RemoteProtocolError("too many maps and lists in one frame")


def _refuse_ext(code: int, _data: bytes) -> Any:
    raise RemoteProtocolError(f"extension type {code}")


def _check(root: dict[str, Any]) -> None:
    """Refuse deep nesting and numbers that are none; level by level, no recursion."""
    level: list[Iterable[object]] = [root.values()]
    for _ in range(MAX_DEPTH):
        below: list[Iterable[object]] = []
        for values in level:
            for value in values:
                if isinstance(value, dict):
                    below.append(cast("dict[str, object]", value).values())
                elif isinstance(value, list):
                    below.append(cast("list[object]", value))
                elif isinstance(value, float) and not math.isfinite(value):
                    raise RemoteProtocolError("a number that is none")
        if not below:
            return
        level = below
    raise RemoteProtocolError("nested too deep")
