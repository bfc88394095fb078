"""One row of the table of handlers, checked against its method's row. Trio shell, no decisions."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from agent.access.scopes import Caller
from agent.sessions.router import Call, Handler
from transport.protocol.base import Params, WireModel
from transport.protocol.methods import Method

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=WireModel)
Row = tuple[str, Handler]


def for_caller(method: Method[P, R], act: Callable[[Caller, P], Awaitable[R]]) -> Row:
    """Return the row of what needs to know who calls, and no more."""

    async def handler(call: Call, params: P) -> R:
        return await act(call.rights.caller, params)

    return method.name, handler


def for_call(method: Method[P, R], act: Callable[[Call, P], Awaitable[R]]) -> Row:
    """Return the row of what needs the session as well, or nothing of both."""
    return method.name, act
