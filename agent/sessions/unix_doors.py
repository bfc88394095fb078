"""The Agent's own sockets: made, and made anew where they are gone. Trio shell.

A login session's runtime folder goes at logout, and cleaners tidy up in /tmp. An Agent
whose socket has no path any more could not be locked by its owner.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final

import trio

from agent.edge_limits import SOCKET_LOOK_S
from agent.sessions.serve import accept_forever
from transport.background import open_background
from transport.carriers import unix
from transport.carriers.unix import UnixListener
from transport.errors import KeyFileError

_LOG: Final = logging.getLogger(__name__)


async def accept_at(
    path: Path,
    serve: Callable[[trio.SocketStream], Awaitable[None]],
    *,
    handler_nursery: trio.Nursery,
    spares: int = 0,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Accept at a socket until cancelled; connections live in `handler_nursery`.

    Where the path leads here no more, a new socket takes its place; connections that
    are open go on. `spares`: as `accept_forever`. Raises: as `unix.listen`, before it is ready.
    """
    (listener,) = await unix.listen(path)
    task_status.started()
    while True:
        accept = partial(
            accept_forever,
            listener,
            serve,
            handler_nursery=handler_nursery,
            spares=spares,
        )
        async with open_background(accept):
            await _wait_gone(listener)
        _LOG.warning("the socket %s is gone: it is made anew", listener.path)
        listener = await _listen_again(path)
        _LOG.warning("the socket %s is there again", listener.path)


async def _wait_gone(listener: UnixListener) -> None:
    while listener.is_in_place:  # noqa: ASYNC110 - nobody tells of a path that goes
        await trio.sleep(SOCKET_LOOK_S)


async def _listen_again(path: Path) -> UnixListener:
    said = ""
    while True:
        try:
            (listener,) = await unix.listen(path)
        except (OSError, KeyFileError) as exc:
            if str(exc) != said:
                said = str(exc)
                _LOG.warning("it cannot be made yet: %s", said)
            await trio.sleep(SOCKET_LOOK_S)
        else:
            return listener
