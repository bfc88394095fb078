"""From a method's name to its handler, by table, and who may. Trio shell.

PROTOCOL.md sections 2 and 4. The method table is the one authority: what has no row does
not exist, what a row does not grant is refused, and both are decided at the moment of
execution, before the params are even looked at.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from agent.access.rights import Door, Rights
from agent.access.scopes import check_access
from agent.sessions.requests import read_params
from transport.errors import Forbidden, MethodNotFound
from transport.protocol.base import WireModel
from transport.protocol.methods import METHODS, Access, Method
from transport.protocol.session import (
    SessionOpenParams,
    SessionOpenResult,
    SubscribeParams,
    SubscribeResult,
)

_NAME: Final = 64  # characters of an unknown method's name that we repeat


class Desk(Protocol):
    """The session that a request came in by, as handlers see it."""

    def open(self, params: SessionOpenParams) -> SessionOpenResult:
        """Open the session."""
        ...

    def subscribe(self, params: SubscribeParams) -> SubscribeResult:
        """Replace its subscription."""
        ...

    def on_end(self, callback: Callable[[], None]) -> None:
        """Call this when the session has ended; it must not block."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Who calls, with the rights of this moment, and through which session."""

    rights: Rights
    desk: Desk


Handler = Callable[[Call, Any], Awaitable[WireModel]]


def served_methods() -> frozenset[str]:
    """Return the names that a session can call; pairing has a connection of its own."""
    return frozenset(
        name for name, row in METHODS.items() if row.access is not Access.PAIRING
    )


def find_method(rights: Rights, name: str) -> Method[Any, Any]:
    """Return the row that these rights may call now.

    Raises: MethodNotFound, Forbidden.
    """
    row = METHODS.get(name)
    if row is None or row.access is Access.PAIRING:
        shown = "".join(c if c.isprintable() else "?" for c in name[:_NAME])
        raise MethodNotFound(f"There is no method {shown} here; see PROTOCOL.md.")
    if row.access is Access.ADMIN and rights.door is not Door.WORKSTATION:
        raise Forbidden(
            f"{row.name} can only be called at the workstation itself (admin.sock)."
        )
    check_access(rights.caller, row)
    return row


class Router:
    """One handler for each method; a missing or unknown one is a bug, told at start."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        wrong = served_methods() ^ set(handlers)
        if wrong:
            raise ValueError(f"handlers and method table differ: {sorted(wrong)}")
        self._handlers: dict[str, Handler] = dict(handlers)

    async def call(
        self, call: Call, name: str, params: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Carry out one request; return its result as plain values.

        Raises: Refusal for whatever the client is to be told.
        """
        row = find_method(call.rights, name)
        result = await self._handlers[name](call, read_params(row.params, params))
        return result.wire()
